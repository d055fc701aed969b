/* The numbers of standard mode (retry-semantics 1, 2, 5.1, 7.1, 10) and of the profile for hosts
 * outside AWS, and table look-up. */
#include "core/retry/policy.h"

#include "core/base/attr.h"
#include "core/base/units.h"

/* retry-semantics 2.1. A response that broke off is judged by its code or its 429 if that much
 * arrived, else as the transport failure it is. */
static const enum retry_rule standard_order[] = {
    RETRY_RULE_THROTTLING_CODE, RETRY_RULE_STATUS_429, RETRY_RULE_CODE,   RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_MODELED,         RETRY_RULE_TRANSPORT,  RETRY_RULE_STATUS, RETRY_RULE_NONE,
};

/* retry-semantics 2.2. */
static const struct retry_status standard_statuses[] = {
    {500, 500, RETRY_TRANSIENT},
    {502, 504, RETRY_TRANSIENT},
};

/* retry-semantics 2.4: all but certificates, and what retryd or its parent refuses. */
#define STANDARD_FAILURES                                                                          \
    ((RETRY_FAILURE(RETRY_FAIL_COUNT) - 1) &                                                       \
     ~(RETRY_FAILURE(RETRY_FAIL_NONE) | RETRY_FAILURE(RETRY_FAIL_CERTIFICATE) |                    \
       RETRY_FAILURE(RETRY_FAIL_PARENT_REFUSED) | RETRY_FAILURE(RETRY_FAIL_POLICY) |               \
       RETRY_FAILURE(RETRY_FAIL_OVERLOAD) | RETRY_FAILURE(RETRY_FAIL_RATE_LIMIT)))

static const enum retry_rule generic_order[] = {
    RETRY_RULE_TRANSPORT,
    RETRY_RULE_STATUS,
    RETRY_RULE_NONE,
};

static const struct retry_status generic_statuses[] = {
    {429, 429, RETRY_THROTTLING},
    {502, 504, RETRY_TRANSIENT},
};

#define STATUSES(table)                                                                            \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

const struct retry_policy retry_policy_standard_21 = {
    .mode = RETRY_MODE_STANDARD,
    .behaviour = RETRY_BEHAVIOUR_21,
    .max_attempts = 3,
    .base_transient_ns = 50 * NS_PER_MS,
    .base_throttling_ns = 1000 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_FULL,
    .jitter_throttling = RETRY_JITTER_FULL,
    .max_backoff_ns = 20 * NS_PER_S,
    .retry_after = RETRY_AFTER_AMZ_MS,
    .quota = RETRY_QUOTA_STANDARD,
    .quota_capacity = 500,
    .cost_transient = 14,
    .cost_timeout = 14,
    .cost_throttling = 5,
    .gain_first = 1,
    .order = standard_order,
    .statuses = STATUSES(standard_statuses),
    .failures = STANDARD_FAILURES,
    .retry_429 = true,
};

const struct retry_policy retry_policy_standard_20 = {
    .mode = RETRY_MODE_STANDARD,
    .behaviour = RETRY_BEHAVIOUR_20,
    .max_attempts = 3,
    .base_transient_ns = 1000 * NS_PER_MS,
    .base_throttling_ns = 1000 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_RANDOM_BASE,
    .jitter_throttling = RETRY_JITTER_RANDOM_BASE,
    .max_backoff_ns = 20 * NS_PER_S,
    .retry_after = RETRY_AFTER_NONE,
    .quota = RETRY_QUOTA_STANDARD,
    .quota_capacity = 500,
    .cost_transient = 5,
    .cost_timeout = 10,
    .cost_throttling = 5,
    .gain_first = 1,
    .order = standard_order,
    .statuses = STATUSES(standard_statuses),
    .failures = STANDARD_FAILURES,
    .retry_429 = true,
    .fresh_after_transient = true,
};

const struct retry_policy retry_policy_generic = {
    .mode = RETRY_MODE_STANDARD,
    .behaviour = RETRY_BEHAVIOUR_21,
    .max_attempts = 3,
    .base_transient_ns = 50 * NS_PER_MS,
    .base_throttling_ns = 1000 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_FULL,
    .jitter_throttling = RETRY_JITTER_FULL,
    .max_backoff_ns = 20 * NS_PER_S,
    .retry_after = RETRY_AFTER_HTTP_ANY,
    .quota = RETRY_QUOTA_STANDARD,
    .quota_capacity = 500,
    .cost_transient = 14,
    .cost_timeout = 14,
    .cost_throttling = 5,
    .gain_first = 1,
    .order = generic_order,
    .statuses = STATUSES(generic_statuses),
    .failures = STANDARD_FAILURES,
};

struct retry_policy retry_policy_as_20(const struct retry_policy *p)
{
    struct retry_policy out = retry_policy_standard_20;
    out.mode = p->mode;
    out.codes = p->codes;
    out.service_codes = p->service_codes;
    out.modeled_codes = p->modeled_codes;
    out.retry_429 = p->retry_429;
    out.crc32 = p->crc32;
    out.override = p->override;
    return out;
}

const struct retry_code *retry_codes_find(struct retry_codes t, struct slice code)
{
    size_t lo = 0, hi = t.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = slice_cmp(code, t.v[mid].code);
        if (order == 0)
            return &t.v[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct retry_status *retry_statuses_find(struct retry_statuses t, unsigned status)
{
    for (size_t i = 0; i < t.n && t.v[i].first <= status; i++)
        if (status <= t.v[i].last)
            return &t.v[i];
    return NULL;
}
