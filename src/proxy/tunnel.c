/* Tunnel: two connections with swapped roles; each side's reading is paused while the other's
 * output is full. */
#include "proxy/tunnel.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/obs/log.h"
#include "proxy/linger.h"
#include "proxy/reply.h"
#include "proxy/route.h"

#include <stdlib.h>

struct tunnel {
    struct list link;
    struct proxy *px;
    struct conn *client, *upstream; /* upstream: NULL while dialling */
    struct dial *dial;
    struct slot slot; /* that of the upstream connection, if an exchange had it */
    struct authority to;
    const char *reason; /* for the log, or NULL */
    const char *user;   /* the same */
    bool answered;      /* the client has its 200 */
    int64_t started_ns;
    unsigned ended; /* directions that saw their EOF */
};

/* 64 KiB each way (J10): what was read is handed on at once, and while any of it waits nothing more
 * is read. The sockets' own buffers keep both ends busy. */
static const struct conn_limits limits = {.in_bytes = 64 * KIB};

static void on_client(struct conn *conn, enum conn_event ev, void *arg);
static void on_upstream(struct conn *conn, enum conn_event ev, void *arg);

static void free_tunnel(void *obj)
{
    free(obj);
}

/* xid: of the answer that says so to the client; 0: it got none. */
static void record(const struct tunnel *t, const char *end, uint64_t xid, const char *detail)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "tunnel");
    if (xid != 0)
        log_xid(&l, xid);
    log_str(&l, "client", slice_str(conn_peer(t->client)));
    log_str(&l, "host", slice_str(t->to.host));
    log_int(&l, "port", t->to.port);
    if (t->reason != NULL)
        log_str(&l, "reason", slice_str(t->reason));
    if (t->user != NULL)
        log_str(&l, "user", slice_str(t->user));
    log_str(&l, "end", slice_str(end));
    if (detail[0] != '\0')
        log_str(&l, "detail", slice_str(detail));
    if (t->upstream != NULL) {
        log_int(&l, "bytes_up", (int64_t)conn_bytes_out(t->upstream));
        log_int(&l, "bytes_down", (int64_t)conn_bytes_in(t->upstream));
    }
    log_ms(&l, "took_ms", loop_now_ns(t->px->loop) - t->started_ns);
    log_end(&l);
}

static void forget(struct tunnel *t)
{
    list_remove(&t->link);
    slots_leave(&t->slot);
    proxy_count(t->px, -1);
    loop_defer(t->px->loop, free_tunnel, t);
    proxy_check_drained(t->px);
}

/* abort: the peers see a reset, as the one that caused it did. */
static void end(struct tunnel *t, const char *how, bool abort)
{
    record(t, how, 0, "");
    if (t->dial != NULL)
        dial_cancel(t->dial);
    if (t->upstream != NULL)
        conn_close(t->upstream, abort);
    if (t->client != NULL)
        conn_close(t->client, abort);
    forget(t);
}

static int64_t end_of_life(const struct tunnel *t)
{
    return t->started_ns + t->px->config->tunnel_life_ns;
}

static void touch(struct tunnel *t)
{
    int64_t at = loop_now_ns(t->px->loop) + t->px->config->tunnel_idle_ns;
    if (at > end_of_life(t))
        at = end_of_life(t);
    conn_deadline(t->client, at);
    conn_deadline(t->upstream, at);
}

static void copy(struct tunnel *t, struct conn *from, struct conn *to)
{
    struct slice in = conn_in(from);
    if (in.n > 0) {
        conn_write(to, in);
        conn_consume(from, in.n);
        conn_flush(to);
    }
    if (conn_out_full(to))
        conn_pause_read(from);
    touch(t);
}

static void half_close(struct tunnel *t, struct conn *to)
{
    conn_shutdown_write(to);
    if (++t->ended < 2)
        return;
    struct conn *client = t->client, *upstream = t->upstream;
    record(t, "closed", 0, "");
    t->client = t->upstream = NULL;
    linger_start(t->px, client); /* what is still to be written, is */
    linger_start(t->px, upstream);
    forget(t);
}

static void on_side(struct tunnel *t, struct conn *from, struct conn *to, enum conn_event ev)
{
    switch (ev) {
    case CONN_UP:
        break;
    case CONN_READABLE:
        copy(t, from, to);
        break;
    case CONN_DRAINED: /* `from` takes bytes again: the other side may go on */
        conn_resume_read(to);
        touch(t);
        break;
    case CONN_EOF:
        half_close(t, to);
        break;
    case CONN_BROKEN:
        end(t, "reset", true);
        break;
    case CONN_TIMEOUT:
        end(t, loop_now_ns(t->px->loop) >= end_of_life(t) ? "life" : "idle", false);
        break;
    }
}

static void on_client(struct conn *conn, enum conn_event ev, void *arg)
{
    struct tunnel *t = arg;
    if (t->upstream != NULL)
        on_side(t, conn, t->upstream, ev);
    else if (ev == CONN_BROKEN || (ev == CONN_EOF && conn_peer_gone(conn)))
        end(t, "client_gone", false);
}

static void on_upstream(struct conn *conn, enum conn_event ev, void *arg)
{
    struct tunnel *t = arg;
    on_side(t, conn, t->client, ev);
}

/* Both ends are there: what either has sent meanwhile goes first, its end included. */
static void join(struct tunnel *t, struct conn *upstream)
{
    t->upstream = upstream;
    conn_set_owner(upstream, on_upstream, t);
    conn_set_limits(upstream, &limits);
    conn_resume_read(t->client);
    conn_resume_read(upstream);
    copy(t, t->client, t->upstream);
    copy(t, t->upstream, t->client);
    bool client_ended = conn_at_eof(t->client), upstream_ended = conn_at_eof(upstream);
    if (client_ended)
        half_close(t, t->upstream);
    if (upstream_ended)
        half_close(t, t->client);
}

/* A client that has its 200 expects the protocol of the origin now: there is nothing to tell it. */
static void undialled(struct tunnel *t, enum reply_kind kind, const char *detail)
{
    struct conn *client = t->client;
    uint64_t xid = t->answered ? 0 : ++t->px->next_xid;
    record(t, reply_word(kind), xid, detail);
    if (!t->answered)
        reply_write(client, kind, AWS_WIRE_JSON, false, true, xid, detail);
    t->client = NULL;
    linger_start(t->px, client);
    forget(t);
}

static void on_dialled(void *arg, struct conn *conn, enum net_fail failure, const char *detail)
{
    struct tunnel *t = arg;
    t->dial = NULL;
    if (conn == NULL) {
        undialled(t, reply_for_failure(reply_failure_of_net(failure)), detail);
        return;
    }
    if (!t->answered) {
        conn_write(t->client, SLICE("HTTP/1.1 200 Connection established\r\n\r\n"));
        conn_flush(t->client);
    }
    join(t, conn);
}

static struct tunnel *make(struct proxy *px, struct conn *client, const struct authority *to)
{
    struct tunnel *t = xcalloc(1, sizeof *t);
    t->px = px;
    t->client = client;
    t->to = *to;
    t->started_ns = loop_now_ns(px->loop);
    list_push_back(&px->tunnels, &t->link);
    proxy_count(px, 1);
    conn_set_owner(client, on_client, t);
    conn_set_limits(client, &limits);
    conn_deadline(client, 0);
    return t;
}

void tunnel_join(struct proxy *px, struct conn *client, struct conn *upstream,
                 const struct authority *to, struct slot *slot)
{
    struct tunnel *t = make(px, client, to);
    slots_hand_over(slot, &t->slot);
    conn_flush(client); /* the 101: nothing else may follow it for long */
    join(t, upstream);
}

static void dial(struct tunnel *t, const struct tunnel_terms *terms)
{
    struct proxy *px = t->px;
    const struct authority *to = &t->to;
    struct dial_target target = {
        .host = t->to.host, .is_ip = to->kind != AUTHORITY_NAME, .port = to->port};
    route_resolve(px->config, to, &target.fixed);
    struct way way;
    ways_find(px->ways, to, &way);
    target.source = way.source;
    target.parent = way.parent;
    target.via = terms->via;
    target.private_ok = route_private_ok(terms->rules, slice_str(t->to.host));
    t->dial = dial_start(&px->dialer, &target, on_dialled, t);
}

void tunnel_start(struct proxy *px, struct conn *client, const struct authority *to,
                  const struct tunnel_terms *terms)
{
    struct tunnel *t = make(px, client, to);
    t->reason = terms->reason;
    t->user = terms->user;
    t->answered = terms->answered;
    dial(t, terms);
}

void tunnel_close_all(struct proxy *px)
{
    while (!list_empty(&px->tunnels))
        end(list_entry(px->tunnels.next, struct tunnel, link), "shutdown", false);
}
