/* The order of the attempt loop: what is checked before what, and that nothing is spent too early.
 */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/retry/membudget.h"
#include "core/retry/verdict.h"

static unsigned draws;

static double full(void *state)
{
    (void)state;
    draws++;
    return 1.0;
}

static const struct rng_source rng = {full, NULL};
static const struct verdict_limits anything_goes = {true, true, INT64_MAX};

struct scene {
    struct retry_policy policy;
    struct membudget budget;
    struct retry_run run;
    struct verdict_limits limits;
    struct verdict v;
};

static struct scene scene_new(void)
{
    struct scene s = {.policy = retry_policy_standard_21, .limits = anything_goes};
    membudget_init(&s.budget);
    draws = 0;
    return s;
}

static const struct verdict *judge(struct scene *s, struct retry_outcome o)
{
    verdict_after(&s->policy, &s->run, &o, &s->limits, &s->budget.base, rng, &s->v);
    return &s->v;
}

static const struct retry_outcome ok = {.status = 200};
static const struct retry_outcome bad = {.status = 503};
static const struct retry_outcome slow = {.status = 429};
static const struct retry_outcome denied = {.status = 403};

static void expect(const struct verdict *v, enum verdict_what what, enum verdict_why why,
                   unsigned after)
{
    ck_assert_int_eq(v->what, what);
    ck_assert_str_eq(verdict_why_name(v->why), verdict_why_name(why));
    ck_assert_uint_eq(v->tokens_after, after);
    if (what == VERDICT_DELIVER)
        ck_assert_int_eq(v->delay_ns, 0);
}

START_TEST(retries_then_gives_up)
{
    struct scene s = scene_new();
    expect(judge(&s, bad), VERDICT_RETRY, VERDICT_WILL_RETRY, 486);
    ck_assert_int_eq(s.v.delay_ns, 50 * NS_PER_MS);
    ck_assert_uint_eq(s.v.tokens_before, 500);
    ck_assert_uint_eq(s.v.cost, 14);
    expect(judge(&s, slow), VERDICT_RETRY, VERDICT_WILL_RETRY, 481);
    ck_assert_int_eq(s.v.delay_ns, 2000 * NS_PER_MS);
    ck_assert_int_eq(s.run.waited_ns, 2050 * NS_PER_MS);
    expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_MAX_ATTEMPTS, 481);
    ck_assert_uint_eq(s.v.cost, 0);
    ck_assert_uint_eq(s.run.attempts, 3);
    ck_assert_uint_eq(draws, 2);
}
END_TEST

START_TEST(success_refunds_the_last_cost_only)
{
    struct scene s = scene_new();
    judge(&s, bad);
    judge(&s, slow);
    expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 486);
    ck_assert_uint_eq(s.v.tokens_before, 481);
}
END_TEST

START_TEST(first_success_gains_one_up_to_full)
{
    struct scene s = scene_new();
    expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 500);
    s.run = (struct retry_run){0};
    s.budget.debt = 14;
    expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 487);
    ck_assert_uint_eq(draws, 0);
}
END_TEST

START_TEST(final_results_cost_nothing)
{
    struct scene s = scene_new();
    judge(&s, bad);
    expect(judge(&s, denied), VERDICT_DELIVER, VERDICT_NOT_RETRYABLE, 486);
}
END_TEST

/* On the last attempt nothing is paid, and a long poll does not wait, whatever the quota. */
START_TEST(attempts_come_before_quota)
{
    struct scene s = scene_new();
    s.policy.max_attempts = 1;
    s.policy.long_poll = true;
    s.budget.debt = 500;
    expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_MAX_ATTEMPTS, 0);
    ck_assert_uint_eq(draws, 0);
}
END_TEST

START_TEST(quota_refuses)
{
    struct scene s = scene_new();
    s.budget.debt = 487;
    expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_QUOTA, 13);
    s.run = (struct retry_run){0};
    expect(judge(&s, slow), VERDICT_RETRY, VERDICT_WILL_RETRY, 8);
}
END_TEST

START_TEST(long_poll_waits_when_refused)
{
    struct scene s = scene_new();
    s.policy.long_poll = true;
    s.budget.debt = 500;
    struct retry_outcome o = slow;
    o.has_retry_after = true;
    o.retry_after_ns = 3 * NS_PER_S;
    expect(judge(&s, o), VERDICT_PENALTY, VERDICT_QUOTA, 0);
    ck_assert_int_eq(s.v.delay_ns, 3 * NS_PER_S);
    ck_assert_int_eq(s.run.waited_ns, 3 * NS_PER_S);
    ck_assert_uint_eq(s.v.cost, 0);
}
END_TEST

/* Each of the three limits stops the retry, and leaves the quota as it was. */
START_TEST(limits_are_checked_before_spending)
{
    for (int long_poll = 0; long_poll <= 1; long_poll++) {
        struct scene s = scene_new();
        s.policy.long_poll = long_poll;
        s.limits.replayable = false;
        expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_UNREPLAYABLE, 500);
        s = scene_new();
        s.policy.long_poll = long_poll;
        s.limits.can_park = false;
        expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_OVERLOAD, 500);
        s = scene_new();
        s.policy.long_poll = long_poll;
        s.limits.max_delay_ns = 50 * NS_PER_MS - 1;
        expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_DEADLINE, 500);
        s = scene_new();
        s.limits.max_delay_ns = 50 * NS_PER_MS;
        expect(judge(&s, bad), VERDICT_RETRY, VERDICT_WILL_RETRY, 486);
    }
}
END_TEST

/* The deadline may be past already: even a wait of nothing is then too long. */
START_TEST(a_past_deadline_stops_everything)
{
    struct scene s = scene_new();
    s.policy.base_transient_ns = 0;
    s.limits.max_delay_ns = -1;
    expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_DEADLINE, 500);
}
END_TEST

START_TEST(off_touches_nothing)
{
    struct scene s = scene_new();
    s.policy.mode = RETRY_MODE_OFF;
    s.budget.debt = 100;
    expect(judge(&s, bad), VERDICT_DELIVER, VERDICT_OFF, 0);
    expect(judge(&s, denied), VERDICT_DELIVER, VERDICT_NOT_RETRYABLE, 0);
    expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 0);
    ck_assert_uint_eq(s.budget.debt, 100);
    ck_assert_uint_eq(s.run.attempts, 3);
}
END_TEST

/* retry-semantics 7.1: a timeout has its own price, unless the response was a throttling one. */
START_TEST(timeouts_cost_more_in_20)
{
    static const struct {
        enum retry_failure failure;
        unsigned status, cost;
    } prices[] = {
        {RETRY_FAIL_CONNECT_TIMEOUT, 0, 10},
        {RETRY_FAIL_TLS_TIMEOUT, 0, 10},
        {RETRY_FAIL_READ_TIMEOUT, 0, 10},
        {RETRY_FAIL_READ_TIMEOUT, 429, 5},
        {RETRY_FAIL_RESET, 0, 5},
        {RETRY_FAIL_NONE, 503, 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
        struct scene s = scene_new();
        s.policy = retry_policy_standard_20;
        judge(&s, (struct retry_outcome){.failure = prices[i].failure, .status = prices[i].status});
        ck_assert_uint_eq(s.v.cost, prices[i].cost);
        expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 500);
    }
}
END_TEST

START_TEST(a_throttled_end_gives_nothing_back)
{
    struct scene s = scene_new();
    judge(&s, bad);
    judge(&s, bad);
    expect(judge(&s, slow), VERDICT_DELIVER, VERDICT_MAX_ATTEMPTS, 472);
}
END_TEST

/* --- Java's quotas (legacy-modes 7, 8) --- */

static struct scene java(enum retry_quota style, unsigned tokens)
{
    struct scene s = scene_new();
    s.policy.quota = style;
    s.policy.max_attempts = 4;
    s.policy.cost_transient = s.policy.cost_timeout = 5;
    s.policy.cost_throttling = 0;
    s.budget.debt = 500 - tokens;
    return s;
}

enum { OK = 200, BAD = 503, SLOW = 429, DENIED = 403 };

static const struct {
    unsigned start, statuses[6];
    unsigned v1, v2; /* tokens at the end */
} sequences[] = {
    {500, {BAD, BAD, BAD, BAD}, 485, 485},
    {500, {BAD, BAD, OK}, 495, 495},
    {500, {BAD, SLOW, SLOW, SLOW}, 500, 495},
    {500, {BAD, BAD, SLOW, SLOW}, 495, 490},
    {500, {BAD, BAD, BAD, SLOW}, 490, 485},
    {500, {BAD, SLOW, OK}, 500, 496},
    {500, {SLOW, SLOW, SLOW, SLOW}, 500, 500},
    {490, {SLOW, OK}, 491, 491},
    {490, {OK}, 491, 491},
    {20, {DENIED}, 20, 20},
    {20, {BAD, DENIED}, 15, 15},
    {9, {BAD, BAD}, 4, 4},
    {0, {SLOW, OK}, 1, 1},
    {4, {DENIED}, 4, 4},
};

START_TEST(java_sequences)
{
    for (int v1 = 0; v1 <= 1; v1++) {
        struct scene s = java(v1 ? RETRY_QUOTA_JAVA_V1 : RETRY_QUOTA_JAVA, sequences[_i].start);
        const unsigned *status = sequences[_i].statuses;
        for (; *status; status++) {
            judge(&s, (struct retry_outcome){.status = *status});
            ck_assert_int_eq(s.v.what, status[1] ? VERDICT_RETRY : VERDICT_DELIVER);
        }
        ck_assert_uint_eq(s.v.tokens_after, v1 ? sequences[_i].v1 : sequences[_i].v2);
    }
}
END_TEST

/* A throttled attempt that may not be repeated for a reason of ours gives back as well. */
START_TEST(java_v1_gives_back_when_stopped)
{
    struct scene s = java(RETRY_QUOTA_JAVA_V1, 500);
    judge(&s, bad);
    s.limits.can_park = false;
    expect(judge(&s, slow), VERDICT_DELIVER, VERDICT_OVERLOAD, 500);
}
END_TEST

START_TEST(no_quota_touches_no_budget)
{
    struct scene s = scene_new();
    s.policy.quota = RETRY_QUOTA_NONE;
    s.budget.debt = 500;
    expect(judge(&s, bad), VERDICT_RETRY, VERDICT_WILL_RETRY, 0);
    ck_assert_uint_eq(s.v.cost, 0);
    expect(judge(&s, ok), VERDICT_DELIVER, VERDICT_SUCCESS, 0);
    ck_assert_uint_eq(s.budget.debt, 500);
}
END_TEST

/* cpp: with its clock put right a request goes out at once. */
START_TEST(clock_skew_may_not_wait)
{
    static const enum retry_rule order[] = {RETRY_RULE_CLOCK_SKEW, RETRY_RULE_NONE};
    static const struct retry_status any[] = {{400, 599, RETRY_TRANSIENT}};
    static const struct retry_skew skew = {
        .statuses = {any, 1}, .min_ns = NS_PER_S, .at_once = true};
    struct scene s = scene_new();
    s.policy.order = order;
    s.policy.skew = &skew;
    s.policy.clock_skew = true;
    struct retry_outcome o = {.status = 403, .date_skew_ns = NS_PER_S};
    expect(judge(&s, o), VERDICT_RETRY, VERDICT_WILL_RETRY, 486);
    ck_assert_int_eq(s.v.delay_ns, 0);
    ck_assert_uint_eq(draws, 0);
    o.date_skew_ns--;
    expect(judge(&s, o), VERDICT_DELIVER, VERDICT_NOT_RETRYABLE, 486);
}
END_TEST

/* A strategy without a cap, and nothing that bounds its waits. */
START_TEST(the_sum_of_waits_saturates)
{
    struct scene s = scene_new();
    s.policy.quota = RETRY_QUOTA_NONE;
    s.policy.max_backoff_ns = INT64_MAX;
    s.policy.max_attempts = 100;
    for (int i = 0; i < 99; i++)
        judge(&s, bad);
    ck_assert_int_eq(s.v.what, VERDICT_RETRY);
    ck_assert_int_eq(s.run.waited_ns, INT64_MAX);
}
END_TEST

START_TEST(why_names_are_distinct)
{
    for (int i = VERDICT_SUCCESS; i <= VERDICT_WILL_RETRY; i++)
        for (int j = VERDICT_SUCCESS; j < i; j++)
            ck_assert_str_ne(verdict_why_name((enum verdict_why)i),
                             verdict_why_name((enum verdict_why)j));
}
END_TEST

static TCase *verdicts(void)
{
    TCase *tc = tcase_create("verdict");
    tcase_add_test(tc, retries_then_gives_up);
    tcase_add_test(tc, success_refunds_the_last_cost_only);
    tcase_add_test(tc, first_success_gains_one_up_to_full);
    tcase_add_test(tc, final_results_cost_nothing);
    tcase_add_test(tc, attempts_come_before_quota);
    tcase_add_test(tc, quota_refuses);
    tcase_add_test(tc, long_poll_waits_when_refused);
    tcase_add_test(tc, limits_are_checked_before_spending);
    tcase_add_test(tc, a_past_deadline_stops_everything);
    tcase_add_test(tc, off_touches_nothing);
    tcase_add_test(tc, timeouts_cost_more_in_20);
    tcase_add_test(tc, a_throttled_end_gives_nothing_back);
    tcase_add_loop_test(tc, java_sequences, 0, ARRAY_LEN(sequences));
    tcase_add_test(tc, java_v1_gives_back_when_stopped);
    tcase_add_test(tc, no_quota_touches_no_budget);
    tcase_add_test(tc, clock_skew_may_not_wait);
    tcase_add_test(tc, the_sum_of_waits_saturates);
    tcase_add_test(tc, why_names_are_distinct);
    return tc;
}

UNIT_MAIN("verdict", verdicts)
