/* Arithmetic on a debt: boundaries of spending, refunding, and a capacity that shrank. */
#include "unit.h"

#include "core/base/rng.h"
#include "core/retry/quota.h"

START_TEST(spends_only_what_is_there)
{
    uint32_t next = 77;
    ck_assert(quota_spend(0, 14, 500, &next));
    ck_assert_uint_eq(next, 14);
    ck_assert(quota_spend(486, 14, 500, &next));
    ck_assert_uint_eq(next, 500);
    next = 77;
    ck_assert(!quota_spend(487, 14, 500, &next));
    ck_assert(!quota_spend(500, 1, 500, &next));
    ck_assert_uint_eq(next, 77);
}
END_TEST

/* 13 tokens refuse a transient retry and allow a throttling one (retry-semantics 7.2). */
START_TEST(thirteen_tokens)
{
    uint32_t next;
    ck_assert(!quota_spend(487, 14, 500, &next));
    ck_assert(quota_spend(487, 5, 500, &next));
    ck_assert_uint_eq(quota_tokens(next, 500), 8);
}
END_TEST

START_TEST(refund_stops_at_full)
{
    ck_assert_uint_eq(quota_refund(14, 14), 0);
    ck_assert_uint_eq(quota_refund(14, 1), 13);
    ck_assert_uint_eq(quota_refund(3, 14), 0);
    ck_assert_uint_eq(quota_refund(0, 1), 0);
}
END_TEST

START_TEST(debt_above_capacity_is_empty)
{
    uint32_t next = 77;
    ck_assert_uint_eq(quota_tokens(600, 500), 0);
    ck_assert_uint_eq(quota_tokens(UINT32_MAX, 500), 0);
    ck_assert(!quota_spend(600, 1, 500, &next));
    ck_assert_uint_eq(next, 77);
    ck_assert_uint_eq(quota_refund(600, 50), 550);
}
END_TEST

/* From full, an outage is cut off after 35 transient or 100 throttling retries (7.3). */
START_TEST(outage_drains_it)
{
    uint32_t debt = 0, retries = 0;
    while (quota_spend(debt, 14, 500, &debt))
        retries++;
    ck_assert_uint_eq(retries, 35);
    ck_assert_uint_eq(quota_tokens(debt, 500), 10);
    for (debt = 0, retries = 0; quota_spend(debt, 5, 500, &debt);)
        retries++;
    ck_assert_uint_eq(retries, 100);
}
END_TEST

START_TEST(tokens_stay_within_bounds)
{
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){1, 2, 3, 4});
    uint32_t debt = 0;
    for (int i = 0; i < 100000; i++) {
        uint32_t amount = (uint32_t)(rng_u64(&rng) % 40);
        uint32_t before = quota_tokens(debt, 500);
        if (rng_u64(&rng) & 1) {
            bool granted = quota_spend(debt, amount, 500, &debt);
            ck_assert_int_eq(granted, before >= amount);
            ck_assert_uint_eq(quota_tokens(debt, 500), granted ? before - amount : before);
        } else {
            debt = quota_refund(debt, amount);
            uint32_t expected = before + amount < 500 ? before + amount : 500;
            ck_assert_uint_eq(quota_tokens(debt, 500), expected);
        }
    }
}
END_TEST

static TCase *quota(void)
{
    TCase *tc = tcase_create("quota");
    tcase_add_test(tc, spends_only_what_is_there);
    tcase_add_test(tc, thirteen_tokens);
    tcase_add_test(tc, refund_stops_at_full);
    tcase_add_test(tc, debt_above_capacity_is_empty);
    tcase_add_test(tc, outage_drains_it);
    tcase_add_test(tc, tokens_stay_within_bounds);
    return tc;
}

UNIT_MAIN("quota", quota)
