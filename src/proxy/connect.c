/* CONNECT. Where TLS would be opened, the answer 200 comes before the upstream is dialled: a
 * failure is told inside the tunnel, in the client's own protocol, where SDKs show it (client rule
 * 5). Blind tunnels dial first: there is no inside. Those that turn out to be blind only by their
 * first bytes have their 200 already. */
#include "proxy/connect.h"
#include "core/base/units.h"
#include "core/tls/opening.h"
#include "io/obs/log.h"
#include "proxy/greeting.h"
#include "proxy/refuse.h"
#include "proxy/route.h"
#include "proxy/tunnel.h"

#include <time.h>

#define HELLO_WAIT_NS (10 * NS_PER_S) /* F3: 200 to the whole hello, and to its turn */
/* Every TLS client speaks first and at once. One that says nothing for so long waits for its server
 * to speak, and gets it. */
#define SILENCE_NS (5 * NS_PER_S)

/* RFC 8446 6.2 */
enum tls_alert { ALERT_INTERNAL_ERROR = 80, ALERT_UNRECOGNIZED_NAME = 112 };

static int64_t now_of(const struct client *c)
{
    return loop_now_ns(c->px->loop);
}

static void begin_failure(struct log_line *l, const struct client *c, const char *reason)
{
    log_begin(l, LOG_LEVEL_WARN, "client_tls_failed");
    log_str(l, "client", slice_str(c->peer.text));
    log_str(l, "host", slice_str(c->scope.host));
    log_str(l, "reason", slice_str(reason));
}

static void log_failure(const struct client *c, const char *reason, const char *detail)
{
    struct log_line l;
    begin_failure(&l, c, reason);
    log_str(&l, "detail", slice_str(detail));
    log_end(&l);
}

/* A fatal alert in the clear: nothing was agreed on yet. */
static void part_with_alert(struct client *c, enum tls_alert alert)
{
    const char record[] = {0x15, 3, 3, 0, 2, 2, (char)alert};
    conn_write(c->conn, slice_of(record, sizeof record));
    client_part(c);
}

static void start_tunnel(struct client *c, const struct authority *to, const char *reason)
{
    struct conn *conn = c->conn;
    struct authority host = *to;
    const struct tunnel_terms terms = {
        .rules = c->listener,
        .user = c->user,
        .via = c->via,
        .reason = reason,
        .answered = c->state == CLIENT_HELLO,
    };
    c->conn = NULL;
    client_close(c, false); /* its memory lives on until the end of the turn */
    tunnel_start(c->px, conn, &host, &terms);
}

static void tunnel_instead(struct client *c, const char *reason)
{
    start_tunnel(c, &c->scope, reason);
}

static void await_hello(struct client *c)
{
    c->intercepted = true;
    c->state = CLIENT_HELLO;
    c->hello_since_ns = now_of(c);
    conn_write(c->conn, SLICE("HTTP/1.1 200 Connection established\r\n\r\n"));
    conn_flush(c->conn);
    conn_deadline(c->conn, c->hello_since_ns + SILENCE_NS);
    connect_hello(c);
}

void connect_request(struct client *c)
{
    struct target t;
    const char *why = "";
    if (target_parse(c->req.target, true, &t, &why) != TARGET_AUTHORITY) {
        refuse(c, REPLY_BAD_REQUEST, why);
        return;
    }
    if (route_came_through_here(c->px, &c->req)) {
        refuse(c, REPLY_LOOP, "");
        return;
    }
    char via[PARENT_VIA_MAX];
    if (!route_via_chain(c->px, &c->req, via)) {
        refuse(c, REPLY_LOOP, "the Via field is too long");
        return;
    }
    c->via = arena_strdup(&c->arena, slice_str(via));
    const struct refusals *refusals = c->px->refusals;
    switch (route_connect(c->px, c->listener, &t.authority)) {
    case ROUTE_REFUSE_PORT:
        refuse(c, REPLY_PORT, "");
        break;
    case ROUTE_REFUSE_HOST:
        refuse(c, REPLY_HOST, "");
        break;
    case ROUTE_TUNNEL:
        start_tunnel(c, &t.authority, NULL);
        break;
    case ROUTE_OPEN:
        if (refusals != NULL && refusals_has(refusals, c->peer.text, t.authority.host, now_of(c))) {
            start_tunnel(c, &t.authority, "ca_refused");
            break;
        }
        c->scope = t.authority;
        await_hello(c);
        break;
    }
}

/* F2: the error that the client sees is the same as from a server that does not know the name. */
static void refuse_name(struct client *c, const char *name)
{
    struct log_line l;
    begin_failure(&l, c, "sni");
    log_str(&l, "sni", slice_str(name));
    log_str(&l, "detail", SLICE("the client asks for another host by SNI than by CONNECT"));
    log_end(&l);
    part_with_alert(c, ALERT_UNRECOGNIZED_NAME);
}

static void decide(struct client *c, const struct clienthello *hello)
{
    struct opening o = opening_of(hello, slice_str(c->scope.host));
    switch (o.kind) {
    case OPENING_OPEN:
        handshakes_enter(&c->px->handshakes, &c->turn);
        break;
    case OPENING_TUNNEL:
        tunnel_instead(c, o.reason);
        break;
    case OPENING_REFUSE:
        refuse_name(c, hello->name);
        break;
    }
}

void connect_hello(struct client *c)
{
    struct slice in = conn_in(c->conn);
    struct clienthello hello;
    if (in.n == 0 || c->turn.state != HANDSHAKE_IDLE)
        return;
    conn_deadline(c->conn, c->hello_since_ns + HELLO_WAIT_NS);
    switch (clienthello_read(in, &hello)) {
    case HELLO_MORE:
        break;
    case HELLO_NOT_TLS:
        tunnel_instead(c, "not_tls");
        break;
    case HELLO_BAD: /* what we cannot read, others may */
        tunnel_instead(c, "bad_hello");
        break;
    case HELLO_WHOLE:
        decide(c, &hello);
        break;
    }
}

void connect_start_handshake(struct handshake *h)
{
    struct client *c = list_entry(h, struct client, turn);
    struct err err = {""};
    if (c->state == CLIENT_GREETING) {
        greeting_handshake(c);
        return;
    }
    SSL *ssl = leafcache_ssl(c->px->leafcache, c->scope.host, c->scope.kind != AUTHORITY_NAME,
                             time(NULL), &err);
    if (ssl == NULL) {
        log_failure(c, "no_certificate", err.text);
        part_with_alert(c, ALERT_INTERNAL_ERROR);
        return;
    }
    c->state = CLIENT_HANDSHAKE;
    conn_deadline(c->conn, now_of(c) + c->px->config->tls_timeout_ns);
    conn_start_tls(c->conn, ssl);
}

void connect_cut_handshake(struct handshake *h)
{
    struct client *c = list_entry(h, struct client, turn);
    if (c->state == CLIENT_GREETING) {
        greeting_cut(c);
        return;
    }
    log_failure(c, "crowded", "the handshake stood still while others waited for their turn");
    client_close(c, false);
}

void connect_timeout(struct client *c)
{
    if (c->state == CLIENT_HELLO && conn_in(c->conn).n == 0 && !c->px->draining) {
        tunnel_instead(c, "silent");
        return;
    }
    log_failure(c, "timeout",
                c->turn.state == HANDSHAKE_WAITS
                    ? "too many handshakes at once: its turn did not come"
                : c->state == CLIENT_HELLO ? "no whole ClientHello in time"
                                           : "no handshake in time");
    client_close(c, false);
}

void connect_up(struct client *c)
{
    handshakes_leave(&c->px->handshakes, &c->turn);
}

static void refused_us(struct client *c)
{
    struct log_line l;
    struct err help;
    struct proxy *px = c->px;
    begin_failure(&l, c, "ca_refused");
    log_str(&l, "detail", slice_str(conn_detail(c->conn)));
    err_set(&help, "let the client trust %s, or name the host in intercept.bypass",
            ca_root_path(px->ca));
    log_str(&l, "help", slice_str(help.text));
    if (px->refusals != NULL)
        log_ms(&l, "tunnelled_for_ms", px->config->refusal_memory_ns);
    log_end(&l);
    if (px->refusals != NULL)
        refusals_add(px->refusals, c->peer.text, c->scope.host, now_of(c));
}

void connect_broken(struct client *c)
{
    if (conn_failure(c->conn) == NET_DISTRUSTED)
        refused_us(c);
    else if (c->state == CLIENT_HANDSHAKE)
        log_failure(c, "handshake", conn_detail(c->conn));
}
