/* The surroundings of the machine in `simulate`: the events of a network that fails as the vector
 * says, and timers that need no waiting. */
#include "cmd/sim.h"

static double fixed_jitter(void *state)
{
    return ((const struct sim_world *)state)->jitter;
}

static int64_t no_deadline(void *arg, int64_t now_ns)
{
    (void)arg, (void)now_ns;
    return INT64_MAX;
}

static bool always_room(void *arg)
{
    (void)arg;
    return true;
}

void sim_world_init(struct sim_world *w, const struct retry_policy *policy, double jitter,
                    unsigned tokens)
{
    *w = (struct sim_world){.policy = *policy, .jitter = jitter};
    membudget_init(&w->budget);
    w->budget.debt = policy->quota_capacity - tokens;
    w->env = (struct xch_env){.policy = &w->policy,
                              .budget = &w->budget.base,
                              .rng = {fixed_jitter, w},
                              .max_delay_ns = no_deadline,
                              .can_park = always_room};
}

static bool fails_before_connected(enum retry_failure f)
{
    switch (f) {
    case RETRY_FAIL_DNS:
    case RETRY_FAIL_CONNECT_REFUSED:
    case RETRY_FAIL_CONNECT_TIMEOUT:
    case RETRY_FAIL_TLS:
    case RETRY_FAIL_TLS_TIMEOUT:
    case RETRY_FAIL_CERTIFICATE:
    case RETRY_FAIL_POLICY:
    case RETRY_FAIL_PARENT:
    case RETRY_FAIL_PARENT_REFUSED:
    case RETRY_FAIL_OVERLOAD:
    case RETRY_FAIL_RATE_LIMIT:
        return true;
    default:
        return false;
    }
}

/* Feeds one event; what a network would do next is up to the caller. */
static void feed(struct sim_world *w, struct sim_request *r, struct xch_event ev,
                 struct sim_end *out)
{
    struct xch_acts acts;
    xch_step(&r->x, &ev, w->now_ns, &acts);
    if (acts.judged)
        out->verdict = acts.verdict;
    for (unsigned i = 0; i < acts.n; i++) {
        const struct xch_action *act = &acts.v[i];
        if (act->kind == XACT_ARM)
            w->now_ns =
                act->delay_ns < INT64_MAX - w->now_ns ? w->now_ns + act->delay_ns : INT64_MAX;
        out->relayed |= act->kind == XACT_RELAY;
        if (act->kind == XACT_REPLY)
            out->failure = act->failure;
    }
}

/* Leads a request that will not be retried to its end. */
static void conclude(struct sim_world *w, struct sim_request *r, struct sim_end *out)
{
    if (r->x.state == XST_PENALTY)
        feed(w, r, (struct xch_event){.kind = XEV_TIMER}, out);
    if (r->x.state == XST_RELAY)
        feed(w, r, (struct xch_event){.kind = XEV_END, .keep = true}, out);
    ASSERT(r->x.state == XST_DONE);
}

void sim_attempt(struct sim_world *w, struct sim_request *r, const struct retry_outcome *o,
                 struct sim_end *out)
{
    *out = (struct sim_end){.relayed = false};
    if (!r->waiting)
        xch_init(&r->x, &w->env, true);
    feed(w, r, (struct xch_event){.kind = r->waiting ? XEV_TIMER : XEV_START}, out);

    struct xch_event last = {.kind = XEV_FAIL, .outcome = *o, .whole = true};
    if (!fails_before_connected(o->failure)) {
        feed(w, r, (struct xch_event){.kind = XEV_UP}, out);
        feed(w, r, (struct xch_event){.kind = XEV_SENT}, out);
        last.kind = XEV_BROKEN;
        if (o->status > 0) {
            feed(w, r, (struct xch_event){.kind = XEV_HEAD, .peek = true}, out);
            last.kind = XEV_PEEKED;
        }
    }
    feed(w, r, last, out);
    r->waiting = out->verdict.what == VERDICT_RETRY;
    if (!r->waiting)
        conclude(w, r, out);
}
