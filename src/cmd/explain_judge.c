/* The case through the engine, by the steps that the proxy takes: identify, find the settings, hold
 * what must be held, read it, judge. Nothing is decided here.
 *
 * A wait is random, so each judgement is asked for twice, with the least and the greatest random
 * fraction; the waits in between are possible, too. The quota is full and nothing was waited for
 * before. Each judgement is made within the bounds of the configuration and of the signature; its
 * wait is shown also where it would be too long. */
#include "cmd/explain.h"

#include "core/aws/sigtime.h"
#include "core/base/units.h"
#include "core/retry/membudget.h"
#include "proxy/route.h"

/* Failures before a byte of the request was sent. */
#define BEFORE_SEND                                                                                \
    (RETRY_FAILURE(RETRY_FAIL_DNS) | RETRY_FAILURE(RETRY_FAIL_CONNECT_REFUSED) |                   \
     RETRY_FAILURE(RETRY_FAIL_CONNECT_TIMEOUT) | RETRY_FAILURE(RETRY_FAIL_TLS) |                   \
     RETRY_FAILURE(RETRY_FAIL_TLS_TIMEOUT) | RETRY_FAILURE(RETRY_FAIL_CERTIFICATE) |               \
     RETRY_FAILURE(RETRY_FAIL_PARENT) | RETRY_FAILURE(RETRY_FAIL_PARENT_REFUSED) |                 \
     RETRY_FAILURE(RETRY_FAIL_POLICY) | RETRY_FAILURE(RETRY_FAIL_OVERLOAD) |                       \
     RETRY_FAILURE(RETRY_FAIL_RATE_LIMIT))

/* --- settings --- */

static bool is_listed(const struct config *c, struct slice host)
{
    for (size_t i = 0; i < c->n_intercept_hosts; i++)
        if (host_pattern_match(&c->intercept_hosts[i], host))
            return true;
    return false;
}

static bool port_allowed(const struct config *c, uint16_t port)
{
    for (size_t i = 0; i < c->n_http_ports; i++)
        if (c->http_ports[i] == port)
            return true;
    return false;
}

static enum explain_access access_of(const struct explain_case *x, const struct config *c)
{
    const struct proxy px = {.config = c};
    struct listener_config rules; /* of a plain one */
    config_plain_listener(c, NULL, &rules);
    if (x->plain && !port_allowed(c, x->origin.port))
        return EXPLAIN_PORT;
    if (x->plain)
        return route_host_allowed(c, &rules, slice_str(x->origin.host)) ? EXPLAIN_PLAIN
                                                                        : EXPLAIN_HOST;
    switch (route_connect(&px, &rules, &x->origin)) {
    case ROUTE_OPEN:
        return EXPLAIN_OPENED;
    case ROUTE_TUNNEL:
        return EXPLAIN_UNREAD;
    case ROUTE_REFUSE_HOST:
        return EXPLAIN_HOST;
    case ROUTE_REFUSE_PORT:
        break;
    }
    return EXPLAIN_PORT;
}

static void identify(struct explanation *e, struct arena *a)
{
    enum { PREFIX_BYTES = 4096 };
    const struct explain_case *x = e->x;
    struct slice host = slice_str(x->origin.host), prefix = x->req_body;
    if (prefix.n > PREFIX_BYTES)
        prefix.n = PREFIX_BYTES;
    aws_identify(&x->req, host, x->path_query, prefix, a, &e->target);
    e->wire = aws_wire_of(&x->req, &e->target);
    e->facts = (struct request_facts){
        .target = &e->target,
        .host = host,
        .method = x->req.method_id,
        .method_text = x->req.method,
        .idempotency_key = header_has(&x->req.fields, SLICE("Idempotency-Key")),
        .intercept_listed = is_listed(e->config, host),
        .listener = x->listener,
    };
    config_effective(e->config, &e->facts, &e->effective);
    e->access = access_of(x, e->config);
}

/* --- what the answer means --- */

static bool replayable(const struct explanation *e)
{
    return !e->too_large && (e->effective.may_repeat || e->unsent);
}

static struct hold hold_of(const struct explanation *e)
{
    const struct explain_case *x = e->x;
    const struct aws_target *t = &e->target;
    const struct aws_options *o = &e->effective.aws;
    const struct retry_policy *p = &e->effective.policy;
    unsigned doubts = (aws_error_in_200(t, o) ? HOLD_DOUBT_ROOT : 0) |
                      (aws_checksummed(&x->resp, t, o) ? HOLD_DOUBT_CHECKSUM : 0);
    bool may_retry = p->mode != RETRY_MODE_OFF && replayable(e) && x->attempt < p->max_attempts;
    return hold_decide(&x->resp, x->req.method_id, t->is_aws, doubts, may_retry, &e->config->hold);
}

static void read_answer(struct explanation *e, int64_t now_s, struct arena *a)
{
    const struct explain_case *x = e->x;
    struct retry_outcome *outcome = &e->reading.outcome;
    outcome->failure = x->failure;
    if (!x->has_response) {
        outcome->status = x->failure == RETRY_FAIL_CHECKSUM ? 200 : 0;
        return;
    }
    struct hold hold = hold_of(e);
    e->under_way = x->failure && (hold.kind == HOLD_NONE || x->body.n >= hold.bytes);
    outcome->status = x->resp.status;
    if (x->failure && !e->under_way)
        return;
    const struct aws_response r = {
        .head = &x->resp,
        .held = slice_of(x->body.p, x->body.n < hold.bytes ? x->body.n : hold.bytes),
        .whole = hold.kind == HOLD_NONE ? x->resp.framing == HTTP_BODY_NONE
                                        : x->body_ended && x->body.n <= hold.bytes,
        .now_s = now_s,
    };
    aws_outcome(&r, &e->target, &e->effective.aws, a, &e->reading);
}

/* --- what follows --- */

int64_t explain_signature_left_ns(const struct explanation *e)
{
    if (e->deadline_s == SIGTIME_NEVER)
        return INT64_MAX;
    int64_t s = e->deadline_s - e->moment_s;
    return (s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s) * NS_PER_S;
}

/* The longest wait in which a retry would not be too late, and what says so. Time passes by waits
 * alone. */
static int64_t left_ns(const struct explanation *e, int64_t waited_ns, const char **bound)
{
    const struct {
        int64_t ns;
        const char *name;
    } bounds[] = {
        {e->config->max_total_wait_ns, "retry.max_total_wait"},
        {e->effective.max_elapsed_ns, "retry.max_elapsed"},
        {e->effective.client_timeout_ns, "retry.client_timeout"},
    };
    int64_t least = explain_signature_left_ns(e);
    *bound = "its signature";
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++)
        if ((bounds[i].ns > 0 || i == 0) && bounds[i].ns < least) {
            least = bounds[i].ns;
            *bound = bounds[i].name;
        }
    return least == INT64_MAX ? least : least - waited_ns;
}

/* Attempts that end alike, always with the same random fraction. */
struct chain {
    double r;
    struct retry_run run;
    struct membudget budget;
};

static double unit(void *state)
{
    return *(const double *)state;
}

static void ask(const struct explanation *e, struct chain *c, const struct retry_outcome *o,
                int64_t max_delay_ns, struct verdict *out)
{
    const struct verdict_limits limits = {
        .replayable = replayable(e), .can_park = true, .max_delay_ns = max_delay_ns};
    verdict_after(&e->effective.policy, &c->run, o, &limits, &c->budget.base,
                  (struct rng_source){unit, &c->r}, out);
}

/* The judgement within bounds. The chain goes on as if there were none. */
static struct verdict judge(const struct explanation *e, struct chain *c, int64_t *wait_ns,
                            const char **bound)
{
    struct chain bounded = *c;
    struct verdict v, unbounded;
    ask(e, &bounded, &e->reading.outcome, left_ns(e, c->run.waited_ns, bound), &v);
    ask(e, c, &e->reading.outcome, INT64_MAX, &unbounded);
    *wait_ns = unbounded.delay_ns;
    return v;
}

static unsigned gain_of(const struct explanation *e, struct chain retried)
{
    const struct retry_outcome success = {.status = 200};
    struct verdict v;
    ask(e, &retried, &success, INT64_MAX, &v);
    return v.tokens_after - v.tokens_before;
}

static void follow(struct explanation *e)
{
    const struct retry_run before = {.attempts = e->x->attempt - 1};
    struct chain least = {.r = 0, .run = before}, most = {.r = 1, .run = before};
    const char *ignored;
    membudget_init(&least.budget);
    membudget_init(&most.budget);
    struct explain_step *step;
    do {
        step = &e->v[e->n++];
        step->attempt = e->x->attempt + e->n - 1;
        step->least = judge(e, &least, &step->least_ns, e->n == 1 ? &e->bound : &ignored);
        step->most = judge(e, &most, &step->most_ns, &ignored);
        step->gain = gain_of(e, least);
    } while (step->least.what == VERDICT_RETRY && e->n < EXPLAIN_STEPS_MAX);
}

void explain_judge(const struct explain_case *x, const struct config *c, int64_t now_s,
                   struct arena *a, struct explanation *out)
{
    *out = (struct explanation){.x = x, .config = c, .moment_s = now_s};
    struct slice date = header_get(&x->resp.fields, SLICE("Date"));
    identify(out, a);
    out->deadline_s =
        sigtime_deadline_s(&x->req, x->path_query, c->max_signature_age_ns / NS_PER_S);
    out->moment_is_date = x->has_response && sigtime_parse_http(date, &out->moment_s);
    out->too_large = (x->req.framing == HTTP_BODY_LENGTH ? x->req.content_length : x->req_body.n) >
                     out->effective.replay_memory_bytes + out->effective.replay_disk_bytes;
    out->unsent = !x->has_response && (BEFORE_SEND & RETRY_FAILURE(x->failure));
    read_answer(out, now_s, a);
    follow(out);
}
