/* Making, finding, validating and mapping the region; seats.
 *
 * A file appears under its name complete or not at all (made aside, then renamed), so there is no
 * moment at which it must be waited for. Replacing one that does not fit is the only thing done
 * under a lock (flock of the file to be replaced, tried, not waited for): two daemons that start at
 * once must not replace each other's.
 *
 * Who is alive is the kernel's knowledge: an open file description lock on the byte of the seat. It
 * goes with the last descriptor of its opening, that is with the last process of the daemon;
 * process ids would be ambiguous between the containers of a pod, and be used again. */
#include "io/shm/region.h"
#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/obs/log.h"
#include "io/shm/cow.h"
#include "io/shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "retryd1\n"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define IDLE_NS_DEFAULT (600 * NS_PER_S)

enum { OPEN_TRIES = 100, PATH_LONGEST = 4000, PATH_BYTES = PATH_LONGEST + 32 };
static const struct timespec busy_pause = {.tv_nsec = 10 * NS_PER_MS};

/* --- the numbers that two programs must agree on --- */

static uint64_t layout_hash(void)
{
    const uint64_t facts[] = {
        3, /* meaning of the words, counted by hand */
        SHM_HEADER_BYTES,
        SHM_SEATS,
        SHM_OVERFLOW,
        SHM_PROBE,
        SHM_DEBT_BITS,
        sizeof(struct shm_seat),
        sizeof(struct shm_slot),
        sizeof(struct shm_desk),
        offsetof(struct shm_slot, head),
        offsetof(struct shm_slot, used_ns),
        offsetof(struct shm_slot, label),
        offsetof(struct shm_desk, id),
        offsetof(struct limiter, last_max),
        offsetof(struct limiter, tx_bucket),
    };
    return hash_bytes((struct hash_key){0, 0}, slice_of((const char *)facts, sizeof facts));
}

uint64_t shm_header_check(const struct shm_header *h)
{
    return hash_bytes((struct hash_key){1, 0},
                      slice_of((const char *)h, offsetof(struct shm_header, check)));
}

static size_t region_bytes(unsigned slots)
{
    size_t n = (size_t)slots + SHM_OVERFLOW;
    return SHM_HEADER_BYTES + SHM_SEATS * sizeof(struct shm_seat) +
           n * (sizeof(struct shm_slot) + SHM_SEATS * sizeof(struct shm_desk));
}

static int64_t monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static bool read_boot_id(char out[SHM_BOOT_ID_BYTES], struct err *err)
{
    memset(out, 0, SHM_BOOT_ID_BYTES);
    int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, SHM_BOOT_ID_BYTES - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 ||
           err_set(err, "%s: cannot be read, so the age of a file cannot be told", BOOT_ID_FILE);
}

/* --- mapping --- */

static bool map(struct region *r, struct err *err)
{
    char *p = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (p == MAP_FAILED)
        return err_set(err, "mapping shared memory: %s", strerror(errno));
    size_t n = (size_t)r->n_slots + SHM_OVERFLOW;
    r->header = (struct shm_header *)(void *)p;
    p += SHM_HEADER_BYTES;
    r->seats = (struct shm_seat *)(void *)p;
    p += SHM_SEATS * sizeof(struct shm_seat);
    r->slots = (struct shm_slot *)(void *)p;
    p += n * sizeof(struct shm_slot);
    r->desks = (struct shm_desk *)(void *)p;
    return true;
}

static void unmap(struct region *r)
{
    if (r->header)
        munmap(r->header, r->bytes);
    if (r->fd >= 0)
        close(r->fd);
    r->header = NULL;
    r->fd = -1;
}

/* The descriptor is of zeroes, and nobody else knows it. */
static bool map_new(struct region *r, struct err *err)
{
    struct shm_header h = {
        .layout = layout_hash(), .bytes = r->bytes, .slots = r->n_slots, .seats = SHM_SEATS};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    if (r->is_file && !read_boot_id(h.boot_id, err))
        return false;
    if (getrandom(&h.key, sizeof h.key, 0) != (ssize_t)sizeof h.key)
        return err_set(err, "no randomness: %s", strerror(errno));
    if (!map(r, err))
        return false;
    h.check = shm_header_check(&h);
    *r->header = h;
    return true;
}

static bool open_anonymous(struct region *r, struct err *err)
{
    r->fd = memfd_create("retryd-budgets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->fd < 0 || ftruncate(r->fd, (off_t)r->bytes) != 0 ||
        fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return err_set(err, "shared memory of %zu bytes: %s", r->bytes, strerror(errno));
    return map_new(r, err);
}

/* --- is this file fit to be trusted? --- */

static bool made_by_us(int fd)
{
    char magic[sizeof MAGIC - 1];
    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           memcmp(magic, MAGIC, sizeof magic) == 0;
}

static bool file_fits(const struct region *r, const struct stat *st, struct err *why)
{
    if (st->st_nlink != 1)
        return err_set(why, "has other names");
    if (st->st_uid != geteuid())
        return err_set(why, "owned by another user");
    if ((st->st_mode & 077) != 0)
        return err_set(why, "others may read or write it");
    if ((uint64_t)st->st_size != r->bytes)
        return err_set(why, "of another size");
    return true;
}

static bool header_fits(const struct region *r, struct err *why)
{
    const struct shm_header *h = r->header;
    char boot_id[SHM_BOOT_ID_BYTES];
    if (h->layout != layout_hash() || h->seats != SHM_SEATS)
        return err_set(why, "made by another version of retryd");
    if (h->slots != r->n_slots || h->bytes != r->bytes)
        return err_set(why, "made for another number of entries");
    if (h->check != shm_header_check(h))
        return err_set(why, "its header is damaged");
    if (!read_boot_id(boot_id, why))
        return false;
    if (memcmp(h->boot_id, boot_id, sizeof boot_id) != 0)
        return err_set(why, "made before the last boot");
    return true;
}

static bool time_fits(int64_t ns, int64_t now_ns)
{
    return ns >= 0 && ns <= now_ns;
}

/* Others may be at work in it: the clock is read after what it is compared with. */
static bool slot_fits(const struct region *r, uint32_t i, struct err *why)
{
    const struct shm_slot *s = &r->slots[i];
    uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);
    struct cow_copy copy;
    bool fits = word == 0 || (shm_id(word) == 0) == (i >= r->n_slots);
    fits = cow_read_any(r, i, &copy) && fits;
    int64_t used_ns = atomic_load_explicit(&s->used_ns, memory_order_acquire);
    int64_t changed_ns = atomic_load_explicit(&s->changed_ns, memory_order_acquire);
    int64_t now_ns = monotonic_ns();
    if (!fits || !limiter_is_sane(&copy.limiter, now_ns) || !time_fits(used_ns, now_ns) ||
        !time_fits(changed_ns, now_ns))
        return err_set(why, "entry %u holds impossible values", i);
    return true;
}

static bool contents_fit(const struct region *r, struct err *why)
{
    if (!header_fits(r, why))
        return false;
    for (uint32_t i = 0; i < r->n_slots + SHM_OVERFLOW; i++)
        if (!slot_fits(r, i, why))
            return false;
    return true;
}

/* --- files --- */

enum tried {
    TRIED_OK,
    TRIED_FAILED, /* err */
    TRIED_AGAIN,  /* somebody was faster, or is at it */
};

static enum tried failed(struct err *err, const char *path, const char *doing)
{
    err_set(err, "%s: %s%s", path, doing, strerror(errno));
    return TRIED_FAILED;
}

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* A complete region under a name of its own. */
static enum tried make_aside(struct region *r, const char *aside, struct err *err)
{
    unlink(aside); /* of a process of this number that was killed right here */
    r->fd = open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r->fd < 0)
        return failed(err, aside, "");
    /* With its blocks, so that a full file system is found now and not by a signal later. */
    errno = posix_fallocate(r->fd, 0, (off_t)r->bytes);
    if (errno != 0 || fchmod(r->fd, 0600) != 0)
        return failed(err, aside, "");
    if (!map_new(r, err))
        return TRIED_FAILED;
    /* The name may outlive a power failure only with the bytes that say whose it is. */
    if (fsync(r->fd) != 0)
        return failed(err, aside, "");
    return TRIED_OK;
}

/* Makes the file aside and moves it to its name. flags as for renameat2: what may be there. */
static enum tried make_file(struct region *r, const char *path, unsigned flags, struct err *err)
{
    char aside[PATH_BYTES];
    snprintf(aside, sizeof aside, "%.*s.%d.new", PATH_LONGEST, path, getpid());

    enum tried tried = make_aside(r, aside, err);
    if (tried == TRIED_OK && renameat2(AT_FDCWD, aside, AT_FDCWD, path, flags) != 0)
        tried = errno == EEXIST ? TRIED_AGAIN : failed(err, path, "");
    if (tried != TRIED_OK) {
        unlink(aside);
        unmap(r);
    }
    return tried;
}

/* The process of a living daemon that has a seat in a file that does not fit us; 0: none, or not
 * known. Locks are where they are in any file of ours; the rest is read only where the layout is
 * the same, as with another number of entries. */
static uint32_t find_holder(int fd)
{
    struct shm_header h;
    struct shm_seat seat;
    bool known = pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && h.layout == layout_hash();
    for (unsigned i = 0; known && i < SHM_SEATS; i++) {
        off_t at = SHM_HEADER_BYTES + (off_t)(i * sizeof seat);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
        if (fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK &&
            pread(fd, &seat, sizeof seat, at) == (ssize_t)sizeof seat)
            return atomic_load_explicit(&seat.pid, memory_order_relaxed);
    }
    return 0;
}

/* Takes the place of a file that does not fit, unless somebody else already did or is about to. */
static enum tried replace_file(struct region *r, int old, const char *path, const char *why,
                               struct err *err)
{
    uint32_t holder = find_holder(old);
    if (flock(old, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? TRIED_AGAIN : failed(err, path, "lock: ");
    if (!same_file(old, path))
        return TRIED_AGAIN;
    enum tried tried = make_file(r, path, 0, err);
    if (tried == TRIED_OK && holder != 0)
        log_msg(LOG_LEVEL_WARN, "shared_memory",
                "%s: %s; begun anew, while process %" PRIu32 " goes on with the old one", path, why,
                holder);
    else if (tried == TRIED_OK)
        log_msg(LOG_LEVEL_WARN, "shared_memory", "%s: %s; begun anew", path, why);
    return tried;
}

static enum tried use_file(struct region *r, int fd, const char *path, struct err *err)
{
    struct stat st;
    struct err why;
    if (fstat(fd, &st) != 0)
        return failed(err, path, "");
    if (!S_ISREG(st.st_mode))
        return err_set(err, "%s: not a regular file", path), TRIED_FAILED;
    if (st.st_size != 0 && !made_by_us(fd))
        return err_set(err, "%s: not made by retryd: name another file, or remove it", path),
               TRIED_FAILED;
    if (file_fits(r, &st, &why)) {
        r->fd = fd;
        if (!map(r, err))
            return TRIED_FAILED;
        if (contents_fit(r, &why))
            return same_file(fd, path) ? TRIED_OK : TRIED_AGAIN;
        munmap(r->header, r->bytes);
        r->header = NULL;
        r->fd = -1;
    }
    return replace_file(r, fd, path, why.text, err);
}

static enum tried try_file(struct region *r, const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? make_file(r, path, RENAME_NOREPLACE, err) : failed(err, path, "");
    enum tried tried = use_file(r, fd, path, err);
    if (tried != TRIED_OK && r->fd == fd)
        unmap(r);
    else if (r->fd != fd)
        close(fd);
    return tried;
}

static bool open_file(struct region *r, const char *path, struct err *err)
{
    if (strlen(path) > PATH_LONGEST)
        return err_set(err, "file of shared memory: the name is too long");
    r->is_file = true;
    for (int i = 0; i < OPEN_TRIES; i++) {
        enum tried tried = try_file(r, path, err);
        if (tried != TRIED_AGAIN)
            return tried == TRIED_OK;
        nanosleep(&busy_pause, NULL);
    }
    return err_set(err, "%s: another process keeps replacing it", path);
}

/* --- the region --- */

struct region *region_open(const struct region_options *o, struct err *err)
{
    unsigned slots = o->slots != 0 ? o->slots : REGION_SLOTS_DEFAULT;
    if (slots < REGION_SLOTS_MIN || slots > REGION_SLOTS_MAX || (slots & (slots - 1)) != 0) {
        err_set(err, "entries of shared memory: a power of two from %d to %d", REGION_SLOTS_MIN,
                REGION_SLOTS_MAX);
        return NULL;
    }
    struct region *r = xcalloc(1, sizeof *r);
    *r = (struct region){.n_slots = slots,
                         .bytes = region_bytes(slots),
                         .fd = -1,
                         .opener_pid = getpid(),
                         .idle_ns = o->idle_ns != 0 ? o->idle_ns : IDLE_NS_DEFAULT};
    bool ok = getrandom(&r->opener, sizeof r->opener, 0) == (ssize_t)sizeof r->opener ||
              err_set(err, "no randomness: %s", strerror(errno));
    r->opener |= 1; /* not 0 */
    if (!ok || !(o->path ? open_file(r, o->path, err) : open_anonymous(r, err))) {
        region_close(r);
        return NULL;
    }
    return r;
}

void region_close(struct region *r)
{
    unmap(r);
    free(r);
}

/* --- seats --- */

static struct flock seat_lock(const struct region *r, unsigned seat, short type)
{
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (const char *)&r->seats[seat] - (const char *)r->header,
        .l_len = 1,
    };
}

/* Nobody but us can reach an anonymous region, so there is nobody to lock out. */
static bool lock_seat(const struct region *r, unsigned seat, short type)
{
    struct flock l = seat_lock(r, seat, type);
    return !r->is_file || fcntl(r->fd, F_OFD_SETLK, &l) == 0;
}

bool region_seat_live(const struct region *r, unsigned seat)
{
    uint64_t opener = atomic_load_explicit(&r->seats[seat].opener, memory_order_relaxed);
    struct flock l = seat_lock(r, seat, F_WRLCK);
    if (opener == 0 || opener == r->opener)
        return opener != 0;
    return r->is_file && fcntl(r->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int region_seat_claim(struct region *r)
{
    ASSERT(getpid() == r->opener_pid);
    for (unsigned i = 0; i < SHM_SEATS; i++) {
        struct shm_seat *s = &r->seats[i];
        if ((r->claimed >> i & 1) != 0 || !lock_seat(r, i, F_WRLCK))
            continue;
        r->claimed |= UINT64_C(1) << i;
        /* The holder before is dead, by its parent's wait or by the kernel's giving us the lock;
         * either comes after all that it stored. */
        atomic_fetch_add_explicit(&s->generation, 1, memory_order_relaxed);
        atomic_store_explicit(&s->pid, 0, memory_order_relaxed);
        atomic_store_explicit(&s->opener, r->opener, memory_order_relaxed);
        return (int)i;
    }
    return -1;
}

void region_seat_release(struct region *r, int seat)
{
    ASSERT(getpid() == r->opener_pid);
    ASSERT(seat >= 0 && seat < SHM_SEATS && (r->claimed >> seat & 1) != 0);
    atomic_store_explicit(&r->seats[seat].opener, 0, memory_order_relaxed);
    r->claimed &= ~(UINT64_C(1) << seat);
    lock_seat(r, (unsigned)seat, F_UNLCK);
}
