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
    tcase_add_test(tc, why_names_are_distinct);
    return tc;
}

UNIT_MAIN("verdict", verdicts)
