/* The start of a connection. The rules of the listener are those for the client that the load
 * balancer names: they are asked when it has. */
#include "proxy/greeting.h"
#include "core/http/proxyproto.h"
#include "io/obs/log.h"
#include "io/tls/tlsserver.h"
#include "proxy/access.h"

#include <netinet/in.h>

static int64_t now_of(const struct client *c)
{
    return loop_now_ns(c->px->loop);
}

static void tell_failed(const struct client *c, const char *detail)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "client_tls_failed");
    log_str(&l, "client", slice_str(c->peer.text));
    log_str(&l, "listener", slice_str(c->listener->name));
    log_str(&l, "detail", slice_str(detail));
    log_end(&l);
}

static void on_left(void *arg)
{
    peers_leave(arg);
}

void greeting_handshake(struct client *c)
{
    struct err err = {""};
    SSL *ssl = tlsserver_listener_ssl(c->entrance->tls, &err);
    if (ssl == NULL) {
        tell_failed(c, err.text);
        client_close(c, true);
        return;
    }
    conn_start_tls(c->conn, ssl);
}

/* It is let in: counted for as long as the connection lives, whatever becomes of it. */
static void come_in(struct client *c, struct peer_count *count)
{
    conn_set_guest(c->conn, c->peer.text, on_left, count);
    if (c->entrance->tls != NULL) {
        c->state = CLIENT_GREETING;
        conn_deadline(c->conn, now_of(c) + c->px->config->tls_timeout_ns);
        handshakes_enter(&c->px->handshakes, &c->turn);
        return;
    }
    client_await_head(c);
    if (conn_in(c->conn).n > 0) /* it came along with the introduction */
        conn_poke(c->conn);
}

void greeting_start(struct client *c, struct peer_count *count)
{
    if (count != NULL) {
        come_in(c, count);
        return;
    }
    c->state = CLIENT_INTRODUCTION;
    conn_deadline(c->conn, now_of(c) + c->px->config->client_head_timeout_ns);
}

static void name_peer(struct client *c, const struct proxyproto *p)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(p->port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(p->port)};
    if (!p->named)
        return;
    memcpy(&v6.sin6_addr, p->address, sizeof v6.sin6_addr);
    memcpy(&v4.sin_addr, p->address, sizeof v4.sin_addr);
    peer_named(&c->peer, p->ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4);
}

void greeting_readable(struct client *c)
{
    struct proxyproto p;
    switch (proxyproto_read(conn_in(c->conn), &p)) {
    case PROXYPROTO_MORE:
        return;
    case PROXYPROTO_BAD:
        access_tell_refused(c->px, c->entrance, &c->peer, p.problem);
        client_close(c, true);
        return;
    case PROXYPROTO_OK:
        break;
    }
    conn_consume(c->conn, p.consumed);
    name_peer(c, &p);
    struct peer_count *count = access_enter(c->px, c->entrance, -1, &c->peer);
    if (count == NULL)
        client_close(c, true);
    else
        come_in(c, count);
}

void greeting_timeout(struct client *c)
{
    if (c->state == CLIENT_GREETING)
        tell_failed(c, "no handshake in time");
    else
        access_tell_refused(c->px, c->entrance, &c->peer, "no PROXY protocol header in time");
}

void greeting_cut(struct client *c)
{
    tell_failed(c, "the handshake stood still while others waited for their turn");
    client_close(c, true);
}

void greeting_broken(struct client *c)
{
    if (c->state == CLIENT_GREETING)
        tell_failed(c, conn_detail(c->conn));
}
