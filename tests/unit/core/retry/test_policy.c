/* The numbers of both behaviours and of the generic profile, and look-up in tables. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/retry/policy.h"

START_TEST(numbers_of_21)
{
    const struct retry_policy *p = &retry_policy_standard_21;
    ck_assert_int_eq(p->mode, RETRY_MODE_STANDARD);
    ck_assert_uint_eq(p->max_attempts, 3);
    ck_assert_int_eq(p->base_transient_ns, 50 * NS_PER_MS);
    ck_assert_int_eq(p->base_throttling_ns, NS_PER_S);
    ck_assert_int_eq(p->max_backoff_ns, 20 * NS_PER_S);
    ck_assert_uint_eq(p->quota_capacity, 500);
    ck_assert_uint_eq(p->cost_transient, 14);
    ck_assert_uint_eq(p->cost_throttling, 5);
    ck_assert_uint_eq(p->gain_first, 1);
    ck_assert_int_eq(p->retry_after, RETRY_AFTER_AMZ_MS);
    ck_assert(p->retry_429);
    ck_assert(!p->long_poll);
    ck_assert_uint_eq(p->codes.n, 0);
}
END_TEST

/* retry-semantics 10. */
START_TEST(numbers_of_20)
{
    const struct retry_policy *p = &retry_policy_standard_20, *q = &retry_policy_standard_21;
    ck_assert_int_eq(p->behaviour, RETRY_BEHAVIOUR_20);
    ck_assert_uint_eq(p->max_attempts, 3);
    ck_assert_int_eq(p->base_transient_ns, NS_PER_S);
    ck_assert_int_eq(p->base_throttling_ns, NS_PER_S);
    ck_assert_int_eq(p->max_backoff_ns, 20 * NS_PER_S);
    ck_assert_int_eq(p->jitter_transient, RETRY_JITTER_RANDOM_BASE);
    ck_assert_int_eq(p->jitter_throttling, RETRY_JITTER_RANDOM_BASE);
    ck_assert_int_eq(p->retry_after, RETRY_AFTER_NONE);
    ck_assert_uint_eq(p->quota_capacity, 500);
    ck_assert_uint_eq(p->cost_transient, 5);
    ck_assert_uint_eq(p->cost_throttling, 5);
    ck_assert_uint_eq(p->cost_timeout, 10);
    ck_assert_uint_eq(p->gain_first, 1);
    ck_assert(!p->long_poll && p->fresh_after_transient);
    ck_assert(p->order == q->order && p->statuses.v == q->statuses.v);
    ck_assert_uint_eq(p->failures, q->failures);
}
END_TEST

/* What knows the service stays, what is a number of 2.1 goes, and a setting is not made up. */
START_TEST(from_21_to_20)
{
    static const struct retry_code rows[] = {{{"A", 1}, RETRY_TRANSIENT}};
    static const struct retry_override user = {{rows, 1}, {NULL, 0}};
    struct retry_policy p = retry_policy_standard_21;
    p.mode = RETRY_MODE_ADAPTIVE;
    p.max_attempts = 4;
    p.base_transient_ns = 25 * NS_PER_MS;
    p.long_poll = true;
    p.codes = p.service_codes = p.modeled_codes = (struct retry_codes){rows, 1};
    p.override = &user;
    p.crc32 = RETRY_CRC32_SUCCESS;
    p.retry_429 = false;
    struct retry_policy q = retry_policy_as_20(&p);
    ck_assert_int_eq(q.mode, RETRY_MODE_ADAPTIVE);
    ck_assert_uint_eq(q.max_attempts, 3);
    ck_assert_int_eq(q.base_transient_ns, NS_PER_S);
    ck_assert(!q.long_poll && !q.retry_429);
    ck_assert(q.codes.v == rows && q.service_codes.v == rows && q.modeled_codes.v == rows);
    ck_assert_ptr_eq(q.override, &user);
    ck_assert_int_eq(q.crc32, RETRY_CRC32_SUCCESS);
}
END_TEST

START_TEST(numbers_of_the_generic_profile)
{
    const struct retry_policy *p = &retry_policy_generic, *q = &retry_policy_standard_21;
    ck_assert_int_eq(p->retry_after, RETRY_AFTER_HTTP_ANY);
    ck_assert_int_eq(p->base_transient_ns, q->base_transient_ns);
    ck_assert_int_eq(p->base_throttling_ns, q->base_throttling_ns);
    ck_assert_int_eq(p->max_backoff_ns, q->max_backoff_ns);
    ck_assert_uint_eq(p->quota_capacity, q->quota_capacity);
    ck_assert_uint_eq(p->cost_transient, q->cost_transient);
    ck_assert_uint_eq(p->cost_timeout, q->cost_timeout);
    ck_assert_uint_eq(p->cost_throttling, q->cost_throttling);
}
END_TEST

START_TEST(finds_statuses)
{
    static const struct retry_status rows[] = {
        {408, 408, RETRY_TRANSIENT}, {500, 504, RETRY_THROTTLING}, {599, 599, RETRY_FINAL}};
    struct retry_statuses t = {rows, ARRAY_LEN(rows)};
    for (unsigned status = 0; status < 700; status++) {
        const struct retry_status *expected = status == 408                    ? &rows[0]
                                              : status >= 500 && status <= 504 ? &rows[1]
                                              : status == 599                  ? &rows[2]
                                                                               : NULL;
        ck_assert_ptr_eq(retry_statuses_find(t, status), expected);
    }
    ck_assert_ptr_null(retry_statuses_find((struct retry_statuses){NULL, 0}, 500));
}
END_TEST

START_TEST(finds_every_row_and_nothing_else)
{
    static const struct retry_code rows[] = {
        {{"A", 1}, RETRY_TRANSIENT},      {{"AB", 2}, RETRY_THROTTLING},
        {{"Slow", 4}, RETRY_THROTTLING},  {{"SlowDown", 8}, RETRY_TRANSIENT},
        {{"Zebra", 5}, RETRY_THROTTLING},
    };
    for (size_t n = 0; n <= ARRAY_LEN(rows); n++) {
        struct retry_codes t = {rows, n};
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            ck_assert_ptr_eq(retry_codes_find(t, rows[i].code), i < n ? &rows[i] : NULL);
        ck_assert_ptr_null(retry_codes_find(t, SLICE_NONE));
        ck_assert_ptr_null(retry_codes_find(t, SLICE("slowdown")));
        ck_assert_ptr_null(retry_codes_find(t, SLICE("SlowDow")));
        ck_assert_ptr_null(retry_codes_find(t, SLICE("Zz")));
    }
}
END_TEST

static TCase *policy(void)
{
    TCase *tc = tcase_create("policy");
    tcase_add_test(tc, numbers_of_21);
    tcase_add_test(tc, numbers_of_20);
    tcase_add_test(tc, from_21_to_20);
    tcase_add_test(tc, numbers_of_the_generic_profile);
    tcase_add_test(tc, finds_statuses);
    tcase_add_test(tc, finds_every_row_and_nothing_else);
    return tc;
}

UNIT_MAIN("policy", policy)
