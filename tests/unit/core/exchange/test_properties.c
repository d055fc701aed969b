/* The properties of properties.h for standard and adaptive mode in both generations, the generic
 * profile, and strategies made of every kind of part there is. */
#include "core/exchange/properties.h"

enum { POLICIES = 800, STEPS = 300 };

static const struct retry_code general[] = {
    {{"RequestTimeout", 14}, RETRY_TRANSIENT},
    {{"SlowDown", 8}, RETRY_THROTTLING},
    {{"ThrottlingException", 19}, RETRY_THROTTLING},
};

static const enum retry_rule every_rule[] = {
    RETRY_RULE_CLOCK_SKEW,  RETRY_RULE_THROTTLING_CODE, RETRY_RULE_STATUS_429,
    RETRY_RULE_CODE,        RETRY_RULE_SERVICE_CODE,    RETRY_RULE_MODELED,
    RETRY_RULE_TRANSPORT,   RETRY_RULE_THROTTLING_WORD, RETRY_RULE_SOCKET_MESSAGE,
    RETRY_RULE_BODY_STATUS, RETRY_RULE_STATUS,          RETRY_RULE_OTHER_CODE,
    RETRY_RULE_NONE,
};

static const struct retry_skew skew = {.min_ns = NS_PER_S, .at_once = true};

static enum retry_jitter any_jitter(struct rng *rng)
{
    return (enum retry_jitter)property_pick(rng, RETRY_JITTER_RANDOM_BASE + 1);
}

static void random_strategy(struct rng *rng, struct retry_policy *p)
{
    *p = retry_policy_standard_21;
    p->mode = (enum retry_mode)property_pick(rng, RETRY_MODE_LEGACY + 1);
    p->jitter_transient = any_jitter(rng);
    p->jitter_throttling = any_jitter(rng);
    p->no_wait_first = property_pick(rng, 3);
    p->max_backoff_ns = property_pick(rng, 2) ? INT64_MAX : p->max_backoff_ns;
    p->retry_after = (enum retry_after_kind)property_pick(rng, RETRY_AFTER_HTTP_ANY + 1);
    p->quota = (enum retry_quota)property_pick(rng, RETRY_QUOTA_JAVA_V1 + 1);
    p->cost_throttling = property_pick(rng, 6);
    p->gain_first = property_pick(rng, 3);
    p->order = every_rule;
    p->body_statuses = p->statuses;
    p->bodies = property_pick(rng, 8);
    p->failures = (uint32_t)rng_u64(rng);
    p->crc32 = (enum retry_crc32)property_pick(rng, RETRY_CRC32_ANY + 1);
    p->skew = &skew;
    p->fresh_after_transient = property_pick(rng, 2);
}

static void run(void (*make)(struct rng *rng, struct retry_policy *p), uint64_t seed)
{
    struct property_world w = {.retries = 0};
    rng_seed(&w.rng, (const uint64_t[4]){seed, 2, 3, 4});
    for (int i = 0; i < POLICIES; i++) {
        struct retry_policy p;
        make(&w.rng, &p);
        p.codes = (struct retry_codes){general, ARRAY_LEN(general)};
        property_settings(&w.rng, &p);
        properties_hold(&w, &p, STEPS);
    }
    ck_assert_uint_gt(w.retries, POLICIES);
    ck_assert_uint_gt(w.refusals, POLICIES / 10);
    ck_assert_uint_gt(w.answers, POLICIES);
}

static void shipped(struct rng *rng, struct retry_policy *p)
{
    static const struct retry_policy *const policies[] = {
        &retry_policy_standard_21, &retry_policy_standard_20, &retry_policy_generic};
    *p = *policies[property_pick(rng, ARRAY_LEN(policies))];
    if (property_pick(rng, 2))
        p->mode = RETRY_MODE_ADAPTIVE;
}

START_TEST(shipped_strategies)
{
    run(shipped, 1);
}
END_TEST

START_TEST(strategies_of_any_parts)
{
    run(random_strategy, 5);
}
END_TEST

static TCase *properties(void)
{
    TCase *tc = tcase_create("properties");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, shipped_strategies);
    tcase_add_test(tc, strategies_of_any_parts);
    return tc;
}

UNIT_MAIN("properties", properties)
