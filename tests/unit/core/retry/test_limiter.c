/* The limiter beyond what the vectors say: creation, the clock, what a keeper may rely on, and that
 * many who share one find the rate of their server. */
#include "unit.h"

#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/retry/limiter.h"
#include <math.h>
#include <string.h>

#define S(x) ((int64_t)((x)*1e9))

static int64_t step(struct limiter *l, enum limiter_event event, int64_t now_ns)
{
    struct limiter old = *l;
    int64_t wait_ns;
    limiter_step(&old, event, now_ns, l, &wait_ns);
    return wait_ns;
}

START_TEST(all_zero_is_created_by_its_first_event)
{
    for (int event = LIMITER_ACQUIRE; event <= LIMITER_THROTTLED; event++) {
        struct limiter zero = {0}, begun, a, b;
        int64_t wait_a, wait_b;
        limiter_begin(&begun, S(7.25));
        ck_assert(limiter_step(&zero, event, S(7.25), &a, &wait_a));
        limiter_step(&begun, event, S(7.25), &b, &wait_b);
        ck_assert_mem_eq(&a, &b, sizeof a);
        ck_assert_int_eq(wait_a, wait_b);
        ck_assert_uint_eq(a.tx_bucket, 14u);
        ck_assert_int_eq(a.throttled_ns, S(7.25));
    }
}
END_TEST

/* The clock may start at 0: a first refill there is one. */
START_TEST(zero_is_a_time)
{
    struct limiter l = {0};
    step(&l, LIMITER_THROTTLED, 0);
    ck_assert(l.refilled);
    ck_assert_int_eq(step(&l, LIMITER_ACQUIRE, S(0.1)), S(1.9));
    ck_assert_int_eq(step(&l, LIMITER_ACQUIRE, S(2)), 0);
}
END_TEST

START_TEST(holds_nothing_back_before_a_throttle)
{
    struct limiter l = {0}, next;
    int64_t wait_ns;
    step(&l, LIMITER_ACQUIRE, S(1));
    for (int i = 0; i < 1000; i++) {
        ck_assert(!limiter_step(&l, LIMITER_ACQUIRE, S(1), &next, &wait_ns));
        ck_assert_int_eq(wait_ns, 0);
        ck_assert_mem_eq(&l, &next, sizeof l);
    }
    step(&l, LIMITER_THROTTLED, S(1));
    ck_assert_int_gt(step(&l, LIMITER_ACQUIRE, S(1)), 0);
}
END_TEST

START_TEST(stays_enabled)
{
    struct limiter l = {0};
    step(&l, LIMITER_THROTTLED, S(1));
    for (int i = 0; i < 10000; i++)
        step(&l, LIMITER_OK, S(2) + i * NS_PER_S);
    ck_assert(l.enabled);
}
END_TEST

START_TEST(time_does_not_run_backwards)
{
    struct limiter l = {0};
    step(&l, LIMITER_THROTTLED, S(10));
    step(&l, LIMITER_OK, S(12));
    struct limiter before = l;
    int64_t late = step(&l, LIMITER_ACQUIRE, S(12));
    l = before;
    ck_assert_int_eq(step(&l, LIMITER_ACQUIRE, S(3)), late);
    ck_assert_int_eq(l.refilled_ns, S(12));
    step(&l, LIMITER_THROTTLED, S(11));
    ck_assert_int_eq(l.throttled_ns, S(12));
    ck_assert(limiter_is_sane(&l, S(12)));

    struct limiter young = {0};
    step(&young, LIMITER_ACQUIRE, S(5));
    step(&young, LIMITER_OK, S(4));
    ck_assert_int_eq(young.refilled_ns, S(5));
    ck_assert(limiter_is_sane(&young, S(5)));
}
END_TEST

/* When the wait is over, there is a token: nobody sleeps again for a rounding error. */
START_TEST(a_wait_is_long_enough)
{
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){1, 2, 3, 4});
    for (int i = 0; i < 100000; i++) {
        struct limiter l;
        limiter_begin(&l, 0);
        l.enabled = l.refilled = true;
        l.fill_rate = 0.5 + 1000.0 * rng_unit(&rng) * rng_unit(&rng);
        l.cap = rng_unit(&rng);
        l.refilled_ns = (int64_t)(rng_unit(&rng) * 1e15);
        int64_t now = l.refilled_ns + (int64_t)(rng_unit(&rng) * 1e6);
        int64_t wait = step(&l, LIMITER_ACQUIRE, now);
        if (wait > 0)
            ck_assert_int_eq(step(&l, LIMITER_ACQUIRE, now + wait), 0);
        ck_assert(l.cap >= 0.0);
    }
}
END_TEST

/* A keeper that replaces its value only when told to decides like one that always does. */
START_TEST(keeping_the_old_value_comes_to_the_same)
{
    struct rng rng;
    struct limiter always = {0}, told = {0}, next;
    int64_t now = S(3), wait_always, wait_told;
    unsigned refused = 0;
    rng_seed(&rng, (const uint64_t[4]){5, 6, 7, 8});
    for (int i = 0; i < 200000; i++) {
        now += (int64_t)(rng_unit(&rng) * 2e8);
        double r = rng_unit(&rng);
        enum limiter_event event = r < 0.7     ? LIMITER_ACQUIRE
                                   : r < 0.995 ? LIMITER_OK
                                               : LIMITER_THROTTLED;
        limiter_step(&always, event, now, &next, &wait_always);
        always = next;
        if (limiter_step(&told, event, now, &next, &wait_told))
            told = next;
        refused += wait_told > 0;
        ck_assert_int_le(llabs(wait_always - wait_told), 10);
        ck_assert(fabs(always.fill_rate - told.fill_rate) <= 1e-9 * always.fill_rate);
        ck_assert(limiter_is_sane(&told, now) && limiter_is_sane(&always, now));
    }
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(the_rate_clock_saturates)
{
    struct limiter l;
    limiter_begin(&l, 0);
    l.tx_count = (1u << 29) - 1;
    limiter_measure(&l, 1);
    ck_assert_uint_eq(l.tx_count, (1u << 29) - 1);
    ck_assert(l.begun && !l.enabled);
}
END_TEST

START_TEST(insane_values_are_told)
{
    struct limiter good = {0}, bad;
    const int64_t now = S(100);
    ck_assert(limiter_is_sane(&good, now));
    step(&good, LIMITER_THROTTLED, S(50));
    step(&good, LIMITER_OK, S(60));
    ck_assert(limiter_is_sane(&good, now));
#define BAD(change)                                                                                \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        ck_assert_msg(!limiter_is_sane(&bad, now), #change);                                       \
    } while (0)
    BAD(bad.fill_rate = 0.0);
    BAD(bad.fill_rate = (double)NAN);
    BAD(bad.fill_rate = (double)INFINITY);
    BAD(bad.cap = -1e-9);
    BAD(bad.cap = 1e3);
    BAD(bad.cap = (double)NAN);
    BAD(bad.tx = -1.0);
    BAD(bad.tx = (double)INFINITY);
    BAD(bad.last_max = (double)NAN);
    BAD(bad.throttled_ns = -1);
    BAD(bad.throttled_ns = S(70));
    BAD(bad.refilled_ns = S(101));
    BAD(bad.tx_bucket = 500);
    BAD(bad.refilled = false);
    BAD(bad.begun = false);
}
END_TEST

/* 50 closed-loop senders of 20 ms each, one limiter, a server of 100/s with a burst of 100. */
START_TEST(a_shared_limiter_finds_the_rate_of_its_server)
{
    enum { SENDERS = 50 };
    const int64_t latency = 20 * NS_PER_MS, tick = NS_PER_MS;
    struct limiter l = {0};
    int64_t due[SENDERS] = {0};
    bool sent[SENDERS] = {false};
    double server = 100.0;
    unsigned sends = 0, throttled = 0;
    for (int64_t now = 0; now < S(60); now += tick) {
        server = fmin(100.0, server + 0.1);
        for (int i = 0; i < SENDERS; i++) {
            if (due[i] > now)
                continue;
            if (sent[i]) {
                bool full = server < 1.0;
                server -= full ? 0.0 : 1.0;
                step(&l, full ? LIMITER_THROTTLED : LIMITER_OK, now);
                sent[i] = false;
                sends += now >= S(20);
                throttled += full && now >= S(20);
            }
            int64_t wait = step(&l, LIMITER_ACQUIRE, now);
            sent[i] = wait == 0;
            due[i] = now + (wait > 0 ? wait : latency);
        }
    }
    ck_assert_uint_ge(sends, 40 * 85);
    ck_assert_uint_le(sends, 40 * 115);
    ck_assert_uint_lt(throttled, sends / 20);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("limiter");
    tcase_add_test(tc, all_zero_is_created_by_its_first_event);
    tcase_add_test(tc, zero_is_a_time);
    tcase_add_test(tc, holds_nothing_back_before_a_throttle);
    tcase_add_test(tc, stays_enabled);
    tcase_add_test(tc, time_does_not_run_backwards);
    tcase_add_test(tc, a_wait_is_long_enough);
    tcase_add_test(tc, keeping_the_old_value_comes_to_the_same);
    tcase_add_test(tc, the_rate_clock_saturates);
    tcase_add_test(tc, insane_values_are_told);
    tcase_add_test(tc, a_shared_limiter_finds_the_rate_of_its_server);
    return tc;
}

UNIT_MAIN("limiter", cases)
