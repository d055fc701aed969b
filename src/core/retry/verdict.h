/* "What now?" after an attempt: steps 3-9 of the attempt loop (spec 1, 8). */
#ifndef RETRYD_CORE_RETRY_VERDICT_H
#define RETRYD_CORE_RETRY_VERDICT_H

#include "core/base/rng.h"
#include "core/retry/policy.h"

enum verdict_what {
    VERDICT_DELIVER, /* hand over what there is, now */
    VERDICT_RETRY,   /* wait delay_ns, then the next attempt; the cost is spent */
    VERDICT_PENALTY, /* wait delay_ns, then deliver: quota refused a long-polling operation */
};

/* Why it stopped, or why it goes on. */
enum verdict_why {
    VERDICT_SUCCESS,
    VERDICT_NOT_RETRYABLE,
    VERDICT_MAX_ATTEMPTS,
    VERDICT_QUOTA,
    VERDICT_UNREPLAYABLE, /* the body cannot be sent again */
    VERDICT_DEADLINE, /* the next attempt would start too late (signature age, total wait, ttl) */
    VERDICT_OVERLOAD, /* no room to park another request */
    VERDICT_OFF,      /* retries are off for this request */
    VERDICT_WILL_RETRY,
};

/* What the world allows besides the policy. */
struct verdict_limits {
    bool replayable;      /* the request can be sent again from byte 0 */
    bool can_park;        /* there is room for one more waiting request */
    int64_t max_delay_ns; /* a longer wait would start the attempt too late; INT64_MAX: no bound */
};

struct verdict {
    enum verdict_what what;
    enum verdict_why why;
    enum retry_class class;
    enum retry_rule rule;
    int64_t delay_ns;
    unsigned cost;          /* tokens spent for the retry */
    unsigned tokens_before; /* quota before and after the decision */
    unsigned tokens_after;
};

/* Judges attempt run->attempts + 1: classifies, refunds on success, spends for a retry, updates
 * *run. Draws from rng only when a delay is needed (once). budget->observe is the caller's
 * business: it belongs to the moment of the result, also for requests that end otherwise. */
void verdict_after(const struct retry_policy *p, struct retry_run *run,
                   const struct retry_outcome *o, const struct verdict_limits *limits,
                   struct budget *budget, struct rng_source rng, struct verdict *out);

const char *verdict_why_name(enum verdict_why w);

#endif
