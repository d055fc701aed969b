/* Limiters by copy on write, stopped and killed at every single instruction.
 *
 * A child changes a limiter, a quota, or claims an entry, and is single-stepped by its parent:
 * after k instructions the parent does the same through another seat, and then kills the child, or
 * lets it finish. For every k until the child is done, nothing is torn, lost, doubled or waited
 * for. */
#include "io/shm/budgets.h"
#include "io/shm/cow.h"
#include "io/shm/layout.h"
#include "unit.h"

#include "core/base/units.h"
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define T0 (1000 * NS_PER_S)

static struct region *region;
static struct budgets *mine, *childs;

static void setup(void)
{
    struct err err;
    region = region_open(&(struct region_options){.slots = 16}, &err);
    ck_assert_ptr_nonnull(region);
    mine = budgets_new(region, region_seat_claim(region));
    childs = budgets_new(region, region_seat_claim(region));
}

static void teardown(void)
{
    budgets_free(mine);
    budgets_free(childs);
    region_close(region);
}

/* --- the cells alone --- */

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

START_TEST(the_last_version_is_read)
{
    struct cow_copy copy;
    cow_read(region, 3, 7, &copy);
    ck_assert_uint_eq(copy.head, 0);
    ck_assert(!copy.limiter.begun);
    for (int64_t n = 1; n <= 1000; n++) {
        struct limiter next = numbered(n);
        ck_assert(cow_publish(region, 3, (unsigned)(n * n % 5), 7, copy.head, &next));
        ck_assert(!cow_publish(region, 3, 6, 7, copy.head, &next));
        cow_read(region, 3, 7, &copy);
        ck_assert_mem_eq(&copy.limiter, &next, sizeof next);
        ck_assert_uint_eq(copy.head >> 8, (uint64_t)n);
    }
    struct limiter zero = {0};
    cow_read(region, 3, 8, &copy);
    ck_assert_mem_eq(&copy.limiter, &zero, sizeof zero);
    cow_reset(region, 3);
    cow_read(region, 3, 7, &copy);
    ck_assert_mem_eq(&copy.limiter, &zero, sizeof zero);
    ck_assert_uint_eq(copy.head >> 8, 1001);
}
END_TEST

START_TEST(a_head_of_no_cell)
{
    struct cow_copy copy;
    atomic_store(&region->slots[0].head, 0x1ff);
    ck_assert(!cow_read_any(region, 0, &copy));
    ck_assert(!copy.limiter.begun);
    atomic_store(&region->slots[0].head, 0x100 | (2 * SHM_SEATS + 1));
    ck_assert(!cow_read_any(region, 0, &copy));
    atomic_store(&region->slots[0].head, 0x100 | (2 * SHM_SEATS));
    ck_assert(cow_read_any(region, 0, &copy));
}
END_TEST

/* A reader that was overtaken meets the change, whatever it had copied so far. */
START_TEST(a_seat_never_writes_what_is_published)
{
    struct cow_copy copy;
    uint64_t seen = 0;
    for (int64_t n = 1; n <= 100; n++) {
        struct limiter next = numbered(n);
        cow_read(region, 0, 1, &copy);
        ck_assert(cow_publish(region, 0, 2, 1, copy.head, &next));
        uint64_t cell = atomic_load(&region->slots[0].head) & 0xff;
        ck_assert(cell == 5 || cell == 6);
        ck_assert_uint_ne(cell, seen);
        seen = cell;
    }
}
END_TEST

/* --- every instruction --- */

struct story {
    void (*prepare)(void);          /* before both begin; may leave them their budgets */
    void (*act)(struct budgets *t); /* what both do, once each */
    unsigned (*done)(void);         /* how many of them have taken effect */
};

static struct budget *acquire(struct budgets *t)
{
    return budgets_acquire(t, SLICE("k"), SLICE("label"), T0);
}

/* What a seat acquired before it began; else it acquires on its way. */
static struct budget *ahead[2];

static struct budget *begin_act(struct budgets *t)
{
    struct budget *b = t == mine ? ahead[0] : t == childs ? ahead[1] : NULL;
    return b ? b : acquire(t);
}

static void end_act(struct budget *b)
{
    if (b != ahead[0] && b != ahead[1])
        budgets_release(b);
}

static void act_spend(struct budgets *t)
{
    struct budget *b = begin_act(t);
    b->ops->spend(b, 5, 500);
    end_act(b);
}

static void act_refund(struct budgets *t)
{
    struct budget *b = begin_act(t);
    b->ops->refund(b, 5);
    end_act(b);
}

static void act_observe(struct budgets *t)
{
    struct budget *b = begin_act(t);
    b->ops->observe(b, false, T0);
    end_act(b);
}

static void act_admit(struct budgets *t)
{
    struct budget *b = begin_act(t);
    b->ops->admit(b, T0);
    end_act(b);
}

/* What all owe. There is one entry, or none. */
static unsigned debt(void)
{
    unsigned sum = 0, entries = 0;
    for (uint32_t i = 0; i < region->n_slots + SHM_OVERFLOW; i++) {
        uint64_t word = atomic_load(&region->slots[i].word);
        sum += shm_debt(word);
        entries += word != 0;
    }
    ck_assert_uint_le(entries, 1);
    return sum;
}

static unsigned done_spend(void)
{
    return debt() / 5;
}

static unsigned done_refund(void)
{
    return (20 - debt()) / 5;
}

static struct limiter limiter_now(void)
{
    struct cow_copy copy = {.head = 0};
    for (uint32_t i = 0; i < region->n_slots && copy.head == 0; i++)
        ck_assert(cow_read_any(region, i, &copy));
    ck_assert(limiter_is_sane(&copy.limiter, T0));
    return copy.limiter;
}

static unsigned done_observe(void)
{
    return limiter_now().tx_count;
}

static unsigned done_admit(void)
{
    return (unsigned)(10.0 - limiter_now().cap);
}

static void acquire_ahead(void)
{
    ahead[0] = acquire(mine);
    ahead[1] = acquire(childs);
}

/* A limiter that holds back, with 10 tokens. */
static void ten_send_tokens(void)
{
    acquire_ahead();
    struct budget *b = ahead[0];
    struct limiter l;
    struct cow_copy copy;
    b->ops->observe(b, true, T0);
    for (uint32_t i = 0; i < region->n_slots; i++) {
        cow_read_any(region, i, &copy);
        if (copy.head == 0)
            continue;
        l = copy.limiter;
        l.fill_rate = l.cap = 10.0;
        ck_assert(cow_publish(region, i, 0, copy.id, copy.head, &l));
    }
}

static void owe_twenty(void)
{
    acquire_ahead();
    ck_assert(ahead[0]->ops->spend(ahead[0], 20, 500));
}

static pid_t stopped_child(const struct story *s)
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        s->act(childs);
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSTOPPED(status), "may not trace its own child");
    return pid;
}

/* Steps k instructions; false: the child was done before. */
static bool step(pid_t pid, unsigned k)
{
    int status;
    while (k-- > 0) {
        ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP)
            return false;
    }
    return true;
}

static void finish(pid_t pid)
{
    int status;
    ck_assert_int_eq(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

static void end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

/* What happens if the child goes no further: to others, and to who gets its seat. */
static void as_if_killed(const struct story *s)
{
    unsigned before = s->done();
    ck_assert_uint_le(before, 1);
    s->act(mine);
    ck_assert_uint_eq(s->done(), before + 1);
    region_seat_release(region, 1);
    ck_assert_int_eq(region_seat_claim(region), 1);
    struct budgets *heir = budgets_new(region, 1);
    s->act(heir);
    budgets_free(heir);
    ck_assert_uint_eq(s->done(), before + 2);
}

static void release_ahead(void)
{
    for (int i = 0; i < 2; i++) {
        if (ahead[i])
            budgets_release(ahead[i]);
        ahead[i] = NULL;
    }
}

static void begin(const struct story *s)
{
    setup();
    if (s->prepare)
        s->prepare();
}

/* How many instructions the child has. */
static unsigned killed_at_each(const struct story *s)
{
    unsigned k = 0;
    begin(s);
    char *bytes = malloc(region->bytes);
    pid_t pid = stopped_child(s);
    do {
        memcpy(bytes, region->header, region->bytes);
        as_if_killed(s);
        memcpy(region->header, bytes, region->bytes);
        k++;
    } while (step(pid, 1));
    ck_assert_uint_eq(s->done(), 1);
    end(pid);
    free(bytes);
    release_ahead();
    teardown();
    return k;
}

static void interfered_after(const struct story *s, unsigned k)
{
    begin(s);
    pid_t pid = stopped_child(s);
    bool more = step(pid, k); /* not if the allocator had less to do this time */
    s->act(mine);
    if (more)
        finish(pid);
    end(pid);
    ck_assert_msg(s->done() == 2, "after %u instructions: %u", k, s->done());
    release_ahead();
    teardown();
}

static void at_every_instruction(const struct story *s)
{
    const unsigned interferences = 12;
    unsigned n = killed_at_each(s);
    ck_assert_uint_gt(n, 50);
    for (unsigned k = 0; k < n; k += n / interferences + 1)
        interfered_after(s, k);
}

START_TEST(a_claim_and_a_spend)
{
    at_every_instruction(&(struct story){NULL, act_spend, done_spend});
}
END_TEST

START_TEST(a_refund)
{
    at_every_instruction(&(struct story){owe_twenty, act_refund, done_refund});
}
END_TEST

START_TEST(a_result)
{
    at_every_instruction(&(struct story){acquire_ahead, act_observe, done_observe});
}
END_TEST

START_TEST(a_send_token)
{
    at_every_instruction(&(struct story){ten_send_tokens, act_admit, done_admit});
}
END_TEST

static TCase *cells(void)
{
    TCase *tc = tcase_create("cells");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_last_version_is_read);
    tcase_add_test(tc, a_head_of_no_cell);
    tcase_add_test(tc, a_seat_never_writes_what_is_published);
    return tc;
}

static TCase *instructions(void)
{
    TCase *tc = tcase_create("instructions");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, a_claim_and_a_spend);
    tcase_add_test(tc, a_refund);
    tcase_add_test(tc, a_result);
    tcase_add_test(tc, a_send_token);
    return tc;
}

UNIT_MAIN("cow", cells, instructions)
