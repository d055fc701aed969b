/* Many on one entry, killed and frozen at random; the same by threads, for tools that follow the
 * order of memory accesses (tests/shm/tsan.sh).
 *
 * Each worker keeps a journal: what it is about to do, and what it has done. After a round of kills
 * the sums of the journals are compared with the region: what differs must be covered by what the
 * killed were about to do, one operation each.
 *
 * RETRYD_STRESS=full: more workers, 6,000 kills. */
#include "io/shm/budgets.h"
#include "io/shm/cow.h"
#include "io/shm/layout.h"
#include "unit.h"

#include "core/base/rng.h"
#include "core/base/units.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 16,          /* so few that the other keys must evict each other */
    COUNTER = SLOTS + 3, /* an overflow slot, for a limiter that counts its own changes */
    COST = 5,
    CAPACITY = 1000000,
    OTHER_KEYS = 40,
    WORKERS_MAX = 16,
};

enum intent { NOTHING, COUNT, SPEND, REFUND };

struct journal {
    _Alignas(64) _Atomic unsigned intent;
    _Atomic uint64_t ops, counted, torn;
    _Atomic int64_t owed;
};

struct shared {
    struct journal journal[WORKERS_MAX];
    _Atomic int stop;
};

static struct region *region;
static struct shared *shared;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static unsigned below(struct rng *rng, unsigned n)
{
    return (unsigned)(rng_u64(rng) % n);
}

/* --- a worker --- */

struct worker {
    struct budgets *t;
    struct budget *b;
    struct journal *journal;
    unsigned seat;
    struct rng rng;
};

static struct limiter numbered(int64_t n)
{
    return (struct limiter){.fill_rate = (double)n,
                            .cap = (double)n,
                            .tx = (double)n,
                            .last_max = (double)n,
                            .refilled_ns = n,
                            .throttled_ns = n,
                            .tx_bucket = (uint32_t)n,
                            .tx_count = (uint32_t)n};
}

static void intend(struct worker *w, enum intent what)
{
    atomic_store(&w->journal->intent, (unsigned)what);
}

static void count(struct worker *w)
{
    struct cow_copy copy;
    struct limiter next;
    intend(w, COUNT);
    do {
        cow_read(region, COUNTER, 0, &copy);
        int64_t n = copy.limiter.refilled_ns;
        struct limiter whole = numbered(n);
        if (memcmp(&copy.limiter, &whole, sizeof whole) != 0)
            atomic_fetch_add(&w->journal->torn, 1);
        next = numbered(n + 1);
    } while (!cow_publish(region, COUNTER, w->seat, 0, copy.head, &next));
    atomic_fetch_add(&w->journal->counted, 1);
    intend(w, NOTHING);
}

static void spend(struct worker *w)
{
    intend(w, SPEND);
    if (w->b->ops->spend(w->b, COST, CAPACITY))
        atomic_fetch_add(&w->journal->owed, COST);
    intend(w, NOTHING);
}

/* Gives back only what it owes, so that a sum is exact. */
static void refund(struct worker *w)
{
    if (atomic_load(&w->journal->owed) < COST)
        return;
    intend(w, REFUND);
    w->b->ops->refund(w->b, COST);
    atomic_fetch_sub(&w->journal->owed, COST);
    intend(w, NOTHING);
}

static void use_other_key(struct worker *w)
{
    char key[16];
    int n = snprintf(key, sizeof key, "key-%u", below(&w->rng, OTHER_KEYS));
    struct slice name = slice_of(key, (size_t)n);
    struct budget *b = budgets_acquire(w->t, name, name, now_ns());
    if (b->ops->spend(b, 1, 500))
        b->ops->refund(b, 1);
    budgets_wait(b, 1);
    budgets_wait(b, -1);
    budgets_release(b);
}

static void take_turn(struct worker *w)
{
    int64_t now = now_ns();
    budgets_wait(w->b, 1);
    budgets_show_head(w->b, now);
    if (!budgets_is_behind(w->b, now, now - NS_PER_S) && budgets_token_wait(w->b, now) == 0)
        w->b->ops->admit(w->b, now);
    budgets_show_head(w->b, 0);
    budgets_wait(w->b, -1);
}

static void work(struct worker *w)
{
    unsigned what = below(&w->rng, 16);
    if (what < 5)
        count(w);
    else if (what < 8)
        spend(w);
    else if (what < 11)
        refund(w);
    else if (what < 12)
        w->b->ops->admit(w->b, now_ns());
    else if (what < 13)
        take_turn(w);
    else if (what < 14)
        w->b->ops->observe(w->b, below(&w->rng, 50) == 0, now_ns());
    else
        use_other_key(w);
    atomic_fetch_add(&w->journal->ops, 1);
}

static void worker_init(struct worker *w, unsigned index, unsigned seat, uint64_t life)
{
    w->journal = &shared->journal[index];
    w->seat = seat;
    rng_seed(&w->rng, (const uint64_t[4]){index + 1, life, 3, 4});
    w->t = budgets_new(region, (int)seat);
    w->b = budgets_acquire(w->t, SLICE("k"), SLICE("the one"), now_ns());
}

static void worker_fini(struct worker *w)
{
    budgets_release(w->b);
    budgets_free(w->t);
}

/* --- the audit --- */

struct audit {
    int64_t drift_owed, drift_counted; /* what the killed had done and not written down */
    int64_t killed[REFUND + 1];        /* in this round, by what they were about to do */
};

static bool keep_the_one(void *arg, const struct budgets_entry *e)
{
    if (strcmp(e->label, "the one") == 0)
        *(struct budgets_entry *)arg = *e;
    return true;
}

static void audit(struct audit *a, unsigned workers)
{
    struct cow_copy copy;
    struct budgets_entry e = {0};
    int64_t owed = a->drift_owed, counted = a->drift_counted;
    for (unsigned i = 0; i < workers; i++) {
        const struct journal *j = &shared->journal[i];
        owed += atomic_load(&j->owed);
        counted += (int64_t)atomic_load(&j->counted);
        ck_assert_uint_eq(atomic_load(&j->torn), 0);
    }
    ck_assert(cow_read_any(region, COUNTER, &copy));
    int64_t more = copy.limiter.refilled_ns - counted;
    ck_assert_int_eq((int64_t)(copy.head >> 8), copy.limiter.refilled_ns);
    ck_assert_msg(more >= 0 && more <= a->killed[COUNT], "%lld changes too many", (long long)more);
    a->drift_counted += more;

    budgets_walk(region, now_ns(), keep_the_one, &e);
    ck_assert_uint_eq(e.capacity, CAPACITY);
    ck_assert(e.limited && e.rate_limit >= 0.5);
    int64_t extra = (int64_t)(CAPACITY - e.tokens) - owed;
    ck_assert_msg(extra >= -COST * a->killed[REFUND] && extra <= COST * a->killed[SPEND],
                  "%lld tokens too many are owed", (long long)extra);
    a->drift_owed += extra;
    memset(a->killed, 0, sizeof a->killed);
}

/* The one that all are on: with a limiter that holds back, it keeps its place for good. */
static void throttle_the_one(void)
{
    int seat = region_seat_claim(region);
    struct worker w;
    worker_init(&w, WORKERS_MAX - 1, (unsigned)seat, 0);
    w.b->ops->observe(w.b, true, now_ns());
    worker_fini(&w);
    region_seat_release(region, seat);
}

static void setup(void)
{
    struct err err;
    region = region_open(&(struct region_options){.slots = SLOTS}, &err);
    ck_assert_ptr_nonnull(region);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    throttle_the_one();
}

static void teardown(void)
{
    munmap(shared, sizeof *shared);
    region_close(region);
}

/* --- processes --- */

struct crew {
    unsigned workers;
    pid_t pid[WORKERS_MAX];
    int seat[WORKERS_MAX];
    uint64_t lives;
    struct rng rng;
};

static void hire(struct crew *c, unsigned i)
{
    c->seat[i] = region_seat_claim(region);
    ck_assert_int_ge(c->seat[i], 0);
    c->lives++;
    c->pid[i] = fork();
    ck_assert_int_ge(c->pid[i], 0);
    if (c->pid[i] != 0)
        return;
    struct worker w;
    worker_init(&w, i, (unsigned)c->seat[i], c->lives);
    while (!atomic_load(&shared->stop))
        work(&w);
    _exit(0);
}

static void bury(struct crew *c, struct audit *a, unsigned i)
{
    int status;
    kill(c->pid[i], SIGKILL);
    ck_assert_int_eq(waitpid(c->pid[i], &status, 0), c->pid[i]);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    a->killed[atomic_load(&shared->journal[i].intent)]++;
    atomic_store(&shared->journal[i].intent, NOTHING);
    region_seat_release(region, c->seat[i]);
}

static void pause_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* One is frozen wherever it is; all others must get on, far. */
static void freeze_one(struct crew *c)
{
    uint64_t goal[WORKERS_MAX];
    unsigned frozen = below(&c->rng, c->workers), left = c->workers - 1;
    int64_t deadline_ns = now_ns() + 30 * NS_PER_S;
    kill(c->pid[frozen], SIGSTOP);
    for (unsigned i = 0; i < c->workers; i++)
        goal[i] = atomic_load(&shared->journal[i].ops) + 100;
    while (left > 0) {
        ck_assert_msg(now_ns() < deadline_ns, "survivors wait for a frozen worker");
        pause_ns(NS_PER_MS);
        left = 0;
        for (unsigned i = 0; i < c->workers; i++)
            left += i != frozen && atomic_load(&shared->journal[i].ops) < goal[i];
    }
    kill(c->pid[frozen], SIGCONT);
}

/* All come to the end of what they are doing, and go. */
static void dismiss(struct crew *c)
{
    int64_t deadline_ns = now_ns() + 30 * NS_PER_S;
    atomic_store(&shared->stop, 1);
    for (unsigned i = 0; i < c->workers; i++) {
        int status;
        pid_t pid;
        while ((pid = waitpid(c->pid[i], &status, WNOHANG)) == 0) {
            ck_assert_msg(now_ns() < deadline_ns, "a survivor waits");
            pause_ns(NS_PER_MS);
        }
        ck_assert_int_eq(pid, c->pid[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        region_seat_release(region, c->seat[i]);
    }
    atomic_store(&shared->stop, 0);
}

static bool full(void)
{
    const char *mode = getenv("RETRYD_STRESS");
    return mode && strcmp(mode, "full") == 0;
}

START_TEST(killed_at_random)
{
    const unsigned rounds = full() ? 300 : 12, kills = full() ? 20 : 15;
    struct crew c = {.workers = full() ? 12 : 8};
    struct audit a = {.drift_owed = 0};
    int64_t caught[REFUND + 1] = {0};
    uint64_t ops = 0;
    rng_seed(&c.rng, (const uint64_t[4]){(uint64_t)now_ns(), 2, 3, 4});
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < c.workers; i++)
            hire(&c, i);
        for (unsigned k = 0; k < kills; k++) {
            pause_ns((int64_t)(rng_unit(&c.rng) * 2e6));
            unsigned i = below(&c.rng, c.workers);
            bury(&c, &a, i);
            hire(&c, i);
        }
        freeze_one(&c);
        dismiss(&c);
        for (int i = 0; i <= REFUND; i++)
            caught[i] += a.killed[i];
        audit(&a, c.workers);
    }
    for (unsigned i = 0; i < c.workers; i++)
        ops += atomic_load(&shared->journal[i].ops);
    struct budgets_totals totals;
    budgets_totals(region, &totals);
    ck_assert_uint_gt(totals.evicted, 0);
    printf("%u processes, %u kills (%lld in a change, %lld in a spend, %lld in a refund), %llu "
           "operations, %llu evictions\n",
           c.workers, rounds * kills, (long long)caught[COUNT], (long long)caught[SPEND],
           (long long)caught[REFUND], (unsigned long long)ops, (unsigned long long)totals.evicted);
}
END_TEST

/* --- threads --- */

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    for (unsigned i = 0; i < 20000; i++)
        work(w);
    return NULL;
}

START_TEST(threads)
{
    enum { THREADS = 4 };
    struct worker w[THREADS];
    pthread_t id[THREADS];
    struct audit a = {.drift_owed = 0};
    for (unsigned i = 0; i < THREADS; i++) {
        int seat = region_seat_claim(region);
        ck_assert_int_ge(seat, 0);
        worker_init(&w[i], i, (unsigned)seat, 1);
    }
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&id[i], NULL, thread_main, &w[i]), 0);
    for (unsigned i = 0; i < 50; i++) { /* people look on, and one resets */
        struct budgets_entry e;
        budgets_walk(region, now_ns(), keep_the_one, &e);
        budgets_reset(region, SLICE("key-1"));
    }
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(id[i], NULL), 0);
    audit(&a, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        worker_fini(&w[i]);
}
END_TEST

static TCase *processes(void)
{
    TCase *tc = tcase_create("processes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, full() ? 3600 : 100);
    tcase_add_test(tc, killed_at_random);
    return tc;
}

static TCase *threaded(void)
{
    TCase *tc = tcase_create("threads");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, threads);
    return tc;
}

UNIT_MAIN("stress", processes, threaded)
