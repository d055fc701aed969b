/* F10: turns for handshakes: how many, whose is next, and who gives way. */
#include "unit.h"

#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/net/loop.h"
#include "proxy/handshakes.h"

enum { MAX = 2, N = 8 };

static struct loop *l;
static struct handshakes hs;
static struct handshake h[N];
/* What happened: numbers of handshakes in the order of their calls. */
static int started[32], cut[32];
static int n_started, n_cut;
static int leaves_at_once; /* the one whose start() ends it; -1: none */

static int number(const struct handshake *one)
{
    return (int)(one - h);
}

static void on_start(struct handshake *one)
{
    ck_assert_int_eq(one->state, HANDSHAKE_RUNS);
    started[n_started++] = number(one);
    if (number(one) == leaves_at_once)
        handshakes_leave(&hs, one);
}

static void on_cut(struct handshake *one)
{
    cut[n_cut++] = number(one);
    handshakes_leave(&hs, one);
}

static void on_end(void *arg)
{
    loop_stop(arg);
}

static void run_for(int64_t ns)
{
    struct loop_timer t;
    loop_timer_init(&t, l, on_end, l);
    loop_timer_arm(&t, ns);
    loop_run(l);
    loop_timer_fini(&t);
}

static void setup(void)
{
    struct err err;
    l = loop_new(&err);
    ck_assert_ptr_nonnull(l);
    memset(h, 0, sizeof h);
    n_started = n_cut = 0;
    leaves_at_once = -1;
    handshakes_init(&hs, l, MAX, on_start, on_cut);
}

static void teardown(void)
{
    for (int i = 0; i < N; i++)
        handshakes_leave(&hs, &h[i]);
    run_for(0);
    handshakes_fini(&hs);
    loop_free(l);
}

static void enter(int first, int last)
{
    for (int i = first; i <= last; i++)
        handshakes_enter(&hs, &h[i]);
}

START_TEST(no_more_than_may_run)
{
    enter(0, 4);
    ck_assert_int_eq(n_started, MAX);
    ck_assert_uint_eq(hs.n_running, MAX);
    ck_assert_uint_eq(hs.n_waiting, 3);
    run_for(0);
    ck_assert_int_eq(n_started, MAX);
}
END_TEST

START_TEST(the_newest_is_next)
{
    enter(0, 4);
    handshakes_leave(&hs, &h[0]);
    ck_assert_int_eq(n_started, MAX); /* not from within */
    run_for(0);
    ck_assert_int_eq(n_started, MAX + 1);
    ck_assert_int_eq(started[MAX], 4);
    handshakes_leave(&hs, &h[1]);
    handshakes_leave(&hs, &h[4]);
    run_for(0);
    ck_assert_int_eq(n_started, MAX + 3);
    ck_assert_int_eq(started[MAX + 1], 3);
    ck_assert_int_eq(started[MAX + 2], 2);
    ck_assert_uint_eq(hs.n_waiting, 0);
}
END_TEST

START_TEST(who_waits_may_leave)
{
    enter(0, 3);
    handshakes_leave(&hs, &h[3]);
    handshakes_leave(&hs, &h[3]); /* idle: nothing */
    ck_assert_uint_eq(hs.n_waiting, 1);
    handshakes_leave(&hs, &h[0]);
    run_for(0);
    ck_assert_int_eq(n_started, MAX + 1);
    ck_assert_int_eq(started[MAX], 2);
    handshakes_enter(&hs, &h[3]); /* again */
    ck_assert_int_eq(h[3].state, HANDSHAKE_WAITS);
}
END_TEST

/* A start that fails hands its turn on. */
START_TEST(a_start_may_end_it)
{
    enter(0, 4);
    leaves_at_once = 4;
    handshakes_leave(&hs, &h[0]);
    run_for(0);
    run_for(0);
    ck_assert_int_eq(started[MAX], 4);
    ck_assert_int_eq(h[4].state, HANDSHAKE_IDLE);
    ck_assert_int_eq(started[MAX + 1], 3);
    ck_assert_uint_eq(hs.n_running, MAX);
    ck_assert_uint_eq(hs.n_waiting, 1);
}
END_TEST

/* Nobody is cut while nobody waits; then only as many as wait, the oldest first, after 2 s. */
START_TEST(who_stands_still_gives_way)
{
    int64_t begin = loop_now_ns(l);
    enter(0, 1);
    run_for(2 * NS_PER_S + 100 * NS_PER_MS);
    ck_assert_int_eq(n_cut, 0);
    handshakes_enter(&hs, &h[2]);
    for (int i = 0; i < 100 && n_started < 3; i++)
        run_for(50 * NS_PER_MS);
    ck_assert_int_eq(n_cut, 1);
    ck_assert_int_eq(cut[0], 0);
    ck_assert_int_eq(started[2], 2);
    ck_assert_int_eq(h[1].state, HANDSHAKE_RUNS);
    ck_assert_int_ge(loop_now_ns(l) - begin, 2 * NS_PER_S);
}
END_TEST

START_TEST(nobody_gives_way_before_its_time)
{
    int64_t begin = loop_now_ns(l);
    enter(0, 3);
    for (int i = 0; i < 200 && n_started < 4; i++) {
        run_for(50 * NS_PER_MS);
        ck_assert(n_cut == 0 || loop_now_ns(l) - begin >= 2 * NS_PER_S);
    }
    ck_assert_int_eq(n_cut, 2);
    ck_assert_int_eq(cut[0], 0);
    ck_assert_int_eq(cut[1], 1);
    ck_assert_int_eq(started[2], 3);
    ck_assert_int_eq(started[3], 2);
}
END_TEST

static TCase *turns(void)
{
    TCase *tc = tcase_create("handshakes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, no_more_than_may_run);
    tcase_add_test(tc, the_newest_is_next);
    tcase_add_test(tc, who_waits_may_leave);
    tcase_add_test(tc, a_start_may_end_it);
    tcase_add_test(tc, who_stands_still_gives_way);
    tcase_add_test(tc, nobody_gives_way_before_its_time);
    return tc;
}

UNIT_MAIN("handshakes", turns)
