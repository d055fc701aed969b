/* How long to wait (spec 5 and 6): exponential ceiling, full jitter, server-directed delay and its
 * clamp. */
#ifndef RETRYD_CORE_RETRY_BACKOFF_H
#define RETRYD_CORE_RETRY_BACKOFF_H

#include "core/retry/policy.h"

/* r * min(base * 2^retry_index, max_backoff), rounded down to a nanosecond; retry_index counts from
 * 0. r in [0, 1]. Cannot overflow for any index. */
int64_t backoff_ns(const struct retry_policy *p, enum retry_class c, unsigned retry_index,
                   double r);

/* d = clamp(header, t, t + 5 s), when the policy honours the header and the outcome has one. */
int64_t backoff_directed_ns(const struct retry_policy *p, const struct retry_outcome *o,
                            int64_t t_ns);

/* Reads an x-amz-retry-after value: OWS trimmed, 1*DIGIT milliseconds; too large saturates. False
 * for anything else (then it is as no header). */
bool backoff_parse_retry_after(struct slice value, int64_t *out_ns);

#endif
