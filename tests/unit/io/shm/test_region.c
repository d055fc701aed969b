/* The region: seats, and files that are found, shared, survived, distrusted and replaced. */
#include "io/obs/log.h"
#include "io/shm/budgets.h"
#include "io/shm/layout.h"
#include "unit.h"

#include "core/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 300, SLOTS = 64 };

static char dir[PATH_BYTES - 100], path[PATH_BYTES], log_path[PATH_BYTES];
static struct region_options options;

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/retryd-region-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/budgets", dir);
    snprintf(log_path, sizeof log_path, "%s/log", dir);
    options = (struct region_options){.path = path, .slots = SLOTS};
    struct err err;
    ck_assert(log_open(log_path, false, LOG_LEVEL_INFO, &err));
}

static void teardown(void)
{
    log_close();
    unlink(path);
    unlink(log_path);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing was left behind */
}

static struct region *open_ok(const struct region_options *o)
{
    struct err err = {""};
    struct region *r = region_open(o, &err);
    ck_assert_msg(r != NULL, "%s", err.text);
    return r;
}

static const char *open_error(const struct region_options *o)
{
    static struct err err;
    ck_assert_ptr_null(region_open(o, &err));
    return err.text;
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Spends and throttles for the key "k" through a seat of the region. */
static bool use(struct region *r, int seat, unsigned cost)
{
    struct budgets *t = budgets_new(r, seat);
    struct budget *b = budgets_acquire(t, SLICE("k"), SLICE("label of k"), now_ns());
    bool ok = b->ops->spend(b, cost, 500);
    b->ops->observe(b, true, now_ns());
    budgets_release(b);
    budgets_free(t);
    return ok;
}

static unsigned tokens(struct region *r)
{
    int seat = region_seat_claim(r);
    struct budgets *t = budgets_new(r, seat);
    struct budget *b = budgets_acquire(t, SLICE("k"), SLICE("label of k"), now_ns());
    unsigned n = b->ops->tokens(b, 500);
    budgets_release(b);
    budgets_free(t);
    region_seat_release(r, seat);
    return n;
}

static void make_used(void)
{
    struct region *r = open_ok(&options);
    ck_assert(use(r, region_seat_claim(r), 100));
    region_close(r);
}

static bool logged(const char *text)
{
    char buffer[64 * 1024];
    FILE *f = fopen(log_path, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(buffer, 1, sizeof buffer - 1, f);
    fclose(f);
    buffer[n] = '\0';
    return strstr(buffer, text) != NULL;
}

/* --- seats --- */

START_TEST(sizes_that_cannot_be)
{
    static const unsigned sizes[] = {1, 8, 15, 17, 1000, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        ck_assert_ptr_nonnull(
            strstr(open_error(&(struct region_options){.slots = sizes[i]}), "power of two"));
}
END_TEST

START_TEST(seats_run_out_and_come_back)
{
    struct region *anonymous = open_ok(&(struct region_options){0}), *file = open_ok(&options);
    struct region *both[] = {anonymous, file};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < REGION_SEATS; i++)
            ck_assert_int_eq(region_seat_claim(both[k]), i);
        ck_assert_int_eq(region_seat_claim(both[k]), -1);
        region_seat_release(both[k], 17);
        ck_assert_int_eq(region_seat_claim(both[k]), 17);
        ck_assert_int_eq(region_seat_claim(both[k]), -1);
        region_close(both[k]);
    }
}
END_TEST

/* Two openings of one file, here by one process, as two daemons would. */
START_TEST(two_openings_one_truth)
{
    struct region *a = open_ok(&options), *b = open_ok(&options);
    int sa = region_seat_claim(a), sb = region_seat_claim(b);
    ck_assert_int_eq(sa, 0);
    ck_assert_int_eq(sb, 1);
    ck_assert(use(a, sa, 300));
    ck_assert(!use(b, sb, 300));
    ck_assert(use(b, sb, 200));
    ck_assert_uint_eq(tokens(a), 0);
    ck_assert(region_seat_live(b, 0) && region_seat_live(a, 1) && !region_seat_live(a, 2));
    region_close(a);
    ck_assert(!region_seat_live(b, 0));
    ck_assert_int_eq(region_seat_claim(b), 0);
    ck_assert_uint_eq(tokens(b), 0);
    region_close(b);
    ck_assert(!logged("anew"));
}
END_TEST

static pid_t fork_until_killed(struct region *r, int seat)
{
    int up[2];
    char c;
    ck_assert_int_eq(pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (r == NULL) {
            struct err err;
            r = region_open(&options, &err);
            seat = r ? region_seat_claim(r) : -1;
        }
        if (seat < 0 || !use(r, seat, 10) || write(up[1], "u", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(up[1]);
    ck_assert_int_eq(read(up[0], &c, 1), 1);
    close(up[0]);
    return pid;
}

static void kill_and_wait(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

/* Seats of a daemon are taken while one of its processes lives. */
START_TEST(a_worker_keeps_the_seats_of_its_dead_master)
{
    struct region *master = open_ok(&options);
    pid_t worker = fork_until_killed(master, region_seat_claim(master));
    region_close(master);
    struct region *next = open_ok(&options);
    ck_assert(region_seat_live(next, 0));
    ck_assert_int_eq(region_seat_claim(next), 1);
    kill_and_wait(worker);
    ck_assert(!region_seat_live(next, 0));
    ck_assert_int_eq(region_seat_claim(next), 0);
    ck_assert_uint_eq(tokens(next), 490);
    region_close(next);
}
END_TEST

START_TEST(a_file_survives_kill_9)
{
    for (unsigned i = 1; i <= 10; i++) {
        kill_and_wait(fork_until_killed(NULL, -1));
        struct region *r = open_ok(&options);
        ck_assert(!region_seat_live(r, 0));
        ck_assert_uint_eq(tokens(r), 500 - 10 * i);
        region_close(r);
    }
    ck_assert(!logged("anew"));
}
END_TEST

START_TEST(a_worker_that_died_is_replaced)
{
    struct region *r = open_ok(&(struct region_options){0});
    int seat = region_seat_claim(r);
    for (unsigned i = 1; i <= 10; i++) {
        kill_and_wait(fork_until_killed(r, seat));
        region_seat_release(r, seat);
        ck_assert_int_eq(region_seat_claim(r), seat);
        ck_assert_uint_eq(tokens(r), 500 - 10 * i);
    }
    region_close(r);
}
END_TEST

/* --- files that are not trusted --- */

static void ck_fresh(const char *why)
{
    struct stat st;
    struct region *r = open_ok(&options);
    ck_assert_msg(tokens(r) == 500, "%s: was trusted", why);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq((int64_t)st.st_size, (int64_t)r->bytes);
    region_close(r);
    ck_assert_msg(logged(why), "not logged: %s", why);
    ck_assert_int_eq(truncate(log_path, 0), 0);
    /* What was made is trusted. */
    make_used();
    r = open_ok(&options);
    ck_assert_uint_eq(tokens(r), 400);
    region_close(r);
    ck_assert(!logged("anew"));
    unlink(path);
}

static void patch(off_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

START_TEST(every_byte_of_the_header_counts)
{
    for (size_t i = 0; i < sizeof(struct shm_header); i++) {
        unsigned char c;
        make_used();
        int fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(pread(fd, &c, 1, (off_t)i), 1);
        close(fd);
        c ^= 1u << (i % 8);
        patch((off_t)i, &c, 1);
        if (i <
            offsetof(struct shm_header, layout)) { /* then it is not ours, as far as can be told */
            ck_assert_ptr_nonnull(strstr(open_error(&options), "not made by retryd"));
            unlink(path);
        } else {
            ck_fresh("begun anew");
        }
    }
}
END_TEST

/* A header that is whole, but of something else. */
START_TEST(headers_of_others)
{
    static const char *const why[] = {"another version", "another version", "another number",
                                      "another number", "the last boot"};
    for (int i = 0; i < 5; i++) {
        struct shm_header h;
        make_used();
        int fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(pread(fd, &h, sizeof h, 0), (ssize_t)sizeof h);
        close(fd);
        h.layout += i == 0;
        h.seats += i == 1;
        h.slots *= i == 2 ? 2 : 1;
        h.bytes += i == 3;
        h.boot_id[3] ^= i == 4;
        h.check = shm_header_check(&h);
        patch(0, &h, sizeof h);
        ck_fresh(why[i]);
    }
}
END_TEST

/* Index of the slot of "k", in a used file. */
static uint32_t slot_of_k(struct region *r)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (atomic_load(&r->slots[i].word) != 0)
            return i;
    ck_abort_msg("no slot is used");
}

static void spoil(struct region *r, int how)
{
    uint32_t i = slot_of_k(r);
    struct shm_slot *s = &r->slots[i], *free_slot = &r->slots[(i + 1) % SLOTS];
    uint64_t head = atomic_load(&s->head);
    struct shm_cell *cell = &shm_desk(r, i, 0)->cell[((head & 0xff) - 1) % 2];
    switch (how) {
    case 0:
        atomic_store(&free_slot->word, 5); /* owed by nobody */
        break;
    case 1:
        atomic_store(&r->slots[SLOTS].word, shm_word(7, 5)); /* overflow, of somebody */
        break;
    case 2:
        atomic_store(&s->head, head | 0xff);
        break;
    case 3:
        atomic_store(&s->used_ns, now_ns() + 3600 * NS_PER_S);
        break;
    case 4:
        atomic_store(&s->used_ns, -1);
        break;
    case 5:
        atomic_store(&s->changed_ns, INT64_MAX);
        break;
    case 6:
        atomic_store(&cell->word[1], UINT64_MAX); /* the fill rate is a NaN */
        break;
    default:
        atomic_store(&cell->word[5], (uint64_t)INT64_MAX); /* refilled in the future */
        break;
    }
}

START_TEST(impossible_values_are_not_trusted)
{
    for (int how = 0; how < 8; how++) {
        make_used();
        struct region *r = open_ok(&options);
        spoil(r, how);
        region_close(r);
        ck_fresh("holds impossible values");
    }
}
END_TEST

START_TEST(sizes_and_modes)
{
    char other_name[PATH_BYTES + 8];
    snprintf(other_name, sizeof other_name, "%s-2", path);
    make_used();
    ck_assert_int_eq(truncate(path, 4096), 0);
    ck_fresh("of another size");
    make_used();
    ck_assert_int_eq(truncate(path, 64 * 1024 * 1024), 0);
    ck_fresh("of another size");
    make_used();
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_fresh("of another size");
    make_used();
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_fresh("others may read");
    make_used();
    ck_assert_int_eq(link(path, other_name), 0);
    ck_fresh("has other names");
    unlink(other_name);
    struct region_options more = {.path = path, .slots = 2 * SLOTS};
    struct region *r = open_ok(&more);
    region_close(r);
    ck_fresh("of another size");
}
END_TEST

/* A name given by mistake: what is there is not destroyed. */
START_TEST(what_is_not_ours_is_kept)
{
    char text[32] = "";
    FILE *f = fopen(path, "we");
    fputs("precious", f);
    fclose(f);
    const char *why = open_error(&options);
    ck_assert_ptr_nonnull(strstr(why, path));
    ck_assert_ptr_nonnull(strstr(why, "not made by retryd"));
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    fclose(f);
    ck_assert_str_eq(text, "precious");
}
END_TEST

/* Replaced under a daemon that is alive, which the line names. */
START_TEST(what_is_replaced_in_use)
{
    char line[80];
    struct region *r = open_ok(&options);
    int seat = region_seat_claim(r);
    struct budgets *t = budgets_new(r, seat); /* leaves its process id */
    struct region_options more = {.path = path, .slots = 2 * SLOTS};
    region_close(open_ok(&more));
    snprintf(line, sizeof line, "begun anew, while process %d goes on with the old one", getpid());
    ck_assert(logged("of another size"));
    ck_assert(logged(line));
    budgets_free(t);
    region_close(r);
    region_close(open_ok(&options));
    ck_assert(logged("begun anew"));
}
END_TEST

START_TEST(names_that_cannot_be)
{
    char link_path[PATH_BYTES + 8], fifo_path[PATH_BYTES + 8], long_path[5000];
    snprintf(link_path, sizeof link_path, "%s-link", path);
    snprintf(fifo_path, sizeof fifo_path, "%s-fifo", path);
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    make_used();
    ck_assert_int_eq(symlink(path, link_path), 0);
    ck_assert_int_eq(mkfifo(fifo_path, 0600), 0);
    ck_assert_ptr_nonnull(
        strstr(open_error(&(struct region_options){.path = link_path}), strerror(ELOOP)));
    ck_assert_ptr_nonnull(
        strstr(open_error(&(struct region_options){.path = fifo_path}), "not a regular file"));
    ck_assert_ptr_nonnull(
        strstr(open_error(&(struct region_options){.path = dir}), strerror(EISDIR)));
    ck_assert_ptr_nonnull(
        strstr(open_error(&(struct region_options){.path = "/nonexistent/x"}), strerror(ENOENT)));
    ck_assert_ptr_nonnull(
        strstr(open_error(&(struct region_options){.path = long_path}), "too long"));
    unlink(link_path);
    unlink(fifo_path);
}
END_TEST

/* A full file system shows when the file is made, not by a signal later. */
START_TEST(no_room)
{
    struct rlimit small = {64 * 1024, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_ptr_nonnull(strstr(open_error(&options), strerror(EFBIG)));
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

/* --- several at once --- */

static void open_and_spend(void)
{
    struct err err;
    struct region *r = region_open(&options, &err);
    int seat = r ? region_seat_claim(r) : -1;
    if (seat < 0 || !use(r, seat, 10))
        _exit(1);
    pause(); /* the seat is kept until all are there */
}

START_TEST(who_starts_at_once_meets)
{
    enum { STARTERS = 6, ROUNDS = 12 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid[STARTERS];
        if (round % 3 == 1) /* a bad file to be replaced, by one of them */
            ck_assert_int_eq(truncate(path, 100), 0);
        if (round % 3 == 2)
            unlink(path);
        for (int i = 0; i < STARTERS; i++) {
            pid[i] = fork();
            if (pid[i] == 0)
                open_and_spend();
        }
        struct region *r = NULL;
        unsigned left = 500, want = round % 3 == 0 && round > 0 ? 380 : 440;
        for (int tries = 0; left != want && tries < 500; tries++) {
            nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
            if (access(path, F_OK) != 0 || (r == NULL && tries < 10))
                continue; /* the parent is not to be one of the starters */
            r = r ? r : open_ok(&options);
            left = tokens(r);
        }
        ck_assert_uint_eq(left, want);
        region_close(r);
        for (int i = 0; i < STARTERS; i++)
            kill_and_wait(pid[i]);
    }
}
END_TEST

static TCase *seats(void)
{
    TCase *tc = tcase_create("seats");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, sizes_that_cannot_be);
    tcase_add_test(tc, seats_run_out_and_come_back);
    tcase_add_test(tc, two_openings_one_truth);
    tcase_add_test(tc, a_worker_keeps_the_seats_of_its_dead_master);
    tcase_add_test(tc, a_file_survives_kill_9);
    tcase_add_test(tc, a_worker_that_died_is_replaced);
    return tc;
}

static TCase *files(void)
{
    TCase *tc = tcase_create("files");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_byte_of_the_header_counts);
    tcase_add_test(tc, headers_of_others);
    tcase_add_test(tc, impossible_values_are_not_trusted);
    tcase_add_test(tc, sizes_and_modes);
    tcase_add_test(tc, what_is_not_ours_is_kept);
    tcase_add_test(tc, what_is_replaced_in_use);
    tcase_add_test(tc, names_that_cannot_be);
    tcase_add_test(tc, no_room);
    tcase_add_test(tc, who_starts_at_once_meets);
    return tc;
}

UNIT_MAIN("region", seats, files)
