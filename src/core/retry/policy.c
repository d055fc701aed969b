/* The numbers of standard mode, behaviour 2.1 (retry-semantics 1, 5.1, 7.1), and code table
 * look-up. */
#include "core/retry/policy.h"

#include "core/base/units.h"

const struct retry_policy retry_policy_standard_21 = {
    .mode = RETRY_MODE_STANDARD,
    .max_attempts = 3,
    .base_transient_ns = 50 * NS_PER_MS,
    .base_throttling_ns = 1000 * NS_PER_MS,
    .max_backoff_ns = 20 * NS_PER_S,
    .quota_capacity = 500,
    .cost_transient = 14,
    .cost_throttling = 5,
    .gain_first = 1,
    .honour_retry_after = true,
    .retry_429 = true,
};

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
