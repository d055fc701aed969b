/* The driver of the exchange machine. Events that arise while the machine is being stepped are
 * queued, so that an action never re-enters it. After FINISH the drive is gone at the end of the
 * turn. */
#include "proxy/drive.h"
#include "core/aws/sdkrequest.h"
#include "core/aws/sigtime.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "core/http/h1_write.h"
#include "io/obs/accesslog.h"
#include "proxy/reply.h"
#include "proxy/upload.h"

#include <stdlib.h>
#include <time.h>

/* A head that was accepted is at most 64 KiB; Host and Via add less than this. */
enum { HEAD_OUT_MAX = 72 * 1024 };

static int64_t max_delay_ns(void *arg, int64_t now_ns)
{
    struct drive *d = arg;
    const struct effective *e = &d->route.effective;
    int64_t left = d->px->config->max_total_wait_ns - d->xch.run.waited_ns;
    int64_t elapsed = now_ns - d->started_ns;
    if (e->max_elapsed_ns > 0 && e->max_elapsed_ns - elapsed < left)
        left = e->max_elapsed_ns - elapsed;
    if (e->client_timeout_ns > 0 && e->client_timeout_ns - elapsed < left)
        left = e->client_timeout_ns - elapsed;
    if (d->deadline_s != SIGTIME_NEVER) {
        struct timespec wall;
        clock_gettime(CLOCK_REALTIME, &wall);
        int64_t s = d->deadline_s - (wall.tv_sec + d->clock_skew_s);
        int64_t until = (s > INT32_MAX ? INT32_MAX : s) * NS_PER_S - wall.tv_nsec;
        if (until < left)
            left = until;
    }
    return left; /* negative: even a retry without a wait would be too late */
}

static bool can_park(void *arg)
{
    struct drive *d = arg;
    /* While the proxy is being stopped the error at hand is the better answer. */
    return !d->px->draining && parking_has_room(&d->px->parking, budgets_id(d->route.budget)) &&
           bodylog_has_room(&d->px->replay) && !client_is_gone(d->client);
}

static void park(struct drive *d, bool on)
{
    if (on && !drive_is_parked(d))
        parking_enter(&d->px->parking, budgets_id(d->route.budget), &d->place);
    else if (!on)
        parking_leave(&d->place);
}

static void on_timer(void *arg)
{
    struct drive *d = arg;
    park(d, false);
    drive_event(d, &(struct xch_event){.kind = XEV_TIMER});
}

/* The head of the queue has changed, or the rate: the token may be there. */
static void on_wake(void *arg)
{
    struct drive *d = arg;
    if (d->xch.state == XST_ADMIT)
        loop_timer_arm(&d->timer, 0);
}

/* What the request line names: the path, or towards a parent proxy the whole URL (RFC 9112 3.2.2;
 * for "*" the URL without a path, 3.2.4). */
static struct slice target_to_send(const struct drive *d, struct strbuf *url)
{
    const struct route *r = &d->route;
    char text[AUTHORITY_TEXT_MAX];
    if (!r->absolute)
        return r->path_query;
    authority_text(&r->origin, text);
    strbuf_put(url, SLICE("http://"));
    strbuf_put(url, slice_of(text, r->origin.port == 80 ? (size_t)(strrchr(text, ':') - text)
                                                        : strlen(text)));
    bool whole_server = slice_eq(r->path_query, SLICE("*"));
    if (!whole_server && (r->path_query.n == 0 || r->path_query.p[0] == '?'))
        strbuf_putc(url, '/');
    if (!whole_server)
        strbuf_put(url, r->path_query);
    return strbuf_slice(url);
}

static void write_head(struct drive *d)
{
    struct client *c = d->client;
    char via[RELAY_VIA_MAX];
    const struct h1_extra extra[] = {
        {SLICE("Via"), relay_via(via, c->req.minor, slice_str(d->px->via))},
        {SLICE("Proxy-Authorization"), d->route.way.authorization},
    };
    size_t n_extra = d->route.absolute && d->route.way.authorization.n > 0 ? 2 : 1;
    struct strbuf url;
    strbuf_init(&url, HEAD_OUT_MAX);
    strbuf_init(&d->head, HEAD_OUT_MAX);
    bool ok =
        h1_write_request(&d->head, &c->req, target_to_send(d, &url), d->route.host, extra, n_extra);
    strbuf_fini(&url);
    ASSERT(ok); /* the parser bounded what it accepted */
}

/* The first bytes of the body; empty when none are there, or no longer. */
static struct slice body_prefix(const struct drive *d)
{
    struct slice prefix;
    struct bodycur start = {0};
    struct bodylog *log = &d->client->log;
    if (log->end == 0 || log->base > 0 || !bodylog_peek(log, &start, &prefix))
        return SLICE_NONE;
    return prefix.n > ROUTE_PREFIX_BYTES ? slice_of(prefix.p, ROUTE_PREFIX_BYTES) : prefix;
}

/* The query protocol names its operation in the form that it sends: looked at once, before the
 * first attempt if it must be, else when an attempt comes to an end. */
static void look_at_body(struct drive *d)
{
    struct client *c = d->client;
    if (d->looked || d->route.target.operation.n > 0 || c->log.end == 0)
        return;
    d->looked = true;
    struct slice type = header_get(&c->req.fields, SLICE("Content-Type"));
    struct slice prefix = body_prefix(d);
    if (slice_starts_nocase(type, SLICE("application/x-www-form-urlencoded")) && prefix.n > 0)
        route_identify_late(d->px, &d->route, &c->req, prefix, &c->arena);
}

/* Whether more of the body is to come before it is known whose budget the request is on. A client
 * that waits for 100 Continue sends nothing before the upstream was asked. */
static bool must_wait_for_body(const struct drive *d)
{
    const struct client *c = d->client;
    return !c->body_done && c->log.end < ROUTE_PREFIX_BYTES && !c->req.expect_continue &&
           bodylog_room(&c->log, NULL) > 0 && route_key_in_body(d->px, &d->route, &c->req);
}

static void begin(struct drive *d)
{
    struct client *c = d->client;
    struct proxy *px = d->px;
    d->begun = true;
    if (route_key_in_body(px, &d->route, &c->req))
        look_at_body(d);
    route_budget(px, &d->route, &c->req, body_prefix(d), &c->arena);
    admission_ticket_init(&d->ticket, &px->admission, d->route.budget, on_wake, d);
    struct xch_env env = {.policy = &d->route.effective.policy,
                          .budget = &d->ticket.base,
                          .max_admission_ns = px->config->max_admission_ns,
                          .rng = rng_as_source(&px->rng),
                          .max_delay_ns = max_delay_ns,
                          .can_park = can_park,
                          .arg = d};
    /* Where retries are off, an idempotent request may still be sent again on a fresh connection
     * when a pooled one turns out stale (RFC 9112 9.3.1); anything else goes out once. */
    bool once = !d->route.effective.may_repeat && !http_method_idempotent(c->req.method_id);
    xch_init(&d->xch, &env, !once);
    if (once)
        bodylog_give_up(&c->log);
    drive_event(d, &(struct xch_event){.kind = XEV_START});
}

struct drive *drive_start(struct client *c, const struct route *route)
{
    struct drive *d = xcalloc(1, sizeof *d);
    struct proxy *px = c->px;
    d->px = px;
    d->client = c;
    d->route = *route;
    d->xid = ++px->next_xid;
    d->started_ns = loop_now_ns(px->loop);
    d->end = "client_gone";
    d->why = VERDICT_NOT_RETRYABLE;
    d->deadline_s = sigtime_deadline_s(&c->req, d->route.path_query,
                                       px->config->max_signature_age_ns / NS_PER_S);
    loop_timer_init(&d->timer, px->loop, on_timer, d);
    attempt_init(&d->attempt, d);
    write_head(d);
    c->drive = d;
    if (!must_wait_for_body(d))
        begin(d);
    return d;
}

static void free_drive(void *obj)
{
    struct drive *d = obj;
    attempt_fini(&d->attempt);
    loop_timer_fini(&d->timer);
    strbuf_fini(&d->head);
    free(d);
}

static struct slice caller_label(const struct drive *d)
{
    struct slice key = d->route.target.access_key;
    return key.n > 4 ? slice_of(key.p + key.n - 4, 4) : SLICE_NONE;
}

/* A stopping proxy has no room to wait, and cuts waits short: then that is the reason that people
 * look for. */
static const char *why_text(const struct drive *d, enum verdict_why why)
{
    return d->given_up || (d->px->draining && why == VERDICT_OVERLOAD) ? "shutting_down"
                                                                       : verdict_why_name(why);
}

static void record_request(const struct drive *d)
{
    const struct client *c = d->client;
    struct access_request r = {
        .xid = d->xid,
        .method = c->req.method,
        .host = slice_str(d->route.origin.host),
        .service = d->route.target.service_name,
        .region = d->route.target.region,
        .operation = d->route.target.operation,
        .status = d->status,
        .attempts = d->xch.run.attempts,
        .client_attempt = sdkrequest_attempt(&c->req.fields),
        .end = d->end,
        .failure = retry_failure_name(d->cut_by),
        .detail = d->cut_by != RETRY_FAIL_NONE ? d->attempt.detail : "",
        .why = why_text(d, d->why),
        .took_ns = loop_now_ns(d->px->loop) - d->started_ns,
        .waited_ns = d->xch.run.waited_ns,
        .body_in = c->log.end,
        .body_out = c->relay.body_bytes,
        .client = slice_str(c->peer.text),
        .user = slice_str(c->user),
        .key = caller_label(d),
    };
    accesslog_request(&r);
}

/* What is known of the present attempt whatever became of it. */
static struct access_attempt attempt_facts(const struct drive *d)
{
    return (struct access_attempt){
        .xid = d->xid,
        .host = slice_str(d->route.origin.host),
        .service = d->route.target.service_name,
        .operation = d->route.target.operation,
        .attempt = d->xch.run.attempts,
        .max_attempts = d->route.effective.policy.max_attempts,
        .failure = "",
        .detail = d->attempt.detail,
        .class_name = "",
        .rule = "",
        .took_ns = loop_now_ns(d->px->loop) - d->attempt.started_ns,
        .reused = d->attempt.reused,
        .redialled = d->xch.redialled,
    };
}

static void record_attempt(const struct drive *d, const struct xch_event *ev,
                           const struct verdict *v)
{
    static const char *const decisions[] = {"deliver", "retry", "penalty"};
    struct access_attempt a = attempt_facts(d);
    a.status = ev->outcome.status;
    a.failure = retry_failure_name(ev->outcome.failure);
    a.code = ev->outcome.code;
    a.class_name = retry_class_name(v->class);
    a.rule = retry_rule_name(v->rule);
    a.decision = decisions[v->what];
    a.why = why_text(d, v->why);
    a.wait_ns = v->delay_ns;
    a.quota_before = v->tokens_before;
    a.quota_after = v->tokens_after;
    accesslog_attempt(&a);
}

/* An attempt that the client's departure cuts off is never judged, but it was made. */
static void record_abandoned(struct drive *d)
{
    if (d->attempt.phase == ATTEMPT_IDLE || d->attempt.phase == ATTEMPT_HELD ||
        d->attempt.phase == ATTEMPT_RELAY)
        return;
    d->xch.run.attempts++;
    struct access_attempt a = attempt_facts(d);
    a.status = d->attempt.resp.status;
    a.decision = "abandon";
    a.why = d->end;
    accesslog_attempt(&a);
}

static void finish(struct drive *d)
{
    struct client *c = d->client;
    record_request(d);
    park(d, false);
    loop_timer_disarm(&d->timer);
    attempt_drop(&d->attempt);
    admission_leave(&d->ticket);
    route_release(&d->route);
    loop_defer(d->px->loop, free_drive, d);
    c->drive = NULL;
    client_exchange_done(c, d->ended_well);
}

static void reply_failure(struct drive *d, enum retry_failure failure)
{
    struct client *c = d->client;
    enum reply_kind kind = reply_for_failure(failure);
    c->must_close = c->must_close || !c->body_done || c->px->draining;
    reply_write(c->conn, kind, d->route.wire, c->req.method_id == HTTP_HEAD, c->must_close, d->xid,
                d->attempt.detail);
    c->started = true;
    d->status = reply_status(kind);
    d->end = "own_error";
    d->ended_well = true;
}

static void relay(struct drive *d)
{
    struct client *c = d->client;
    bodylog_give_up(&c->log);
    c->started = true;
    c->must_close = relay_begin(
        &c->relay, c->conn, &d->attempt.resp, c->req.minor, c->req.method_id == HTTP_HEAD,
        c->must_close || !c->body_done || c->px->draining, slice_str(d->px->via));
    d->status = d->attempt.resp.status;
    d->end = "cut"; /* until the end was seen */
    attempt_relay(&d->attempt);
}

/* The log loses bytes only under a sending attempt, so that is when the machine is told: when an
 * attempt is about to send what cannot be kept, or while it sends. */
static void tell_unreplayable(struct drive *d)
{
    if (d->told_unreplayable || !d->client->log.unreplayable)
        return;
    d->told_unreplayable = true;
    drive_event(d, &(struct xch_event){.kind = XEV_UNREPLAYABLE});
}

/* What was not waited for does not count. */
static void cut_wait(struct drive *d)
{
    int64_t left_ns = d->parked_until_ns - loop_now_ns(d->px->loop);
    if (left_ns > 0)
        d->xch.run.waited_ns -= left_ns;
}

static void perform(struct drive *d, const struct xch_action *act)
{
    switch (act->kind) {
    case XACT_ARM:
        park(d, true);
        /* A wait for a send token is counted as it goes, others when they begin. */
        d->parked_until_ns =
            d->xch.state == XST_ADMIT ? 0 : loop_now_ns(d->px->loop) + act->delay_ns;
        loop_timer_arm(&d->timer, act->delay_ns);
        break;
    case XACT_DISARM:
        cut_wait(d);
        park(d, false);
        loop_timer_disarm(&d->timer);
        break;
    case XACT_DIAL:
        attempt_dial(&d->attempt, act->fresh);
        break;
    case XACT_SEND:
        tell_unreplayable(d);
        attempt_send(&d->attempt);
        break;
    case XACT_PEEK:
        attempt_hold(&d->attempt);
        break;
    case XACT_KEEP:
        attempt_keep(&d->attempt);
        break;
    case XACT_DROP:
    case XACT_LOSE:
        attempt_drop(&d->attempt);
        break;
    case XACT_RELAY:
        relay(d);
        break;
    case XACT_REPLY:
        reply_failure(d, act->failure);
        break;
    case XACT_FINISH:
        finish(d);
        break;
    }
}

static bool step(struct drive *d, const struct xch_event *ev)
{
    struct xch_acts acts;
    if (ev->kind == XEV_HEAD || ev->kind == XEV_BROKEN || ev->kind == XEV_FAIL)
        look_at_body(d);
    if (ev->kind == XEV_CLIENT_GONE)
        record_abandoned(d);
    if (ev->kind == XEV_BROKEN && d->attempt.phase == ATTEMPT_RELAY)
        d->cut_by = ev->outcome.failure;
    if (ev->kind == XEV_END) {
        d->end = "delivered";
        d->ended_well = true;
    }
    xch_step(&d->xch, ev, loop_now_ns(d->px->loop), &acts);
    if (acts.judged) {
        d->why = acts.verdict.why;
        record_attempt(d, ev, &acts.verdict);
    }
    for (unsigned i = 0; i < acts.n; i++)
        perform(d, &acts.v[i]);
    return acts.n > 0 && acts.v[acts.n - 1].kind == XACT_FINISH;
}

void drive_event(struct drive *d, const struct xch_event *ev)
{
    ASSERT(d->n_pending < DRIVE_MAX_PENDING);
    d->pending[d->n_pending++] = *ev;
    if (d->stepping)
        return;
    d->stepping = true;
    while (d->n_pending > 0) {
        struct xch_event next = d->pending[0];
        d->n_pending--;
        memmove(d->pending, d->pending + 1, d->n_pending * sizeof d->pending[0]);
        if (step(d, &next))
            return; /* finished: what is still queued is about nothing any more */
    }
    d->stepping = false;
}

bool drive_may_retry(const struct drive *d)
{
    return d->route.effective.policy.mode != RETRY_MODE_OFF && d->xch.replayable &&
           !d->client->log.unreplayable &&
           d->xch.run.attempts + 1 < d->route.effective.policy.max_attempts;
}

void drive_server_date(struct drive *d, struct slice date)
{
    enum { BELIEVABLE_S = 15 * 60 }; /* further off, and the signature would have been refused */
    int64_t server;
    if (d->deadline_s == SIGTIME_NEVER || !sigtime_parse_http(date, &server))
        return;
    int64_t skew = server - (int64_t)time(NULL);
    if (skew >= -BELIEVABLE_S && skew <= BELIEVABLE_S)
        d->clock_skew_s = skew;
}

const struct bodycur *drive_cursor(const struct drive *d)
{
    return d->attempt.sending ? &d->attempt.cur : NULL;
}

void drive_body_more(struct drive *d)
{
    if (!d->begun) {
        if (!must_wait_for_body(d))
            begin(d);
        return;
    }
    if (d->attempt.sending)
        tell_unreplayable(d);
    upload_more(&d->attempt);
}

void drive_client_drained(struct drive *d)
{
    attempt_client_drained(&d->attempt);
}

void drive_client_gone(struct drive *d, const char *end)
{
    d->end = end;
    if (!d->begun) {
        finish(d);
        return;
    }
    drive_event(d, &(struct xch_event){.kind = XEV_CLIENT_GONE});
}

bool drive_is_parked(const struct drive *d)
{
    return d->place.client != NULL;
}

void drive_give_up(struct drive *d)
{
    struct client *c = d->client;
    if (!c->started) {
        c->must_close = true;
        c->started = true;
        reply_write(c->conn, REPLY_SHUTTING_DOWN, d->route.wire, c->req.method_id == HTTP_HEAD,
                    true, d->xid, "");
        d->status = reply_status(REPLY_SHUTTING_DOWN);
        d->given_up = true;
        drive_client_gone(d, "own_error");
        return;
    }
    drive_client_gone(d, "cut");
}
