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
                             const struct retry_outcome *o, const struct verdict *v,
                             struct rng_source rng)
{
    if (v->rule == RETRY_RULE_CLOCK_SKEW && p->skew->at_once)
        return 0;
    double r = rng.unit(rng.state);
    return backoff_directed_ns(p, o, backoff_ns(p, v->class, run->attempts - 1, r));
}

static bool is_timeout(enum retry_failure f)
{
    return f == RETRY_FAIL_CONNECT_TIMEOUT || f == RETRY_FAIL_TLS_TIMEOUT ||
           f == RETRY_FAIL_READ_TIMEOUT;
}

static unsigned cost_of(const struct retry_policy *p, const struct retry_outcome *o,
                        enum retry_class class)
{
    if (class == RETRY_THROTTLING)
        return p->cost_throttling;
    return is_timeout(o->failure) ? p->cost_timeout : p->cost_transient;
}

/* --- the styles of quota --- */

static bool has_quota(const struct retry_policy *p)
{
    return p->mode != RETRY_MODE_OFF && p->quota != RETRY_QUOTA_NONE;
}

static unsigned tokens(const struct retry_policy *p, const struct budget *budget)
{
    return has_quota(p) ? budget->ops->tokens(budget, p->quota_capacity) : 0;
}

static bool pay(const struct retry_policy *p, struct retry_run *run, unsigned cost,
                struct budget *budget)
{
    if (!has_quota(p))
        return true;
    if (!budget->ops->spend(budget, cost, p->quota_capacity))
        return false;
    /* The first generation of Java remembers for good that a request took something. */
    if (cost > 0 || p->quota != RETRY_QUOTA_JAVA_V1)
        run->last_cost = cost;
    return true;
}

static unsigned gain_of_success(const struct retry_policy *p, const struct retry_run *run)
{
    bool at_least_first = p->quota != RETRY_QUOTA_STANDARD;
    if (run->attempts == 1 || (at_least_first && run->last_cost < p->gain_first))
        return p->gain_first;
    return run->last_cost;
}

/* What the end of a request gives back. JAVA_V1 takes its tokens before it asks whether a retry is
 * possible at all, and gives them back if not; both at once are no change. What is left of that
 * order: a throttled attempt takes nothing, yet gives back what an earlier one took
 * (legacy-modes 8). */
static void settle(const struct retry_policy *p, const struct retry_run *run,
                   const struct verdict *v, struct budget *budget)
{
    if (!has_quota(p))
        return;
    if (v->class == RETRY_SUCCESS)
        budget->ops->refund(budget, gain_of_success(p, run));
    else if (p->quota == RETRY_QUOTA_JAVA_V1 && v->class == RETRY_THROTTLING)
        budget->ops->refund(budget, run->last_cost);
}

/* --- the loop --- */

static void decide(const struct retry_policy *p, struct retry_run *run,
                   const struct retry_outcome *o, const struct verdict_limits *limits,
                   struct budget *budget, struct rng_source rng, struct verdict *out)
{
    out->what = VERDICT_DELIVER;
    out->why = stop_before_delay(p, run, limits, out->class);
    if (out->why != VERDICT_WILL_RETRY)
        return;

    int64_t delay_ns = draw_delay_ns(p, run, o, out, rng);
    if (delay_ns > limits->max_delay_ns) {
        out->why = VERDICT_DEADLINE;
        return;
    }
    if (!limits->can_park) {
        out->why = VERDICT_OVERLOAD;
        return;
    }
    unsigned cost = cost_of(p, o, out->class);
    if (pay(p, run, cost, budget)) {
        out->what = VERDICT_RETRY;
        out->cost = has_quota(p) ? cost : 0;
    } else {
        out->why = VERDICT_QUOTA;
        if (!p->long_poll)
            return;
        out->what = VERDICT_PENALTY;
    }
    out->delay_ns = delay_ns;
    run->waited_ns = delay_ns < INT64_MAX - run->waited_ns ? run->waited_ns + delay_ns : INT64_MAX;
}

void verdict_after(const struct retry_policy *p, struct retry_run *run,
                   const struct retry_outcome *o, const struct verdict_limits *limits,
                   struct budget *budget, struct rng_source rng, struct verdict *out)
{
    *out = (struct verdict){0};
    out->class = classify(p, o, &out->rule);
    run->attempts++;
    out->tokens_before = tokens(p, budget);
    decide(p, run, o, limits, budget, rng, out);
    if (out->what == VERDICT_DELIVER)
        settle(p, run, out, budget);
    out->tokens_after = tokens(p, budget);
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
