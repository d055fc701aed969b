/* A hostile environment for one exchange: it sends any event that its own picture of the world
 * allows, as a `pick` function chooses, obeys every action, and asserts the invariants of
 * exchange.h after each step.
 *
 * Its picture is kept apart from the machine's state, so that the two check each other. The random
 * walk and the fuzz target share it. */
#ifndef RETRYD_TESTS_HOSTILE_H
#define RETRYD_TESTS_HOSTILE_H

#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"

/* Some number in [0, n). */
struct picker {
    unsigned (*pick)(void *arg, unsigned n);
    void *arg;
};

struct hostile {
    struct picker picker;
    struct retry_policy policy;
    struct membudget budget;
    struct xch x;
    int64_t now_ns;

    /* The picture. */
    bool started, timer, dialling, dial_fresh, conn, reused, sending, sent;
    bool awaiting_head, head_seen, peeking, held, whole, relaying;
    bool answered, gone, finished;

    /* The account. */
    unsigned judged, sends, stale, admitted, observed, conns, conns_closed;
    int64_t armed_ns;           /* waits, those for send tokens as long as they really were */
    int64_t admitting_since_ns; /* 0: waits for no send token */
};

static inline unsigned hostile_pick(struct hostile *h, unsigned n)
{
    return h->picker.pick(h->picker.arg, n);
}

static inline struct hostile *hostile_of(struct budget *b)
{
    return (struct hostile *)(void *)((char *)b - offsetof(struct hostile, budget));
}

/* --- what the machine asks of the world --- */

static bool hostile_spend(struct budget *b, unsigned cost, unsigned capacity)
{
    struct membudget *m = &hostile_of(b)->budget;
    if (capacity - m->debt < cost)
        return false;
    m->debt += cost;
    return true;
}

static void hostile_refund(struct budget *b, unsigned amount)
{
    struct membudget *m = &hostile_of(b)->budget;
    m->debt = m->debt > amount ? m->debt - amount : 0;
}

static unsigned hostile_tokens(const struct budget *b, unsigned capacity)
{
    const struct membudget *m = (const struct membudget *)b;
    ASSERT(m->debt <= capacity);
    return capacity - m->debt;
}

static int64_t hostile_admit(struct budget *b, int64_t now_ns)
{
    struct hostile *h = hostile_of(b);
    ASSERT(h->policy.mode == RETRY_MODE_ADAPTIVE);
    ASSERT(now_ns == h->now_ns);
    if (hostile_pick(h, 3) == 0)
        return 1 + (int64_t)hostile_pick(h, 1000) * NS_PER_MS;
    h->admitted++;
    return 0;
}

static void hostile_observe(struct budget *b, bool throttled, int64_t now_ns)
{
    struct hostile *h = hostile_of(b);
    (void)throttled;
    ASSERT(h->policy.mode == RETRY_MODE_ADAPTIVE);
    ASSERT(now_ns == h->now_ns);
    h->observed++;
}

static const struct budget_ops hostile_ops = {hostile_spend, hostile_refund, hostile_tokens,
                                              hostile_admit, hostile_observe};

static double hostile_unit(void *state)
{
    return (double)hostile_pick(state, 1000) / 1000.0;
}

static int64_t hostile_max_delay_ns(void *arg, int64_t now_ns)
{
    struct hostile *h = arg;
    ASSERT(now_ns == h->now_ns);
    switch (hostile_pick(h, 16)) {
    case 0:
        return -1;
    case 1:
        return (int64_t)hostile_pick(h, 2000) * NS_PER_MS;
    default:
        return INT64_MAX;
    }
}

static bool hostile_can_park(void *arg)
{
    return hostile_pick(arg, 16) != 0;
}

static inline void hostile_init(struct hostile *h, struct picker picker)
{
    static const struct retry_code codes[] = {
        {{"RequestTimeout", 14}, RETRY_TRANSIENT},
        {{"SlowDown", 8}, RETRY_THROTTLING},
    };
    *h = (struct hostile){.picker = picker, .policy = retry_policy_standard_21, .now_ns = 1};
    h->policy.codes = (struct retry_codes){codes, ARRAY_LEN(codes)};
    h->policy.mode = (enum retry_mode)hostile_pick(h, RETRY_MODE_LEGACY + 1);
    h->policy.quota = (enum retry_quota)hostile_pick(h, RETRY_QUOTA_JAVA_V1 + 1);
    h->policy.cost_throttling = hostile_pick(h, 6);
    h->policy.fresh_after_transient = hostile_pick(h, 2);
    h->policy.max_attempts = 1 + hostile_pick(h, 5);
    h->policy.long_poll = hostile_pick(h, 2);
    h->policy.quota_capacity = hostile_pick(h, 100);
    h->budget.base.ops = &hostile_ops;
    h->budget.debt = hostile_pick(h, h->policy.quota_capacity + 1);
    const struct xch_env env = {
        .policy = &h->policy,
        .budget = &h->budget.base,
        .rng = {hostile_unit, h},
        .max_delay_ns = hostile_max_delay_ns,
        .can_park = hostile_can_park,
        .arg = h,
    };
    xch_init(&h->x, &env, hostile_pick(h, 8) != 0);
}

/* --- events --- */

static inline enum retry_failure hostile_failure(struct hostile *h)
{
    return (enum retry_failure)(1 + hostile_pick(h, RETRY_FAIL_COUNT - 1));
}

static inline void hostile_outcome(struct hostile *h, struct retry_outcome *o)
{
    static const unsigned statuses[] = {200, 204, 301, 400, 403, 429, 500, 503};
    static const struct slice codes[] = {{NULL, 0}, {"SlowDown", 8}, {"RequestTimeout", 14}};
    o->status = statuses[hostile_pick(h, ARRAY_LEN(statuses))];
    o->code = codes[hostile_pick(h, ARRAY_LEN(codes))];
    o->error_in_200 = o->status == 200 && hostile_pick(h, 4) == 0;
    o->has_retry_after = hostile_pick(h, 4) == 0;
    o->retry_after_ns = (int64_t)hostile_pick(h, 60000) * NS_PER_MS;
}

/* All event kinds that may happen now. */
static inline unsigned hostile_choices(const struct hostile *h, enum xch_event_kind *v)
{
    unsigned n = 0;
    if (!h->started)
        v[n++] = XEV_START;
    if (h->timer)
        v[n++] = XEV_TIMER;
    if (h->dialling) {
        v[n++] = XEV_UP;
        v[n++] = XEV_FAIL;
    }
    if (h->sending) {
        v[n++] = XEV_SENT;
        v[n++] = XEV_UNREPLAYABLE;
    }
    if (h->awaiting_head)
        v[n++] = XEV_HEAD;
    if (h->peeking)
        v[n++] = XEV_PEEKED;
    if (h->relaying)
        v[n++] = XEV_END;
    if (h->conn)
        v[n++] = XEV_BROKEN;
    return n;
}

/* Fills the event and moves the picture on to where the event leaves it. */
static inline void hostile_happen(struct hostile *h, enum xch_event_kind kind, struct xch_event *ev)
{
    *ev = (struct xch_event){.kind = kind};
    switch (kind) {
    case XEV_START:
        h->started = true;
        break;
    case XEV_TIMER:
        h->timer = false;
        break;
    case XEV_UP:
        h->dialling = false;
        h->conn = true;
        h->conns++;
        h->reused = ev->reused = hostile_pick(h, 2); /* even when asked for a fresh one */
        break;
    case XEV_FAIL:
        h->dialling = false;
        ev->outcome.failure = hostile_failure(h);
        break;
    case XEV_SENT:
        h->sending = false;
        h->sent = true;
        break;
    case XEV_HEAD:
        h->awaiting_head = false;
        h->head_seen = h->held = true;
        ev->peek = hostile_pick(h, 2);
        h->whole = ev->whole = !ev->peek && hostile_pick(h, 2);
        if (!ev->peek)
            hostile_outcome(h, &ev->outcome);
        break;
    case XEV_PEEKED:
        h->peeking = false;
        h->whole = ev->whole = hostile_pick(h, 2);
        hostile_outcome(h, &ev->outcome);
        if (hostile_pick(h, 8) == 0)
            ev->outcome.failure = RETRY_FAIL_CHECKSUM;
        break;
    case XEV_BROKEN:
        ev->silent = !h->head_seen && hostile_pick(h, 2);
        ev->outcome.failure = hostile_failure(h);
        h->held = h->held && h->whole;
        h->sending = h->awaiting_head = h->peeking = false;
        break;
    case XEV_END:
        ev->keep = hostile_pick(h, 2);
        h->whole = true;
        break;
    case XEV_CLIENT_GONE:
        h->gone = true;
        break;
    case XEV_UNREPLAYABLE:
        break;
    }
}

/* --- actions --- */

static inline void hostile_conn_over(struct hostile *h)
{
    ASSERT(h->conn);
    h->conn = h->reused = h->held = false;
    h->sending = h->awaiting_head = h->peeking = h->relaying = false;
    h->conns_closed++;
}

static inline void hostile_obey(struct hostile *h, const struct xch_action *a)
{
    ASSERT(!h->finished);
    switch (a->kind) {
    case XACT_ARM:
        ASSERT(!h->timer && a->delay_ns >= 0);
        h->timer = true;
        if (h->x.state != XST_ADMIT)
            h->armed_ns += a->delay_ns;
        else if (h->admitting_since_ns == 0)
            h->admitting_since_ns = h->now_ns;
        break;
    case XACT_DISARM:
        ASSERT(h->timer);
        h->timer = false;
        break;
    case XACT_DIAL:
        if (h->admitting_since_ns != 0)
            h->armed_ns += h->now_ns - h->admitting_since_ns;
        h->admitting_since_ns = 0;
        ASSERT(!h->answered && !h->gone && !h->dialling && !h->conn);
        h->dialling = true;
        h->dial_fresh = a->fresh;
        h->sent = h->head_seen = h->held = h->whole = false;
        break;
    case XACT_SEND:
        ASSERT(h->conn && !h->sending && !h->sent);
        ASSERT(h->sends == 0 || h->x.replayable);
        h->sending = h->awaiting_head = true;
        h->sends++;
        break;
    case XACT_PEEK:
        ASSERT(h->conn && h->held && !h->peeking);
        h->peeking = true;
        break;
    case XACT_KEEP:
        ASSERT(h->sent && h->whole);
        hostile_conn_over(h);
        break;
    case XACT_DROP:
        hostile_conn_over(h);
        break;
    case XACT_LOSE:
        ASSERT(!h->whole && h->timer);
        hostile_conn_over(h);
        break;
    case XACT_RELAY:
        ASSERT(h->held && h->conn && !h->answered && !h->gone);
        h->answered = h->relaying = true;
        break;
    case XACT_REPLY:
        ASSERT(!h->answered && !h->gone && !h->conn && !h->held);
        ASSERT(a->failure != RETRY_FAIL_NONE);
        h->answered = true;
        break;
    case XACT_FINISH:
        ASSERT(h->answered || h->gone);
        h->dialling = false;
        h->finished = true;
        break;
    }
}

static inline void hostile_check(const struct hostile *h, const struct xch_acts *acts)
{
    const struct xch *x = &h->x;
    ASSERT(h->finished == (x->state == XST_DONE));
    ASSERT(h->timer ==
           (x->state == XST_ADMIT || x->state == XST_BACKOFF || x->state == XST_PENALTY));
    ASSERT(h->conn == x->conn);
    ASSERT(h->conns == h->conns_closed + h->conn);
    ASSERT(x->run.attempts == h->judged && h->judged <= h->policy.max_attempts);
    ASSERT(h->sends <= h->policy.max_attempts + h->stale);
    ASSERT(h->budget.debt <= h->policy.quota_capacity);
    ASSERT(x->run.waited_ns == h->armed_ns);
    for (unsigned i = 0; i + 1 < acts->n; i++)
        ASSERT(acts->v[i].kind != XACT_FINISH);
    if (h->policy.mode == RETRY_MODE_ADAPTIVE) {
        ASSERT(h->observed == h->judged);
        ASSERT(h->admitted == h->judged || h->admitted == h->judged + 1);
    }
    if (h->finished) {
        ASSERT(!h->conn && !h->timer && !h->dialling);
    } else {
        enum xch_event_kind any[XEV_CLIENT_GONE + 1];
        ASSERT(hostile_choices(h, any) > 0); /* never stuck */
    }
}

/* Feeds one event and obeys. */
static inline void hostile_feed(struct hostile *h, enum xch_event_kind kind, struct xch_acts *acts)
{
    struct xch_event ev;
    bool was_reused = h->reused, done = h->finished;
    hostile_happen(h, kind, &ev);
    h->now_ns += 1 + hostile_pick(h, 100);
    xch_step(&h->x, &ev, h->now_ns, acts);
    ASSERT(!done || acts->n == 0);
    h->judged += acts->judged;
    for (unsigned i = 0; i < acts->n; i++)
        hostile_obey(h, &acts->v[i]);
    /* A second connection for the same attempt: a reused one, silent, and only once. */
    if (kind == XEV_BROKEN && h->dialling) {
        ASSERT(was_reused && ev.silent && h->dial_fresh && !acts->judged);
        h->stale++;
        ASSERT(h->stale <= h->judged + 1);
    }
    hostile_check(h, acts);
}

/* What happens next; the client leaves now and then. */
static inline enum xch_event_kind hostile_next(struct hostile *h)
{
    enum xch_event_kind v[XEV_CLIENT_GONE + 1];
    unsigned n = hostile_choices(h, v);
    return n == 0 || hostile_pick(h, 48) == 0 ? XEV_CLIENT_GONE : v[hostile_pick(h, n)];
}

#endif
