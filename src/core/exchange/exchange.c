/* The machine of one request, as the table in exchange.h and retry-semantics 1, 8 and 13.1 state
 * it.
 *
 * What an attempt came to goes through judge(), the one caller of verdict_after; an answer begins
 * in deliver() or give_up() and nowhere else. All state changes go through set_state(), which knows
 * the legal edges. A connection is given back (release) exactly where the machine stops needing it.
 */
#include "core/exchange/exchange.h"

#include "core/base/attr.h"

#define TO(state) (1u << (state))

/* Where each state may go. */
static const unsigned edges[] = {
    [XST_NEW] = TO(XST_ADMIT) | TO(XST_DIAL) | TO(XST_DONE),
    [XST_ADMIT] = TO(XST_ADMIT) | TO(XST_DIAL) | TO(XST_DONE),
    [XST_DIAL] = TO(XST_SEND) | TO(XST_BACKOFF) | TO(XST_PENALTY) | TO(XST_DONE),
    [XST_SEND] = TO(XST_WAIT) | TO(XST_PEEK) | TO(XST_DIAL) | TO(XST_BACKOFF) | TO(XST_PENALTY) |
                 TO(XST_RELAY) | TO(XST_DONE),
    [XST_WAIT] = TO(XST_PEEK) | TO(XST_DIAL) | TO(XST_BACKOFF) | TO(XST_PENALTY) | TO(XST_RELAY) |
                 TO(XST_DONE),
    [XST_PEEK] = TO(XST_BACKOFF) | TO(XST_PENALTY) | TO(XST_RELAY) | TO(XST_DONE),
    [XST_BACKOFF] = TO(XST_ADMIT) | TO(XST_DIAL) | TO(XST_DONE),
    [XST_PENALTY] = TO(XST_RELAY) | TO(XST_DONE),
    [XST_RELAY] = TO(XST_DONE),
    [XST_DONE] = 0,
};

static void set_state(struct xch *x, enum xch_state next)
{
    ASSERT(edges[x->state] & TO(next));
    x->state = next;
}

static void add(struct xch_acts *acts, struct xch_action action)
{
    ASSERT(acts->n < XCH_MAX_ACTIONS);
    acts->v[acts->n++] = action;
}

static void act(struct xch_acts *acts, enum xch_action_kind kind)
{
    add(acts, (struct xch_action){.kind = kind});
}

static void arm(struct xch_acts *acts, int64_t delay_ns)
{
    add(acts, (struct xch_action){.kind = XACT_ARM, .delay_ns = delay_ns});
}

static bool timer_armed(const struct xch *x)
{
    return x->state == XST_ADMIT || x->state == XST_BACKOFF || x->state == XST_PENALTY;
}

/* The machine is done with the connection and with what it held of a response. */
static void release(struct xch *x, struct xch_acts *acts, enum xch_action_kind how)
{
    ASSERT(x->conn);
    act(acts, how);
    x->conn = x->holding = false;
}

static void finish(struct xch *x, struct xch_acts *acts)
{
    act(acts, XACT_FINISH);
    set_state(x, XST_DONE);
}

/* There is no response to hand over: an answer of our own, and the end. */
static void give_up(struct xch *x, enum retry_failure failure, struct xch_acts *acts)
{
    if (x->conn)
        release(x, acts, XACT_DROP);
    add(acts, (struct xch_action){.kind = XACT_REPLY, .failure = failure});
    finish(x, acts);
}

static void deliver(struct xch *x, struct xch_acts *acts)
{
    if (!x->holding) {
        give_up(x, x->failure, acts);
        return;
    }
    act(acts, XACT_RELAY);
    set_state(x, XST_RELAY);
}

static void dial(struct xch *x, bool fresh, struct xch_acts *acts)
{
    x->reused = x->sent = x->whole = false;
    add(acts, (struct xch_action){.kind = XACT_DIAL, .fresh = fresh});
    set_state(x, XST_DIAL);
}

/* No send token yet: waits on, unless one of the bounds is met (security requirements E5, E6). The
 * token is only asked for again then; whoever is woken earlier has waited less than was armed. */
static void wait_for_token(struct xch *x, int64_t wait_ns, int64_t now_ns, struct xch_acts *acts)
{
    const struct xch_env *env = &x->env;
    if (!x->admitting)
        x->admitting_since_ns = now_ns;
    x->admitting = true;
    int64_t waited_ns = now_ns - x->admitting_since_ns;
    int64_t most_ns = env->max_admission_ns > 0 ? env->max_admission_ns : INT64_MAX;
    if (waited_ns >= most_ns) {
        give_up(x, RETRY_FAIL_RATE_LIMIT, acts);
        return;
    }
    if (wait_ns > env->max_delay_ns(env->arg, now_ns) - waited_ns || !env->can_park(env->arg)) {
        give_up(x, RETRY_FAIL_OVERLOAD, acts);
        return;
    }
    arm(acts, wait_ns < most_ns - waited_ns ? wait_ns : most_ns - waited_ns);
    set_state(x, XST_ADMIT);
}

/* Starts an attempt, or waits for its send token. */
static void begin_attempt(struct xch *x, int64_t now_ns, struct xch_acts *acts)
{
    const struct xch_env *env = &x->env;
    int64_t wait_ns = 0;
    if (env->policy->mode == RETRY_MODE_ADAPTIVE)
        wait_ns = env->budget->ops->admit(env->budget, now_ns);
    if (wait_ns > 0) {
        wait_for_token(x, wait_ns, now_ns, acts);
        return;
    }
    if (x->admitting)
        x->run.waited_ns += now_ns - x->admitting_since_ns;
    x->admitting = x->redialled = false;
    /* What cannot be sent again must not meet a stale connection. */
    dial(x, x->distrust || x->once, acts);
}

/* What an attempt says about connections (13.1): after a transport failure other idle ones are as
 * likely to be dead, and in behaviour 2.0 a transient error is reason enough. */
static bool is_suspect(const struct xch *x, const struct retry_outcome *o, enum retry_class class)
{
    return o->failure != RETRY_FAIL_NONE ||
           (x->env.policy->fresh_after_transient && class == RETRY_TRANSIENT);
}

/* An attempt came to an end. */
static void judge(struct xch *x, const struct retry_outcome *o, int64_t now_ns,
                  struct xch_acts *acts)
{
    const struct xch_env *env = &x->env;
    const struct verdict_limits limits = {
        .replayable = x->replayable,
        .can_park = env->can_park(env->arg),
        .max_delay_ns = env->max_delay_ns(env->arg, now_ns),
    };
    struct verdict *v = &acts->verdict;
    verdict_after(env->policy, &x->run, o, &limits, env->budget, env->rng, v);
    acts->judged = true;
    x->failure = o->failure;
    x->distrust = is_suspect(x, o, v->class);
    if (env->policy->mode == RETRY_MODE_ADAPTIVE)
        env->budget->ops->observe(env->budget, v->class == RETRY_THROTTLING, now_ns);

    if (v->what == VERDICT_DELIVER) {
        deliver(x, acts);
        return;
    }
    if (v->what == VERDICT_RETRY && x->conn) {
        bool fit = x->sent && x->whole && !x->distrust;
        release(x, acts, fit ? XACT_KEEP : XACT_DROP);
    } else if (x->conn && !x->holding) {
        release(x, acts, XACT_DROP); /* a penalty needs the connection for a held response only */
    }
    arm(acts, v->delay_ns);
    set_state(x, v->what == VERDICT_RETRY ? XST_BACKOFF : XST_PENALTY);
}

static void on_head(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                    struct xch_acts *acts)
{
    x->holding = true;
    if (ev->peek) {
        act(acts, XACT_PEEK);
        set_state(x, XST_PEEK);
        return;
    }
    x->whole = ev->whole;
    judge(x, &ev->outcome, now_ns, acts);
}

/* A reused connection that is found closed, without a response byte, was closed while it idled: our
 * request did not reach anyone (RFC 9112 9.3.1). Silence until a timeout says nothing of the kind.
 */
static bool is_stale(const struct xch *x, const struct xch_event *ev)
{
    enum retry_failure f = ev->outcome.failure;
    return x->reused && ev->silent && (f == RETRY_FAIL_CLOSED || f == RETRY_FAIL_RESET);
}

/* SEND and WAIT. A stale connection cost no attempt, once and if the request can start over. */
static void on_attempt_broken(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                              struct xch_acts *acts)
{
    if (is_stale(x, ev) && !x->redialled && x->replayable) {
        release(x, acts, XACT_DROP);
        x->redialled = true;
        dial(x, true, acts);
        return;
    }
    judge(x, &ev->outcome, now_ns, acts);
}

static void on_penalty_broken(struct xch *x, const struct xch_event *ev, struct xch_acts *acts)
{
    ASSERT(x->conn);
    if (x->whole)
        return; /* all of it is held already */
    x->failure = ev->outcome.failure;
    release(x, acts, XACT_LOSE);
}

static void on_client_gone(struct xch *x, struct xch_acts *acts)
{
    if (x->state == XST_DONE)
        return;
    if (x->conn)
        release(x, acts, XACT_DROP);
    if (timer_armed(x))
        act(acts, XACT_DISARM);
    finish(x, acts);
}

/* Each handler takes the events of its state; false: the event makes no sense there. */

static bool step_new(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                     struct xch_acts *acts)
{
    if (ev->kind != XEV_START)
        return false;
    begin_attempt(x, now_ns, acts);
    return true;
}

/* ADMIT and BACKOFF. */
static bool step_waiting(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                         struct xch_acts *acts)
{
    if (ev->kind != XEV_TIMER)
        return false;
    begin_attempt(x, now_ns, acts);
    return true;
}

static bool step_dial(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                      struct xch_acts *acts)
{
    switch (ev->kind) {
    case XEV_UP:
        x->conn = true;
        x->reused = ev->reused;
        act(acts, XACT_SEND);
        x->replayable = x->replayable && !x->once;
        set_state(x, XST_SEND);
        return true;
    case XEV_FAIL:
        judge(x, &ev->outcome, now_ns, acts);
        return true;
    default:
        return false;
    }
}

static bool step_send(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                      struct xch_acts *acts)
{
    switch (ev->kind) {
    case XEV_SENT:
        x->sent = true;
        set_state(x, XST_WAIT);
        return true;
    case XEV_UNREPLAYABLE:
        x->replayable = false;
        return true;
    case XEV_HEAD:
        on_head(x, ev, now_ns, acts);
        return true;
    case XEV_BROKEN:
        on_attempt_broken(x, ev, now_ns, acts);
        return true;
    default:
        return false;
    }
}

static bool step_wait(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                      struct xch_acts *acts)
{
    if (ev->kind != XEV_HEAD && ev->kind != XEV_BROKEN)
        return false;
    return step_send(x, ev, now_ns, acts);
}

/* PEEK, PENALTY, RELAY: a response may overtake the request, whose end is then news that comes
 * late. */
static bool late_news(struct xch *x, const struct xch_event *ev)
{
    if (ev->kind == XEV_SENT)
        x->sent = true;
    else if (ev->kind == XEV_UNREPLAYABLE)
        x->replayable = false;
    else
        return false;
    return true;
}

static bool step_peek(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                      struct xch_acts *acts)
{
    switch (ev->kind) {
    case XEV_PEEKED:
        x->whole = ev->whole;
        judge(x, &ev->outcome, now_ns, acts);
        return true;
    case XEV_BROKEN:
        x->holding = false; /* a response without its end cannot be delivered as received */
        judge(x, &ev->outcome, now_ns, acts);
        return true;
    default:
        return late_news(x, ev);
    }
}

static bool step_penalty(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                         struct xch_acts *acts)
{
    (void)now_ns;
    switch (ev->kind) {
    case XEV_TIMER:
        deliver(x, acts);
        return true;
    case XEV_BROKEN:
        on_penalty_broken(x, ev, acts);
        return true;
    default:
        return late_news(x, ev);
    }
}

static bool step_relay(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                       struct xch_acts *acts)
{
    (void)now_ns;
    if (ev->kind != XEV_END && ev->kind != XEV_BROKEN)
        return late_news(x, ev);
    bool fit = ev->kind == XEV_END && ev->keep && x->sent;
    release(x, acts, fit ? XACT_KEEP : XACT_DROP);
    finish(x, acts);
    return true;
}

static bool step_done(struct xch *x, const struct xch_event *ev, int64_t now_ns,
                      struct xch_acts *acts)
{
    (void)x, (void)ev, (void)now_ns, (void)acts;
    return false;
}

void xch_init(struct xch *x, const struct xch_env *env, bool replayable)
{
    *x = (struct xch){.state = XST_NEW, .env = *env, .once = !replayable, .replayable = true};
}

void xch_step(struct xch *x, const struct xch_event *ev, int64_t now_ns, struct xch_acts *acts)
{
    static bool (*const steps[])(struct xch *, const struct xch_event *, int64_t,
                                 struct xch_acts *) = {
        [XST_NEW] = step_new,         [XST_ADMIT] = step_waiting,   [XST_DIAL] = step_dial,
        [XST_SEND] = step_send,       [XST_WAIT] = step_wait,       [XST_PEEK] = step_peek,
        [XST_BACKOFF] = step_waiting, [XST_PENALTY] = step_penalty, [XST_RELAY] = step_relay,
        [XST_DONE] = step_done,
    };
    acts->n = 0;
    acts->judged = false;
    if (ev->kind == XEV_CLIENT_GONE) {
        on_client_gone(x, acts);
        return;
    }
    bool sensible = steps[x->state](x, ev, now_ns, acts);
    ASSERT(sensible);
}
