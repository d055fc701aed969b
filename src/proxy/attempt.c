/* One attempt. All ends of a connection pass attempt_failed(): the one place where a failure gets
 * its kind.
 */
#include "proxy/attempt.h"
#include "core/aws/outcome.h"
#include "core/base/units.h"
#include "core/http/hopbyhop.h"
#include "proxy/drive.h"
#include "proxy/tunnel.h"
#include "proxy/upload.h"

#include <stdio.h>
#include <time.h>

enum {
    MAX_INTERIM = 32, /* D6 */
    PROXY_AUTH_REQUIRED = 407,
    HELD_KEEP_BYTES = 4096, /* memory kept between attempts */
};

static void on_conn(struct conn *conn, enum conn_event ev, void *arg);

static struct proxy *px_of(const struct attempt *at)
{
    return at->drive->px;
}

static struct client *client_of(const struct attempt *at)
{
    return at->drive->client;
}

static int64_t now_of(const struct attempt *at)
{
    return loop_now_ns(px_of(at)->loop);
}

/* The buffer has grown, or is gone: its bytes count in the total. */
static void count_held(struct attempt *at)
{
    bodylog_count_held(&px_of(at)->replay, at->held_counted, at->held.cap);
    at->held_counted = at->held.cap;
}

static void forget_held(struct attempt *at)
{
    size_t max = at->held.max;
    if (at->held.cap > HELD_KEEP_BYTES)
        strbuf_fini(&at->held);
    strbuf_reset(&at->held);
    count_held(at);
    at->held.max = max;
}

/* Forgets the response; the request side is reset by attempt_dial. */
static void reset_response(struct attempt *at)
{
    h1_body_fini(&at->body);
    at->head = (struct h1_head){0};
    at->resp = (struct http_resp){0};
    at->have_head = at->whole = at->saw_bytes = false;
    at->interim = 0;
    forget_held(at);
    arena_reset(&at->arena);
}

static void on_timer(void *arg);
static void on_turn(void *arg);

void attempt_init(struct attempt *at, struct drive *d)
{
    *at = (struct attempt){.drive = d};
    arena_init(&at->arena);
    strbuf_init(&at->held, 0);
    h1_body_init(&at->body, HTTP_BODY_NONE, 0);
    loop_timer_init(&at->timer, d->px->loop, on_timer, at);
    loop_timer_init(&at->turn, d->px->loop, on_turn, at);
}

void attempt_fini(struct attempt *at)
{
    ASSERT(at->conn == NULL && at->dial == NULL);
    reset_response(at);
    strbuf_fini(&at->held);
    count_held(at);
    arena_fini(&at->arena);
    loop_timer_fini(&at->timer);
    loop_timer_fini(&at->turn);
}

/* The upstream's next sign of life is due within ns. */
static void expect_within(struct attempt *at, int64_t ns)
{
    conn_deadline(at->conn, now_of(at) + ns);
}

/* The funnel: every failure of a connection, with its kind. */
void attempt_failed(struct attempt *at, enum retry_failure failure, const char *detail)
{
    snprintf(at->detail, sizeof at->detail, "%s", detail);
    at->sending = at->awaiting_continue = false;
    loop_timer_disarm(&at->timer);
    drive_event(at->drive,
                &(struct xch_event){.kind = XEV_BROKEN,
                                    .silent = !at->saw_bytes,
                                    .outcome = {.failure = failure, .status = at->resp.status}});
}

/* --- request
 * --------------------------------------------------------------------------------------------- */

static void connected(struct attempt *at, struct conn *conn, bool reused)
{
    at->conn = conn;
    at->reused = reused;
    at->phase = ATTEMPT_READY;
    conn_set_owner(conn, on_conn, at);
    drive_event(at->drive, &(struct xch_event){.kind = XEV_UP, .reused = reused});
}

static struct slice pool_key(const struct attempt *at)
{
    return slice_of(at->drive->route.pool_key, at->drive->route.pool_key_n);
}

static void not_connected(struct attempt *at, enum retry_failure failure, const char *detail)
{
    at->phase = ATTEMPT_IDLE;
    slots_leave(&at->slot);
    snprintf(at->detail, sizeof at->detail, "%s", detail);
    drive_event(at->drive, &(struct xch_event){.kind = XEV_FAIL, .outcome = {.failure = failure}});
}

static void on_dialled(void *arg, struct conn *conn, enum net_fail failure, const char *detail)
{
    struct attempt *at = arg;
    at->dial = NULL;
    if (conn != NULL) {
        connected(at, conn, false);
        return;
    }
    if (failure == NET_STARVED)
        pool_shed(px_of(at)->pool); /* for the next */
    not_connected(at, reply_failure_of_net(failure), detail);
}

/* The slot is there: a connection from the pool, or a new one. */
static void connect_up(struct attempt *at)
{
    struct drive *d = at->drive;
    struct proxy *px = d->px;
    const struct route *r = &d->route;
    struct conn *idle = at->fresh ? NULL : pool_take(px->pool, pool_key(at));
    if (idle != NULL) {
        connected(at, idle, true);
        return;
    }
    char via[RELAY_VIA_MAX]; /* 1.1: it is our own CONNECT */
    relay_via(via, 1, slice_str(px->via));
    struct dial_target t = {.host = r->origin.host,
                            .is_ip = r->origin.kind != AUTHORITY_NAME,
                            .port = r->origin.port,
                            .tls = r->tls ? r->way.tls : NULL,
                            .private_ok =
                                route_private_ok(r->from.rules, slice_str(r->origin.host)),
                            .fixed = r->fixed,
                            .source = r->way.source,
                            .parent = r->way.parent,
                            .via = via,
                            .absolute = r->absolute};
    at->dial = dial_start(&px->dialer, &t, on_dialled, at);
}

static void on_slot(void *arg, bool granted)
{
    struct attempt *at = arg;
    if (granted)
        connect_up(at);
    else
        not_connected(at, RETRY_FAIL_OVERLOAD, "no connection to this upstream came free in time");
}

void attempt_dial(struct attempt *at, bool fresh)
{
    struct drive *d = at->drive;
    ASSERT(at->conn == NULL && at->dial == NULL);
    at->detail[0] = '\0';
    at->cur = (struct bodycur){0};
    if (!d->xch.redialled) /* the second connection of an attempt is no new attempt */
        at->started_ns = now_of(at);
    at->phase = ATTEMPT_DIAL;
    at->fresh = fresh;
    if (d->xch.redialled)
        pool_stale(d->px->pool, pool_key(at));
    switch (slots_ask(d->px->slots, pool_key(at), &at->slot, on_slot, at)) {
    case SLOTS_GRANTED:
        connect_up(at);
        break;
    case SLOTS_WAIT:
        break;
    case SLOTS_FULL:
        not_connected(at, RETRY_FAIL_OVERLOAD, "too many requests wait for a connection");
        break;
    }
}

void attempt_send(struct attempt *at)
{
    reset_response(at);
    at->phase = ATTEMPT_HEAD;
    upload_start(at);
}

/* --- response
 * -------------------------------------------------------------------------------------------- */

static struct retry_outcome outcome_of(struct attempt *at)
{
    struct drive *d = at->drive;
    struct aws_reading reading;
    const struct aws_response r = {.head = &at->resp,
                                   .held = strbuf_slice(&at->held),
                                   .whole = at->whole,
                                   .now_s = time(NULL)};
    aws_outcome(&r, &d->route.target, &d->route.effective.aws, &at->arena, &reading);
    return reading.outcome;
}

/* What is held is enough: reads its meaning and hands it to the machine. */
static void judge_held(struct attempt *at, bool whole)
{
    at->phase = ATTEMPT_HELD;
    at->whole = whole;
    loop_timer_disarm(&at->timer);
    conn_deadline(at->conn, 0);
    drive_event(at->drive,
                &(struct xch_event){.kind = XEV_PEEKED, .whole = whole, .outcome = outcome_of(at)});
}

static void truncated(struct attempt *at, enum retry_failure failure)
{
    attempt_failed(at, failure,
                   failure == RETRY_FAIL_MALFORMED ? at->body.problem : "the body was cut short");
}

/* The whole response was seen; the connection is worth keeping or not. */
static bool reusable(const struct attempt *at)
{
    return at->whole && !at->sending && !at->resp.close && conn_in(at->conn).n == 0 &&
           !conn_at_eof(at->conn);
}

static void relayed(struct attempt *at)
{
    struct client *c = client_of(at);
    at->whole = true;
    relay_end(&c->relay, &at->body.trailers);
    conn_flush(c->conn);
    drive_event(at->drive, &(struct xch_event){.kind = XEV_END, .keep = reusable(at)});
}

/* The bound is met, or there is no room for more of it (E6). A code is near the beginning. */
static bool held_enough(const struct attempt *at)
{
    return at->held.n >= at->hold.bytes ||
           (at->held.n >= HELD_KEEP_BYTES && !bodylog_has_room(&px_of(at)->replay));
}

/* One piece of the body: to where the phase says. False: no more for now. */
static bool take_piece(struct attempt *at, struct slice piece)
{
    if (at->phase == ATTEMPT_RELAY) {
        relay_data(&client_of(at)->relay, piece);
        return !conn_out_full(client_of(at)->conn);
    }
    strbuf_put(&at->held, piece);
    count_held(at);
    return !held_enough(at);
}

/* In HOLD never more than the bound is taken off the connection: the rest stays there for the
 * relay. */
static size_t readable_bytes(const struct attempt *at)
{
    size_t n = conn_in(at->conn).n;
    if (at->phase != ATTEMPT_HOLD)
        return n;
    size_t room = at->hold.bytes - at->held.n;
    return n < room ? n : room;
}

static void on_eof(struct attempt *at);

static void read_body(struct attempt *at)
{
    bool taken = true, more = true;
    while (more) {
        size_t n = readable_bytes(at), used;
        struct slice piece;
        enum parse p = h1_body_read(&at->body, conn_in(at->conn).p, n, &at->arena, &used, &piece);
        if (p == PARSE_BAD) {
            truncated(at, RETRY_FAIL_MALFORMED);
            return;
        }
        taken = take_piece(at, piece);
        more = taken && p == PARSE_MORE && used > 0;
        conn_consume(at->conn, used);
        if (p == PARSE_OK) {
            if (at->phase == ATTEMPT_RELAY)
                relayed(at);
            else
                judge_held(at, true);
            return;
        }
    }
    if (at->phase == ATTEMPT_HOLD && held_enough(at)) {
        judge_held(at, false);
        return;
    }
    /* The end may have come while nothing was read (HELD, a paused relay). */
    if (conn_in(at->conn).n == 0 && conn_at_eof(at->conn)) {
        on_eof(at);
        return;
    }
    if (at->phase == ATTEMPT_HOLD) {
        expect_within(at, px_of(at)->config->read_timeout_ns);
        return;
    }
    conn_flush(client_of(at)->conn);
    if (taken) {
        expect_within(at, px_of(at)->config->read_timeout_ns);
        return;
    }
    /* The client's clock runs, until it has drained; what of the response has arrived waits. */
    conn_pause_read(at->conn);
    conn_deadline(at->conn, 0);
}

/* The upstream may leave HTTP only where the request offered it (C12). */
static bool upgraded(const struct attempt *at)
{
    return at->resp.status == 101 && hopbyhop_websocket(&client_of(at)->req.fields) &&
           hopbyhop_websocket(&at->resp.fields);
}

/* 1xx: 100 lets the body go, others are told; 101 is no interim answer, and unasked a fault. */
static bool take_interim(struct attempt *at)
{
    unsigned status = at->resp.status;
    if (status == 101 || ++at->interim > MAX_INTERIM) {
        attempt_failed(at, RETRY_FAIL_MALFORMED,
                       status == 101 ? "101 was not asked for" : "too many interim responses");
        return false;
    }
    if (status != 100)
        client_interim(client_of(at), status, at->resp.reason);
    at->head = (struct h1_head){0};
    at->resp = (struct http_resp){0};
    arena_reset(&at->arena);
    if (status == 100)
        upload_go_on(at);
    return at->phase == ATTEMPT_HEAD;
}

static void take_head(struct attempt *at)
{
    struct drive *d = at->drive;
    const struct http_req *req = &client_of(at)->req;
    at->have_head = true;
    at->whole = at->resp.framing == HTTP_BODY_NONE;
    at->awaiting_continue = false;
    loop_timer_disarm(&at->timer);
    h1_body_init(&at->body, at->resp.framing, at->resp.content_length);
    drive_server_date(d, header_get(&at->resp.fields, SLICE("Date")));
    const struct aws_target *t = &d->route.target;
    const struct aws_options *o = &d->route.effective.aws;
    unsigned doubts = (aws_error_in_200(t, o) ? HOLD_DOUBT_ROOT : 0) |
                      (aws_checksummed(&at->resp, t, o) ? HOLD_DOUBT_CHECKSUM : 0);
    bool eligible = t->is_aws || d->route.effective.policy.mode != RETRY_MODE_OFF;
    at->hold = hold_decide(&at->resp, req->method_id, eligible, doubts, drive_may_retry(d),
                           &d->px->config->hold);
    bool peek = at->hold.kind != HOLD_NONE;
    if (!peek)
        at->phase = ATTEMPT_HELD;
    drive_event(d, &(struct xch_event){.kind = XEV_HEAD,
                                       .peek = peek,
                                       .outcome = peek ? (struct retry_outcome){0} : outcome_of(at),
                                       .whole = at->whole});
}

static void read_head(struct attempt *at)
{
    while (at->phase == ATTEMPT_HEAD) {
        struct slice in = conn_in(at->conn);
        at->saw_bytes = at->saw_bytes || in.n > 0;
        enum parse p = h1_parse_response(&at->head, in.p, in.n, &h1_response_limits,
                                         client_of(at)->req.method_id, &at->arena, &at->resp);
        if (p == PARSE_MORE)
            return;
        if (p == PARSE_BAD) {
            at->resp.status = 0;
            attempt_failed(at, RETRY_FAIL_MALFORMED, at->head.problem);
            return;
        }
        conn_consume(at->conn, at->head.consumed);
        if (at->resp.status == PROXY_AUTH_REQUIRED && at->drive->route.absolute) {
            at->resp.status = 0; /* a word between us and the parent proxy, not for the client */
            attempt_failed(at, RETRY_FAIL_PARENT_REFUSED, "parent proxy answered 407");
            return;
        }
        if (at->resp.status >= 200 || upgraded(at)) {
            take_head(at);
            return;
        }
        if (!take_interim(at))
            return;
    }
}

void attempt_hold(struct attempt *at)
{
    at->phase = ATTEMPT_HOLD;
    at->held.max = at->hold.bytes;
    if (at->hold.time_ns > 0)
        loop_timer_arm(&at->timer, at->hold.time_ns);
    read_body(at);
}

/* From here on opaque bytes both ways; the exchange is over. */
static void become_tunnel(struct attempt *at)
{
    struct client *c = client_of(at);
    struct conn *down = c->conn, *up = at->conn;
    c->relay.open = false;
    c->conn = at->conn = NULL;
    tunnel_join(px_of(at), down, up, &at->drive->route.origin, &at->slot);
    drive_event(at->drive, &(struct xch_event){.kind = XEV_END});
}

void attempt_relay(struct attempt *at)
{
    struct client *c = client_of(at);
    at->phase = ATTEMPT_RELAY;
    if (at->resp.status == 101) {
        become_tunnel(at);
        return;
    }
    relay_data(&c->relay, strbuf_slice(&at->held));
    if (at->whole || at->resp.framing == HTTP_BODY_NONE)
        relayed(at);
    else
        read_body(at);
}

void attempt_client_drained(struct attempt *at)
{
    if (at->phase != ATTEMPT_RELAY || at->conn == NULL)
        return;
    conn_resume_read(at->conn);
    read_body(at);
}

/* --- connection
 * ------------------------------------------------------------------------------------------ */

/* And what was held: a request that waits for its next attempt has no use for it. */
static void forget_conn(struct attempt *at)
{
    at->conn = NULL;
    forget_held(at);
    at->sending = at->awaiting_continue = false;
    at->phase = ATTEMPT_IDLE;
    loop_timer_disarm(&at->timer);
    loop_timer_disarm(&at->turn);
}

void attempt_keep(struct attempt *at)
{
    struct conn *conn = at->conn;
    bool good = reusable(at);
    conn_deadline(conn, 0);
    forget_conn(at);
    if (good)
        pool_put(px_of(at)->pool, pool_key(at), conn, at->reused);
    else
        conn_close(conn, false);
    slots_leave(&at->slot); /* whoever gets it finds the connection in the pool */
}

void attempt_drop(struct attempt *at)
{
    if (at->dial != NULL)
        dial_cancel(at->dial);
    at->dial = NULL;
    if (at->conn != NULL)
        conn_close(at->conn, at->sending);
    forget_conn(at);
    slots_leave(&at->slot);
}

static void on_timer(void *arg)
{
    struct attempt *at = arg;
    if (at->phase == ATTEMPT_HOLD)
        judge_held(at, false);
    else
        upload_go_on(at);
}

static void on_turn(void *arg)
{
    upload_pump(arg);
}

static void on_eof(struct attempt *at)
{
    switch (at->phase) {
    case ATTEMPT_HEAD:
        attempt_failed(at, RETRY_FAIL_CLOSED,
                       at->saw_bytes ? "closed inside the response head"
                                     : "closed without an answer");
        break;
    case ATTEMPT_HOLD:
        if (h1_body_eof(&at->body))
            judge_held(at, true);
        else
            truncated(at, RETRY_FAIL_TRUNCATED);
        break;
    case ATTEMPT_RELAY:
        if (h1_body_eof(&at->body))
            relayed(at);
        else
            truncated(at, RETRY_FAIL_TRUNCATED);
        break;
    case ATTEMPT_IDLE:
    case ATTEMPT_DIAL:
    case ATTEMPT_READY:
    case ATTEMPT_HELD:
        break; /* noticed when the connection is used or kept */
    }
}

static void on_timeout(struct attempt *at)
{
    const char *what = "no answer in time";
    if (at->have_head)
        what = "the body stalled";
    else if (at->sending && conn_out_pending(at->conn) > 0)
        what = "the upstream does not take the request body";
    attempt_failed(at, RETRY_FAIL_READ_TIMEOUT, what);
}

static void on_conn(struct conn *conn, enum conn_event ev, void *arg)
{
    struct attempt *at = arg;
    switch (ev) {
    case CONN_UP:
        break;
    case CONN_READABLE:
        if (at->phase == ATTEMPT_HEAD)
            read_head(at);
        else if (at->phase == ATTEMPT_HOLD || at->phase == ATTEMPT_RELAY)
            read_body(at);
        break;
    case CONN_DRAINED:
        upload_pump(at);
        break;
    case CONN_EOF:
        on_eof(at);
        break;
    case CONN_BROKEN:
        if (at->phase == ATTEMPT_HELD && at->whole) {
            at->resp.close = true; /* what is held needs the connection no more */
            break;
        }
        attempt_failed(
            at, at->have_head ? RETRY_FAIL_TRUNCATED : reply_failure_of_net(conn_failure(conn)),
            conn_detail(conn));
        break;
    case CONN_TIMEOUT:
        on_timeout(at);
        break;
    }
}
