/* CONNECT. The answer 200 comes before the upstream is dialled: a failure is told inside the
 * tunnel, in the client's own protocol, where SDKs show it (client rule 5). Blind tunnels dial
 * first: there is no inside. */
#include "proxy/connect.h"
#include "core/base/units.h"
#include "io/obs/log.h"
#include "proxy/linger.h"
#include "proxy/route.h"
#include "proxy/tunnel.h"

#include <time.h>

/* TLS record of type handshake, major version 3: the start of every ClientHello (RFC 8446 5.1). */
enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 0x03 };
#define HELLO_WAIT_NS (10 * NS_PER_S)

static void refuse(struct client *c, enum reply_kind kind, const char *detail)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "connect_denied");
    log_str(&l, "client", slice_str(conn_peer(c->conn)));
    log_str(&l, "target", c->req.target);
    log_str(&l, "reason", slice_str(reply_word(kind)));
    log_str(&l, "detail", slice_str(detail));
    log_end(&l);
    reply_write(c->conn, kind, AWS_WIRE_JSON, false, true, ++c->px->next_xid, detail);
    struct conn *conn = c->conn;
    c->conn = NULL;
    client_close(c, false);
    linger_start(c->px, conn);
}

static void start_tunnel(struct client *c, const struct authority *to)
{
    struct conn *conn = c->conn;
    struct proxy *px = c->px;
    const struct listener_config *rules = c->listener;
    char via[PARENT_VIA_MAX];
    if (!route_via_chain(px, &c->req, via)) {
        refuse(c, REPLY_LOOP, "the Via field is too long");
        return;
    }
    c->conn = NULL;
    client_close(c, false);
    tunnel_start(px, conn, to, rules, via);
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
    switch (route_connect(c->px, c->listener, &t.authority)) {
    case ROUTE_REFUSE_PORT:
        refuse(c, REPLY_PORT, "");
        break;
    case ROUTE_REFUSE_HOST:
        refuse(c, REPLY_HOST, "");
        break;
    case ROUTE_TUNNEL:
        start_tunnel(c, &t.authority);
        break;
    case ROUTE_OPEN:
        c->scope = t.authority;
        c->intercepted = true;
        c->state = CLIENT_HELLO;
        conn_write(c->conn, SLICE("HTTP/1.1 200 Connection established\r\n\r\n"));
        conn_flush(c->conn);
        conn_deadline(c->conn, loop_now_ns(c->px->loop) + HELLO_WAIT_NS);
        connect_hello(c);
        break;
    }
}

void connect_hello(struct client *c)
{
    struct slice in = conn_in(c->conn);
    if (in.n < 2)
        return;
    struct err err = {""};
    SSL *ssl = NULL;
    if ((unsigned char)in.p[0] == TLS_HANDSHAKE && (unsigned char)in.p[1] == TLS_MAJOR)
        ssl = leafcache_ssl(c->px->leafcache, c->scope.host, c->scope.kind != AUTHORITY_NAME,
                            time(NULL), &err);
    else
        err_set(&err, "the client does not speak TLS inside the tunnel");
    if (ssl == NULL) {
        log_msg(LOG_LEVEL_WARN, "client_tls_failed", "host=%s detail=\"%s\"", c->scope.host,
                err.text);
        client_close(c, false);
        return;
    }
    c->state = CLIENT_HANDSHAKE;
    conn_deadline(c->conn, loop_now_ns(c->px->loop) + c->px->config->tls_timeout_ns);
    conn_start_tls(c->conn, ssl);
}
