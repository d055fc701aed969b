/* Files of the authority (security requirement H3).
 *
 * Invariants: a file under its own name is whole, before and after a crash at any instruction;
 * leftovers of a crash are named *.tmp and are removed by the next writer, who holds the lock. */
#include "io/tls/statedir.h"

#include "core/base/xalloc.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PUBLIC_DIR_MODE 0755
#define PRIVATE_DIR_MODE 0700
#define PUBLIC_FILE_MODE 0644
#define PRIVATE_FILE_MODE 0600
#define PATH_BYTES_MAX 4096

/* Where a file is, for messages. */
struct place {
    char text[PATH_BYTES_MAX];
};

static const char *place(struct place *p, const struct statedir *d, bool secret, const char *name)
{
    snprintf(p->text, sizeof p->text, "%s/%s%s", d->path, secret ? STATEDIR_PRIVATE "/" : "", name);
    return p->text;
}

/* Ours or root's, and none of the forbidden mode bits. The line says what to do. */
static bool check_hands(const struct stat *st, const char *path, mode_t forbidden, struct err *err)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return err_set(err,
                       "%s belongs to user %lu, not to user %lu who runs this: chown it, or remove "
                       "the directory of the authority to have a new one made",
                       path, (unsigned long)st->st_uid, (unsigned long)geteuid());
    if (st->st_mode & forbidden)
        return err_set(err, "%s has mode %04o, open to others: run chmod %s %s", path,
                       (unsigned)(st->st_mode & 07777), forbidden & S_IRGRP ? "go-rwx" : "go-w",
                       path);
    return true;
}

/* Opens a directory at dirfd, making it when it is not there. */
static int open_dir(int dirfd, const char *name, const char *path, mode_t mode, mode_t forbidden,
                    struct err *err)
{
    struct stat st;
    bool made = mkdirat(dirfd, name, mode) == 0;
    if (!made && errno != EEXIST) {
        err_set(err, "%s: %s", path, strerror(errno));
        return -1;
    }
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Exact whatever the umask; what somebody else made is judged, not repaired. */
    if (fd < 0 || (made && fchmod(fd, mode) != 0) || fstat(fd, &st) != 0)
        err_set(err, "%s: %s", path, strerror(errno));
    else if (check_hands(&st, path, forbidden, err))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool make_parents(const char *path, struct err *err)
{
    char prefix[PATH_BYTES_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof prefix - sizeof "/" STATEDIR_PRIVATE "/intermediate.key.tmp")
        return err_set(err, "directory of the authority: the path is empty or too long");
    memcpy(prefix, path, n + 1);
    for (size_t i = 1; i < n; i++) {
        if (path[i] != '/')
            continue;
        prefix[i] = '\0';
        if (mkdir(prefix, PUBLIC_DIR_MODE) != 0 && errno != EEXIST)
            return err_set(err, "%s: %s", prefix, strerror(errno));
        prefix[i] = '/';
    }
    return true;
}

static bool take_lock(struct statedir *d, struct err *err)
{
    struct place p;
    int got;
    d->lock_fd =
        openat(d->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE_MODE);
    if (d->lock_fd < 0)
        return err_set(err, "%s: %s", place(&p, d, false, "lock"), strerror(errno));
    do {
        got = flock(d->lock_fd, LOCK_EX);
    } while (got != 0 && errno == EINTR);
    if (got != 0)
        return err_set(err, "%s: %s", place(&p, d, false, "lock"), strerror(errno));
    return true;
}

bool statedir_open(struct statedir *d, const char *path, struct err *err)
{
    struct place p;
    *d = (struct statedir){.path = path, .fd = -1, .private_fd = -1, .lock_fd = -1};
    if (!make_parents(path, err))
        return false;
    d->fd = open_dir(AT_FDCWD, path, path, PUBLIC_DIR_MODE, S_IWGRP | S_IWOTH, err);
    if (d->fd >= 0 && take_lock(d, err))
        d->private_fd = open_dir(d->fd, STATEDIR_PRIVATE, place(&p, d, false, STATEDIR_PRIVATE),
                                 PRIVATE_DIR_MODE, S_IRWXG | S_IRWXO, err);
    if (d->private_fd >= 0)
        return true;
    statedir_close(d);
    return false;
}

void statedir_close(struct statedir *d)
{
    int *const fds[] = {&d->private_fd, &d->lock_fd, &d->fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Up to n bytes; fewer only at the end of the file. */
static bool read_all(int fd, char *p, size_t n, size_t *got)
{
    for (*got = 0; *got < n;) {
        ssize_t r = read(fd, p + *got, n - *got);
        if (r == 0)
            return true;
        if (r < 0 && errno != EINTR)
            return false;
        *got += r > 0 ? (size_t)r : 0;
    }
    return true;
}

static bool read_checked(int fd, bool secret, const char *path, size_t max_bytes, struct slice *out,
                         struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_set(err, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)max_bytes)
        return err_set(err, "%s is not a file of at most %zu bytes", path, max_bytes);
    if (secret && !check_hands(&st, path, S_IRWXG | S_IRWXO, err))
        return false;
    size_t n = (size_t)st.st_size;
    char *p = xmalloc(n + 1);
    *out = slice_of(p, n);
    if (!read_all(fd, p, n, &out->n)) {
        err_set(err, "%s: %s", path, strerror(errno));
        statedir_forget(out);
        return false;
    }
    return true;
}

enum statedir_read statedir_read(const struct statedir *d, bool secret, const char *name,
                                 size_t max_bytes, struct slice *out, struct err *err)
{
    struct place p;
    place(&p, d, secret, name);
    *out = SLICE_NONE;
    /* O_NONBLOCK: somebody else's FIFO must not hold us up. */
    int fd = openat(secret ? d->private_fd : d->fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return STATEDIR_ABSENT;
    if (fd < 0) {
        err_set(err, "%s: %s", p.text, strerror(errno));
        return STATEDIR_REFUSED;
    }
    bool ok = read_checked(fd, secret, p.text, max_bytes, out, err);
    close(fd);
    return ok ? STATEDIR_FOUND : STATEDIR_REFUSED;
}

void statedir_forget(struct slice *s)
{
    char *p = (char *)s->p;
    if (p != NULL)
        OPENSSL_cleanse(p, s->n);
    free(p);
    *s = SLICE_NONE;
}

static bool write_all(int fd, struct slice s)
{
    while (s.n > 0) {
        ssize_t r = write(fd, s.p, s.n);
        if (r < 0 && errno != EINTR)
            return false;
        if (r > 0)
            s = slice_of(s.p + r, s.n - (size_t)r);
    }
    return true;
}

bool statedir_write(const struct statedir *d, bool secret, const char *name, struct slice content,
                    struct err *err)
{
    struct place p;
    char tmp[64];
    int dirfd = secret ? d->private_fd : d->fd;
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    unlinkat(dirfd, tmp, 0);
    int fd =
        openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE_MODE);
    bool ok = fd >= 0 && write_all(fd, content) &&
              fchmod(fd, secret ? PRIVATE_FILE_MODE : PUBLIC_FILE_MODE) == 0 && fsync(fd) == 0 &&
              renameat(dirfd, tmp, dirfd, name) == 0 && fsync(dirfd) == 0;
    if (!ok) {
        err_set(err, "%s: %s", place(&p, d, secret, name), strerror(errno));
        unlinkat(dirfd, tmp, 0);
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

bool statedir_update(const struct statedir *d, const char *name, struct slice content,
                     struct err *err)
{
    struct slice present;
    enum statedir_read r = statedir_read(d, false, name, content.n, &present, NULL);
    bool same = r == STATEDIR_FOUND && slice_eq(present, content);
    statedir_forget(&present);
    return same || statedir_write(d, false, name, content, err);
}
