/* "What now?": steps 4-9 of the attempt loop in their order (retry-semantics 1, 7.2, 8).
 *
 * Nothing is spent before everything else allows the retry, and the quota is asked last: so a
 * request on its last attempt neither pays nor waits, and one that the deadline or a lack of room
 * stops leaves the quota as it was. With retries off the budget is not touched at all. */
#include "core/retry/verdict.h"

#include "core/base/attr.h"
#include "core/retry/backoff.h"
#include "core/retry/classify.h"

/* A reason that needs neither delay nor quota to stop here, else VERDICT_WILL_RETRY. */
static enum verdict_why stop_before_delay(const struct retry_policy *p, const struct retry_run *run,
                                          const struct verdict_limits *limits,
                                          enum retry_class class)
{
    if (class == RETRY_SUCCESS)
        return VERDICT_SUCCESS;
    if (class == RETRY_FINAL)
        return VERDICT_NOT_RETRYABLE;
    if (p->mode == RETRY_MODE_OFF)
        return VERDICT_OFF;
    if (!limits->replayable)
        return VERDICT_UNREPLAYABLE;
    if (run->attempts >= p->max_attempts)
        return VERDICT_MAX_ATTEMPTS;
    return VERDICT_WILL_RETRY;
}

static int64_t draw_delay_ns(const struct retry_policy *p, const struct retry_run *run,
                             const struct retry_outcome *o, enum retry_class class,
                             struct rng_source rng)
{
    double r = rng.unit(rng.state);
    return backoff_directed_ns(p, o, backoff_ns(p, class, run->attempts - 1, r));
}

static void decide(const struct retry_policy *p, struct retry_run *run,
                   const struct retry_outcome *o, const struct verdict_limits *limits,
                   struct budget *budget, struct rng_source rng, struct verdict *out)
{
    out->what = VERDICT_DELIVER;
    out->why = stop_before_delay(p, run, limits, out->class);
    if (out->why != VERDICT_WILL_RETRY)
        return;

    int64_t delay_ns = draw_delay_ns(p, run, o, out->class, rng);
    if (delay_ns > limits->max_delay_ns) {
        out->why = VERDICT_DEADLINE;
        return;
    }
    if (!limits->can_park) {
        out->why = VERDICT_OVERLOAD;
        return;
    }
    unsigned cost = out->class == RETRY_THROTTLING ? p->cost_throttling : p->cost_transient;
    if (budget->ops->spend(budget, cost, p->quota_capacity)) {
        out->what = VERDICT_RETRY;
        out->cost = run->last_cost = cost;
    } else {
        out->why = VERDICT_QUOTA;
        if (!p->long_poll)
            return;
        out->what = VERDICT_PENALTY;
    }
    out->delay_ns = delay_ns;
    run->waited_ns += delay_ns;
}

void verdict_after(const struct retry_policy *p, struct retry_run *run,
                   const struct retry_outcome *o, const struct verdict_limits *limits,
                   struct budget *budget, struct rng_source rng, struct verdict *out)
{
    *out = (struct verdict){0};
    out->class = classify(p, o, &out->rule);
    run->attempts++;
    if (p->mode == RETRY_MODE_OFF) {
        out->what = VERDICT_DELIVER;
        out->why = stop_before_delay(p, run, limits, out->class);
        return;
    }
    out->tokens_before = budget->ops->tokens(budget, p->quota_capacity);
    if (out->class == RETRY_SUCCESS)
        budget->ops->refund(budget, run->attempts == 1 ? p->gain_first : run->last_cost);
    decide(p, run, o, limits, budget, rng, out);
    out->tokens_after = budget->ops->tokens(budget, p->quota_capacity);
}

const char *verdict_why_name(enum verdict_why w)
{
    static const char *const names[] = {
        [VERDICT_SUCCESS] = "success",           [VERDICT_NOT_RETRYABLE] = "not_retryable",
        [VERDICT_MAX_ATTEMPTS] = "max_attempts", [VERDICT_QUOTA] = "quota",
        [VERDICT_UNREPLAYABLE] = "unreplayable", [VERDICT_DEADLINE] = "deadline",
        [VERDICT_OVERLOAD] = "overload",         [VERDICT_OFF] = "off",
        [VERDICT_WILL_RETRY] = "will_retry",
    };
    ASSERT((size_t)w < ARRAY_LEN(names));
    return names[w];
}
