/* How long to wait (retry-semantics 5 and 6, legacy-modes): exponential ceiling, jitter, and what
 * the server asks for. */
#ifndef RETRYD_CORE_RETRY_BACKOFF_H
#define RETRYD_CORE_RETRY_BACKOFF_H

#include "core/retry/policy.h"

/* The wait before retry number retry_index, counted from 0, as the policy's base, jitter and cap
 * for the class say; rounded down to a nanosecond. r in [0, 1]. Cannot overflow for any index. */
int64_t backoff_ns(const struct retry_policy *p, enum retry_class c, unsigned retry_index,
                   double r);

/* The wait t after the server was heard, in the way of the policy; never less than t. */
int64_t backoff_directed_ns(const struct retry_policy *p, const struct retry_outcome *o,
                            int64_t t_ns);

/* Reads an x-amz-retry-after value: OWS trimmed, 1*DIGIT milliseconds; too large saturates. False
 * for anything else (then it is as no header). */
bool backoff_parse_retry_after(struct slice value, int64_t *out_ns);
/* The same for Retry-After in seconds. */
bool backoff_parse_retry_seconds(struct slice value, int64_t *out_ns);

#endif
