/* The numbers of behaviour 2.1, and look-up in code tables. */
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
    tcase_add_test(tc, finds_every_row_and_nothing_else);
    return tc;
}

UNIT_MAIN("policy", policy)
