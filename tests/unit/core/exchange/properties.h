/* What must hold of every strategy whatever happens: several requests at a time on one quota,
 * random outcomes, the real machine. Checked after each attempt:
 *
 * - a wait is within the formula's ceiling and cap, or beyond it by what the server may ask;
 * - tokens stay within [0, capacity];
 * - attempts never pass the maximum;
 * - the answer is the last attempt's: its response, or its failure.
 *
 * The ceilings are computed here anew, in floating point. */
#ifndef RETRYD_TESTS_PROPERTIES_H
#define RETRYD_TESTS_PROPERTIES_H

#include "unit.h"

#include "core/base/attr.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"
#include <math.h>

enum { PROPERTIES_REQUESTS = 4 };

struct property_request {
    struct xch x;
    unsigned attempts;      /* connections asked for */
    unsigned held;          /* the attempt whose response is held; 0: none */
    enum retry_failure why; /* of the latest attempt */
    bool answered;
};

struct property_world {
    struct rng rng;
    const struct retry_policy *policy;
    struct membudget budget;
    struct xch_env env;
    struct property_request requests[PROPERTIES_REQUESTS];
    unsigned retries, refusals, answers;
};

static inline unsigned property_pick(struct rng *rng, unsigned n)
{
    return (unsigned)(rng_u64(rng) % n);
}

static inline int64_t property_any_delay(void *arg, int64_t now_ns)
{
    (void)arg, (void)now_ns;
    return INT64_MAX;
}

static inline bool property_room(void *arg)
{
    (void)arg;
    return true;
}

/* The longest wait before retry i of a request without a word from the server. */
static inline double property_ceiling_ns(const struct retry_policy *p, enum retry_class c,
                                         unsigned i)
{
    double base = (double)(c == RETRY_THROTTLING ? p->base_throttling_ns : p->base_transient_ns);
    double ceiling = fmin(base * pow(2.0, i), (double)INT64_MAX);
    return i < p->no_wait_first ? 0 : fmin(ceiling, (double)p->max_backoff_ns);
}

static inline double property_bound_ns(const struct retry_policy *p, const struct verdict *v,
                                       unsigned i, const struct retry_outcome *o)
{
    double ceiling = property_ceiling_ns(p, v->class, i);
    switch (p->retry_after) {
    case RETRY_AFTER_AMZ_MS:
        return o->has_retry_after ? ceiling + 5e9 : ceiling;
    case RETRY_AFTER_HTTP_SECONDS:
        return o->http_after == RETRY_HTTP_AFTER_SECONDS ? fmax(ceiling, (double)o->http_after_ns)
                                                         : ceiling;
    case RETRY_AFTER_HTTP_ANY:
        return o->http_after != RETRY_HTTP_AFTER_NONE ? (double)p->max_backoff_ns : ceiling;
    case RETRY_AFTER_NONE:
        break;
    }
    return ceiling;
}

static inline void property_outcome(struct rng *rng, struct retry_outcome *o)
{
    static const unsigned statuses[] = {200, 200, 204, 301, 400, 403, 408, 409, 421,
                                        429, 500, 501, 502, 503, 504, 509, 599};
    static const struct slice codes[] = {
        {NULL, 0},
        {NULL, 0},
        {"SlowDown", 8},
        {"RequestTimeout", 14},
        {"ThrottlingException", 19},
        {"ProvisionedThroughputExceededException", 38},
        {"ValidationException", 19},
        {"RequestExpired", 14},
    };
    *o = (struct retry_outcome){
        .status = statuses[property_pick(rng, ARRAY_LEN(statuses))],
        .code = codes[property_pick(rng, ARRAY_LEN(codes))],
        .body = (enum retry_body)property_pick(rng, RETRY_BODY_OTHER + 1),
        .socket_message = property_pick(rng, 8) == 0,
        .has_retry_after = property_pick(rng, 3) == 0,
        .retry_after_ns = (int64_t)(rng_u64(rng) >> (1 + property_pick(rng, 60))),
        .http_after = (enum retry_http_after)property_pick(rng, RETRY_HTTP_AFTER_DATE + 1),
        .http_after_ns = (int64_t)(rng_u64(rng) >> (1 + property_pick(rng, 60))),
        .date_skew_ns = (int64_t)property_pick(rng, 600) * NS_PER_S,
    };
    o->error_in_200 = o->status == 200 && property_pick(rng, 3) == 0;
    if (property_pick(rng, 8) == 0)
        o->failure = RETRY_FAIL_CHECKSUM;
}

static inline void property_judged(struct property_world *w, const struct property_request *r,
                                   const struct retry_outcome *o, const struct verdict *v)
{
    const struct retry_policy *p = w->policy;
    unsigned tokens = w->budget.base.ops->tokens(&w->budget.base, p->quota_capacity);
    ck_assert_uint_le(w->budget.debt, p->quota_capacity);
    ck_assert_uint_le(tokens, p->quota_capacity);
    ck_assert_uint_le(r->x.run.attempts, p->max_attempts);
    ck_assert_uint_eq(r->x.run.attempts, r->attempts);
    ck_assert_int_ge(v->delay_ns, 0);
    if (v->what == VERDICT_DELIVER) {
        ck_assert_int_eq(v->delay_ns, 0);
        w->refusals += v->why == VERDICT_QUOTA;
        return;
    }
    double bound = property_bound_ns(p, v, r->attempts - 1, o);
    ck_assert_msg((double)v->delay_ns <= bound, "waits %g ms, at most %g", ns_to_ms(v->delay_ns),
                  bound / 1e6);
    ck_assert(v->what == VERDICT_PENALTY ? p->long_poll : r->attempts < p->max_attempts);
    w->retries += v->what == VERDICT_RETRY;
}

static inline void property_step(struct property_world *w, struct property_request *r,
                                 const struct xch_event *ev)
{
    struct xch_acts acts;
    xch_step(&r->x, ev, 1, &acts);
    if (acts.judged) {
        r->why = ev->outcome.failure;
        property_judged(w, r, &ev->outcome, &acts.verdict);
    }
    for (unsigned i = 0; i < acts.n; i++) {
        const struct xch_action *act = &acts.v[i];
        switch (act->kind) {
        case XACT_DIAL:
            ck_assert(!r->answered);
            r->attempts++;
            r->held = 0;
            break;
        case XACT_RELAY:
            ck_assert(!r->answered);
            ck_assert_uint_eq(r->held, r->attempts);
            r->answered = true;
            break;
        case XACT_REPLY:
            ck_assert(!r->answered);
            ck_assert_uint_eq(r->held, 0);
            ck_assert_int_eq(act->failure, r->why);
            r->answered = true;
            break;
        default:
            break;
        }
    }
}

/* The next thing that happens to a request; a new one takes the place of one that is over. */
static inline void property_move(struct property_world *w, struct property_request *r)
{
    struct xch_event ev = {.whole = property_pick(&w->rng, 2)};
    bool fails = property_pick(&w->rng, 5) == 0;
    switch (r->x.state) {
    case XST_NEW:
        ev.kind = XEV_START;
        break;
    case XST_BACKOFF:
    case XST_ADMIT:
    case XST_PENALTY:
        ev.kind = XEV_TIMER;
        break;
    case XST_DIAL:
        ev.kind = fails ? XEV_FAIL : XEV_UP;
        break;
    case XST_SEND:
        ev.kind = fails ? XEV_BROKEN : XEV_SENT;
        break;
    case XST_WAIT:
        ev.kind = fails ? XEV_BROKEN : XEV_HEAD;
        ev.peek = property_pick(&w->rng, 2);
        r->held = fails ? 0 : r->attempts;
        break;
    case XST_PEEK:
        ev.kind = fails ? XEV_BROKEN : XEV_PEEKED;
        r->held = fails ? 0 : r->held;
        break;
    case XST_RELAY:
        ev.kind = XEV_END;
        ev.keep = property_pick(&w->rng, 2);
        break;
    case XST_DONE:
        ck_assert(r->answered);
        w->answers++;
        *r = (struct property_request){.attempts = 0};
        xch_init(&r->x, &w->env, true);
        return;
    }
    property_outcome(&w->rng, &ev.outcome);
    if (ev.kind == XEV_FAIL || ev.kind == XEV_BROKEN)
        ev.outcome.failure = (enum retry_failure)(1 + property_pick(&w->rng, RETRY_FAIL_COUNT - 1));
    if (ev.kind == XEV_FAIL)
        ev.outcome.status = 0;
    property_step(w, r, &ev);
}

/* Runs requests under the policy, steps events long. */
static inline void properties_hold(struct property_world *w, const struct retry_policy *policy,
                                   unsigned steps)
{
    w->policy = policy;
    membudget_init(&w->budget);
    w->budget.debt = property_pick(&w->rng, policy->quota_capacity + 1);
    w->env = (struct xch_env){
        .policy = policy,
        .budget = &w->budget.base,
        .rng = rng_as_source(&w->rng),
        .max_delay_ns = property_any_delay,
        .can_park = property_room,
    };
    for (unsigned i = 0; i < PROPERTIES_REQUESTS; i++) {
        w->requests[i] = (struct property_request){.attempts = 0};
        xch_init(&w->requests[i].x, &w->env, true);
    }
    for (unsigned i = 0; i < steps; i++)
        property_move(w, &w->requests[property_pick(&w->rng, PROPERTIES_REQUESTS)]);
}

/* Codes of the user, lists that disagree with those of the strategies among them. */
static const struct retry_code property_codes[] = {
    {{"RequestTimeout", 14}, RETRY_FINAL},
    {{"SlowDown", 8}, RETRY_FINAL},
    {{"ValidationException", 19}, RETRY_THROTTLING},
};
static const struct retry_status property_statuses[] = {
    {403, 403, RETRY_TRANSIENT},
    {408, 409, RETRY_THROTTLING},
    {503, 503, RETRY_FINAL},
};
static const struct retry_override property_override = {
    {property_codes, ARRAY_LEN(property_codes)},
    {property_statuses, ARRAY_LEN(property_statuses)},
};

/* What a user may set over a strategy. */
static inline void property_settings(struct rng *rng, struct retry_policy *p)
{
    if (property_pick(rng, 2))
        p->override = &property_override;
    if (property_pick(rng, 3) == 0)
        p->max_attempts = 1 + property_pick(rng, 100);
    if (property_pick(rng, 3) == 0)
        p->max_backoff_ns = (int64_t)property_pick(rng, 30000) * NS_PER_MS;
    if (property_pick(rng, 3) == 0)
        p->base_transient_ns = (int64_t)property_pick(rng, 40000) * NS_PER_MS;
    if (property_pick(rng, 3) == 0)
        p->quota_capacity = property_pick(rng, 40);
    if (property_pick(rng, 3) == 0)
        p->cost_transient = p->cost_timeout = property_pick(rng, 20);
    p->long_poll = property_pick(rng, 4) == 0;
    p->retry_429 = p->retry_429 && property_pick(rng, 4) != 0;
    p->clock_skew = p->skew && property_pick(rng, 2);
}

#endif
