/* Downstream connection. A request is parsed when the one before is answered: pipelined bytes wait
 * in the input buffer (J8). One deadline serves all clocks of the connection: idle and head time
 * between requests, a look once a second during an exchange. */
#include "proxy/client.h"
#include "core/aws/aws.h"
#include "core/base/fixtext.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/obs/log.h"
#include "proxy/access.h"
#include "proxy/connect.h"
#include "proxy/drive.h"
#include "proxy/greeting.h"
#include "proxy/linger.h"
#include "proxy/refuse.h"

#include <stdlib.h>
#include <unistd.h>

#define LOOK_NS NS_PER_S

/* Input must take a whole request head; output is paused at 256 KiB (J5). */
static const struct conn_limits limits = {
    .in_bytes = 65 * KIB, .out_high = 256 * KIB, .out_low = 64 * KIB};

static void on_conn(struct conn *conn, enum conn_event ev, void *arg);
static void read_head(struct client *c);

static int64_t now_of(const struct client *c)
{
    return loop_now_ns(c->px->loop);
}

static void note_output(struct client *c)
{
    if (conn_out_pending(c->conn) == 0 || conn_bytes_out(c->conn) != c->out_seen) {
        c->out_seen = conn_bytes_out(c->conn);
        c->out_progress_ns = now_of(c);
    }
    c->out_waits = c->out_waits && conn_out_pending(c->conn) > 0;
}

void client_await_head(struct client *c)
{
    const struct config *cfg = c->px->config;
    c->state = CLIENT_HEAD;
    c->head = (struct h1_head){0};
    c->head_since_ns = 0;
    note_output(c);
    c->delivering = conn_out_pending(c->conn) > 0;
    if (c->delivering)
        conn_deadline(c->conn, now_of(c) + LOOK_NS);
    else
        conn_deadline(c->conn, now_of(c) + (c->requests == 0 ? cfg->client_head_timeout_ns
                                                             : cfg->client_idle_timeout_ns));
}

void client_new(struct proxy *px, const struct entrance *entrance, int fd,
                const struct sockaddr *sa)
{
    struct peer peer;
    peer_of(&peer, fd, sa);
    struct peer_count *count = NULL;
    if (entrance->rules.n_proxy_protocol > 0 ? !access_may_introduce(px, entrance, &peer)
                                             : !(count = access_enter(px, entrance, fd, &peer))) {
        close(fd);
        return;
    }
    struct client *c = xcalloc(1, sizeof *c);
    c->px = px;
    c->peer = peer;
    c->entrance = entrance;
    c->listener = &entrance->rules;
    arena_init(&c->arena);
    h1_body_init(&c->body, HTTP_BODY_NONE, 0);
    bodylog_init(&c->log, &px->replay, 0, 0);
    c->conn = conn_new(px->loop, fd, &limits, on_conn, c);
    list_push_back(&px->clients, &c->link);
    proxy_count(px, 1);
    greeting_start(c, count);
}

static void free_client(void *obj)
{
    struct client *c = obj;
    h1_body_fini(&c->body);
    bodylog_fini(&c->log);
    arena_fini(&c->arena);
    free(c);
}

void client_close(struct client *c, bool abort)
{
    if (c->state == CLIENT_CLOSED)
        return;
    ASSERT(c->drive == NULL);
    c->state = CLIENT_CLOSED;
    if (c->conn != NULL)
        conn_close(c->conn, abort);
    c->conn = NULL;
    list_remove(&c->link);
    handshakes_leave(&c->px->handshakes, &c->turn);
    proxy_count(c->px, -1);
    loop_defer(c->px->loop, free_client, c);
    proxy_check_drained(c->px);
}

void client_part(struct client *c)
{
    struct conn *conn = c->conn;
    c->conn = NULL;
    client_close(c, false);
    linger_start(c->px, conn);
}

static void gone(struct client *c)
{
    if (c->drive != NULL)
        drive_client_gone(c->drive, c->started ? "cut" : "client_gone");
    client_close(c, false);
}

/* --- request body
 * ---------------------------------------------------------------------------------------- */

static void bad_body(struct client *c, enum reply_kind kind, const char *detail)
{
    bool started = c->started;
    drive_client_gone(c->drive, started ? "cut" : "client_error");
    if (started)
        client_close(c, true);
    else
        refuse(c, kind, detail);
}

static void body_ended(struct client *c)
{
    c->body_done = true;
    bodylog_finish(&c->log, c->req.framing == HTTP_BODY_CHUNKED ? &c->body.trailers : NULL);
}

static bool is_over(const struct client *c, uint64_t body_bytes)
{
    uint64_t max = c->px->config->request_body_bytes;
    return max > 0 && body_bytes > max;
}

/* What is wrong with the body that take_body() did not take. */
static enum reply_kind body_fault(const struct client *c)
{
    return c->body_over ? REPLY_BODY_TOO_LARGE : REPLY_BAD_REQUEST;
}

static const char *body_problem(const struct client *c)
{
    return c->body_over ? "" : c->body.problem;
}

/* From the input buffer to the log, as far as there is room; cur: the running attempt's place, or
 * NULL. */
static enum parse take_body(struct client *c, const struct bodycur *cur)
{
    while (!c->body_done) {
        size_t room = bodylog_room(&c->log, cur), used;
        struct slice in = conn_in(c->conn), data;
        if (room == 0)
            break;
        enum parse p =
            h1_body_read(&c->body, in.p, in.n < room ? in.n : room, &c->arena, &used, &data);
        c->body_over = is_over(c, c->log.end + data.n);
        if (p == PARSE_BAD || c->body_over)
            return PARSE_BAD;
        if (data.n > 0)
            bodylog_append(&c->log, cur, data);
        conn_consume(c->conn, used);
        if (used > 0)
            c->head_since_ns = now_of(c); /* last sign of the body */
        if (p == PARSE_OK)
            body_ended(c);
        else if (used == 0)
            break;
    }
    return PARSE_OK;
}

/* False: nothing new, or the client is gone. */
static bool read_body(struct client *c)
{
    size_t before = conn_in(c->conn).n;
    if (take_body(c, drive_cursor(c->drive)) == PARSE_BAD) {
        bad_body(c, body_fault(c), body_problem(c));
        return false;
    }
    bool progress = conn_in(c->conn).n != before;
    if (!c->body_done && conn_at_eof(c->conn) && conn_in(c->conn).n == 0) {
        gone(c);
        return false;
    }
    return progress;
}

/* Without progress the attempt hears nothing: it would ask for more, and so on for ever. A drive
 * that has not begun does: there may be no room any more for what it waits for. */
static void body_arrived(struct client *c)
{
    if (c->body_done)
        return;
    bool progress = read_body(c);
    if (c->drive != NULL && (progress || !c->drive->begun))
        drive_body_more(c->drive);
}

void client_body_wanted(struct client *c)
{
    if (!c->body_done && c->conn != NULL && conn_in(c->conn).n > 0)
        conn_poke(c->conn);
}

void client_continue(struct client *c)
{
    if (c->sent_100 || c->started || c->body_done || !c->req.expect_continue)
        return;
    c->sent_100 = true;
    conn_write(c->conn, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
    conn_flush(c->conn);
}

void client_interim(struct client *c, unsigned status, struct slice reason)
{
    enum { REASON_MAX = 64 }; /* of the peer's making: nothing that could fill the output */
    /* Whoever waits for the word may take any other interim answer for the final one (PR-03). */
    bool waits = c->req.expect_continue && !c->sent_100 && c->log.end == 0;
    uint64_t *word = &c->sent_1xx[(status - 100) / 64], bit = UINT64_C(1) << (status - 100) % 64;
    if (c->started || waits || c->req.minor == 0 || (*word & bit) != 0)
        return;
    *word |= bit;
    char text[96];
    struct fixtext line = fixtext_in(text, sizeof text);
    fixtext_put(&line, SLICE("HTTP/1.1 "));
    fixtext_number(&line, status);
    fixtext_put(&line, SLICE(" "));
    if (reason.n <= REASON_MAX)
        fixtext_put(&line, reason);
    fixtext_put(&line, SLICE("\r\n\r\n"));
    conn_write(c->conn, fixtext_slice(&line));
    conn_flush(c->conn);
}

/* --- one exchange
 * ---------------------------------------------------------------------------------------- */

static void answer_options(struct client *c)
{
    conn_write(
        c->conn,
        SLICE("HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT\r\n"
              "Content-Length: 0\r\nConnection: close\r\n\r\n"));
    client_part(c);
}

static void start_exchange(struct client *c)
{
    struct route route;
    enum reply_kind refusal;
    const char *why;
    const struct route_from from = {
        .scope = c->intercepted ? &c->scope : NULL,
        .peer = peer_without_port(c->peer.text),
        .listener = slice_str(c->listener->name),
        .rules = c->listener,
    };
    enum route_result r = route_request(c->px, &c->req, &from, &c->arena, &route, &refusal, &why);
    if (r == ROUTE_REFUSED) {
        refuse(c, refusal, why);
        return;
    }
    if (r == ROUTE_ANSWER_OPTIONS) {
        answer_options(c);
        return;
    }
    c->state = CLIENT_EXCHANGE;
    note_output(c);
    c->must_close = c->req.close;
    c->sent_100 = c->started = c->body_done = false;
    memset(c->sent_1xx, 0, sizeof c->sent_1xx);
    c->relay = (struct relay){0};
    h1_body_fini(&c->body);
    h1_body_init(&c->body, c->req.framing, c->req.content_length);
    bodylog_fini(&c->log);
    bodylog_init(&c->log, &c->px->replay, route.effective.replay_memory_bytes,
                 route.effective.replay_disk_bytes);
    if (c->req.framing == HTTP_BODY_NONE ||
        (c->req.framing == HTTP_BODY_LENGTH && c->req.content_length == 0))
        body_ended(c);
    c->head_since_ns = now_of(c);
    pace_start(&c->body_pace, now_of(c), 0);
    conn_deadline(c->conn, now_of(c) + LOOK_NS);
    /* What came with the head goes out with the head. */
    if (take_body(c, NULL) == PARSE_BAD) {
        route_release(&route);
        c->state = CLIENT_HEAD;
        refuse(c, body_fault(c), body_problem(c));
        return;
    }
    drive_start(c, &route);
    if (c->drive != NULL && !c->body_done && (conn_in(c->conn).n > 0 || conn_at_eof(c->conn)))
        conn_poke(c->conn);
}

void client_exchange_done(struct client *c, bool ok)
{
    if (c->state == CLIENT_CLOSED)
        return;
    if (c->conn == NULL) { /* it became a tunnel's */
        client_close(c, false);
        return;
    }
    if (!ok) {
        if (c->relay.open)
            client_close(c, true); /* the client must see the cut */
        return;                    /* else: whoever ended the exchange goes on from here */
    }
    if (c->must_close || !c->body_done || c->px->draining) {
        client_part(c);
        return;
    }
    bodylog_fini(&c->log);
    arena_reset(&c->arena);
    client_await_head(c);
    if (conn_in(c->conn).n > 0 || conn_at_eof(c->conn))
        conn_poke(c->conn);
}

/* A proxy URL with https:// is an easy slip; "control byte" would not tell of it. */
static bool is_tls(struct slice in)
{
    enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 };
    return in.n > 1 && in.p[0] == TLS_HANDSHAKE && in.p[1] == TLS_MAJOR;
}

static void read_head(struct client *c)
{
    struct slice in = conn_in(c->conn);
    if (conn_out_full(c->conn))
        return; /* answers that are not taken: no more of them, until these are (J5) */
    if (in.n > 0 && c->head_since_ns == 0) {
        c->head_since_ns = now_of(c);
        conn_deadline(c->conn, now_of(c) + c->px->config->client_head_timeout_ns);
    }
    c->req = (struct http_req){0};
    enum reply_kind refusal;
    const char *why;
    switch (h1_parse_request(&c->head, in.p, in.n, &h1_request_limits, &c->arena, &c->req)) {
    case PARSE_MORE:
        if (conn_at_eof(c->conn)) /* the end came while the request before ran */
            client_part(c);
        break;
    case PARSE_BAD:
        c->req = (struct http_req){0};
        refuse(c, reply_for_status(c->head.status),
               !c->intercepted && is_tls(in)
                   ? "TLS on a listener without tls_certificate: the proxy URL begins with http://"
                   : c->head.problem);
        break;
    case PARSE_OK:
        conn_consume(c->conn, c->head.consumed);
        c->requests++;
        if (!access_request(c, &refusal, &why))
            refuse(c, refusal, why);
        else if (c->req.framing == HTTP_BODY_LENGTH && is_over(c, c->req.content_length))
            refuse(c, REPLY_BODY_TOO_LARGE, "");
        else if (c->req.method_id != HTTP_CONNECT)
            start_exchange(c);
        else if (c->intercepted)
            refuse(c, REPLY_BAD_REQUEST, "CONNECT inside a tunnel");
        else
            connect_request(c);
        break;
    }
}

/* --- the connection
 * -------------------------------------------------------------------------------------- */

bool client_is_gone(struct client *c)
{
    return c->conn == NULL || (c->half_closed && conn_peer_gone(c->conn));
}

static void on_eof(struct client *c)
{
    c->half_closed = true;
    /* Inside a request nobody waits; between requests the last answer may still be on its way.
     * After a whole request, or one whose rest is in the buffer, it may be a half-close: whether
     * somebody still reads is asked now and once a second. */
    bool inside = !c->body_done && conn_in(c->conn).n == 0;
    if (c->state == CLIENT_HEAD) {
        if (!conn_out_full(c->conn)) /* else requests that were not looked at may wait */
            client_part(c);
    } else if (c->state != CLIENT_EXCHANGE || inside || client_is_gone(c)) {
        gone(c);
    }
}

/* The client takes none of what waits for it for longer than it may, or takes it too slowly (J5).
 * Asked at each look: what the kernel took in one go does not count. */
static bool is_slow(struct client *c)
{
    const struct config *cfg = c->px->config;
    note_output(c);
    if (now_of(c) - c->out_progress_ns > cfg->client_write_timeout_ns)
        return true;
    if (c->out_waits)
        return pace_too_slow(&c->out_pace, now_of(c), c->out_seen, true, cfg->min_rate_bytes);
    c->out_waits = conn_out_pending(c->conn) > 0;
    pace_start(&c->out_pace, now_of(c), c->out_seen);
    return false;
}

/* Between requests: one that did not come, or did not come whole. While the last answer is still
 * taken, idle time has not begun. */
static void waited_for_head(struct client *c)
{
    if (c->head_since_ns != 0)
        refuse(c, REPLY_REQUEST_TIMEOUT, "");
    else if (!c->delivering)
        client_close(c, false);
    else if (is_slow(c))
        client_close(c, true);
    else
        client_await_head(c);
}

/* The look once a second during an exchange. */
static void look(struct client *c)
{
    const struct config *cfg = c->px->config;
    int64_t now = now_of(c);
    if (client_is_gone(c)) {
        gone(c);
        return;
    }
    if (is_slow(c)) {
        drive_client_gone(c->drive, "client_slow");
        client_close(c, true);
        return;
    }
    /* A client that may still wait for 100 Continue owes nothing: the attempt has that clock. */
    bool waits = c->req.expect_continue && !c->sent_100 && c->log.end == 0;
    bool starved = !c->body_done && !waits && bodylog_room(&c->log, drive_cursor(c->drive)) > 0;
    if (!starved)
        c->head_since_ns = now;
    else if (now - c->head_since_ns > cfg->client_body_timeout_ns) {
        bad_body(c, REPLY_REQUEST_TIMEOUT, "the request body stalled");
        return;
    }
    if (pace_too_slow(&c->body_pace, now, c->log.end, starved, cfg->min_rate_bytes)) {
        bad_body(c, REPLY_REQUEST_TIMEOUT, "the request body comes too slowly");
        return;
    }
    conn_deadline(c->conn, now + LOOK_NS);
}

static void on_timeout(struct client *c)
{
    switch (c->state) {
    case CLIENT_INTRODUCTION:
    case CLIENT_GREETING:
        greeting_timeout(c);
        client_close(c, true);
        break;
    case CLIENT_HEAD:
        waited_for_head(c);
        break;
    case CLIENT_HELLO:
    case CLIENT_HANDSHAKE:
        connect_timeout(c);
        break;
    case CLIENT_EXCHANGE:
        look(c);
        break;
    case CLIENT_CLOSED:
        break;
    }
}

static void on_readable(struct client *c)
{
    switch (c->state) {
    case CLIENT_INTRODUCTION:
        greeting_readable(c);
        break;
    case CLIENT_GREETING:
        break;
    case CLIENT_HEAD:
        read_head(c);
        break;
    case CLIENT_HELLO:
        connect_hello(c);
        break;
    case CLIENT_EXCHANGE:
        body_arrived(c);
        break;
    case CLIENT_HANDSHAKE:
    case CLIENT_CLOSED:
        break;
    }
}

static void on_broken(struct client *c)
{
    greeting_broken(c);
    if (c->intercepted)
        connect_broken(c);
    gone(c);
}

static void on_conn(struct conn *conn, enum conn_event ev, void *arg)
{
    struct client *c = arg;
    (void)conn;
    switch (ev) {
    case CONN_UP:
        connect_up(c);
        client_await_head(c);
        break;
    case CONN_READABLE:
        on_readable(c);
        break;
    case CONN_DRAINED:
        if (c->drive != NULL)
            drive_client_drained(c->drive);
        else if (c->state == CLIENT_HEAD)
            conn_poke(c->conn); /* what was sent meanwhile */
        break;
    case CONN_EOF:
        on_eof(c);
        break;
    case CONN_BROKEN:
        on_broken(c);
        break;
    case CONN_TIMEOUT:
        on_timeout(c);
        break;
    }
}

void client_begin_drain(struct client *c)
{
    if (c->state == CLIENT_INTRODUCTION) /* load balancers connect ahead of need */
        client_close(c, false);
    else if (c->state == CLIENT_HEAD && c->head_since_ns == 0)
        client_part(c);
    else if (c->state == CLIENT_EXCHANGE && drive_is_parked(c->drive))
        client_give_up(c);
}

void client_give_up(struct client *c)
{
    if (c->state != CLIENT_EXCHANGE) {
        client_close(c, true);
        return;
    }
    bool answered = c->started;
    drive_give_up(c->drive);
    if (c->state == CLIENT_CLOSED)
        return;
    if (answered)
        client_close(c, true);
    else
        client_part(c);
}
