/* Dialling, stage by stage: a failure of TCP has tried every address; one of a later stage ends the
 * dial, since the address did answer.
 *
 *   stage          waits for                                   next
 *   ADDRESSES      the lookup, or nothing                       TCP
 *   TCP            the race                                     PARENT_TLS, PARENT_ASKED, TLS, done
 *   PARENT_TLS     TLS with the parent proxy                    PARENT_ASKED, done
 *   PARENT_ASKED   its answer to CONNECT                        TLS, done
 *   TLS            TLS with the origin, maybe inside the other  done */
#include "io/net/dial.h"

#include "core/base/units.h"
#include "core/base/xalloc.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum stage { ADDRESSES, TCP, PARENT_TLS, PARENT_ASKED, TLS };

struct dial {
    const struct dialer *dialer;
    enum stage stage;
    char *host, *via;
    uint16_t port;
    bool is_ip, absolute;
    bool resolved; /* the addresses came from a lookup */
    struct tlsclient *tls;
    const struct parent *parent;
    dial_fn *fn;
    void *arg;
    bool over;

    struct dns_query *query;
    struct race race;
    struct loop_timer timer; /* of the stage after TCP */
    struct conn *conn;
    SSL *ssl; /* the conn's, of the TLS that is being made */
    struct parent_hop hop;

    enum net_fail failure; /* known before the first turn */
    struct err detail;
};

/* --- ends --- */

static void on_free(void *arg)
{
    struct dial *d = arg;
    free(d->host);
    free(d->via);
    free(d);
}

/* Unhooks everything but d->conn. */
static void end(struct dial *d)
{
    ASSERT(!d->over);
    d->over = true;
    if (d->query)
        dns_cancel(d->query);
    race_fini(&d->race);
    parent_hop_fini(&d->hop);
    loop_timer_fini(&d->timer);
    loop_defer(d->dialer->loop, on_free, d);
}

void dial_cancel(struct dial *d)
{
    end(d);
    if (d->conn)
        conn_close(d->conn, false);
}

/* On the way to the parent a failure is the parent's, unless it is ours or says more by itself. */
static enum net_fail kind_here(const struct dial *d, enum net_fail kind)
{
    if (d->parent == NULL || d->stage == TLS || kind == NET_DENIED || kind == NET_STARVED ||
        kind == NET_LOCAL || kind == NET_CERTIFICATE || kind == NET_PARENT_REFUSED)
        return kind;
    return NET_PARENT;
}

static void fail(struct dial *d, enum net_fail kind, const char *peer, const char *detail)
{
    struct err line;
    bool at_parent = d->parent != NULL && d->stage != TLS && kind != NET_DENIED;
    err_set(&line, "%s%s%s%s", at_parent ? "parent proxy " : "", peer, peer[0] ? ": " : "", detail);
    end(d);
    if (d->conn)
        conn_close(d->conn, false);
    d->fn(d->arg, NULL, kind_here(d, kind), line.text);
}

static void fail_conn(struct dial *d, enum net_fail kind, const char *detail)
{
    fail(d, kind, conn_peer(d->conn), detail);
}

static void succeed(struct dial *d)
{
    end(d);
    d->fn(d->arg, d->conn, NET_OK, "");
}

/* --- the stages after TCP --- */

static void shake(struct dial *d, enum stage stage, struct tlsclient *with, const char *host,
                  bool is_ip, uint16_t port)
{
    struct err why = {.text = ""};
    SSL *ssl = tlsclient_ssl(with, host, is_ip, port, &why);
    d->stage = stage;
    if (!ssl) {
        fail_conn(d, NET_TLS, why.text);
        return;
    }
    d->ssl = ssl;
    conn_start_tls(d->conn, ssl);
    loop_timer_arm(&d->timer, d->dialer->tls_timeout_ns);
}

static void reached_origin(struct dial *d)
{
    if (d->tls)
        shake(d, TLS, d->tls, d->host, d->is_ip, d->port);
    else
        succeed(d);
}

static void reached_parent(struct dial *d)
{
    if (d->absolute) {
        succeed(d);
        return;
    }
    d->stage = PARENT_ASKED;
    parent_connect(d->parent, d->conn, d->host, d->port, d->via);
    loop_timer_arm(&d->timer, d->dialer->connect_timeout_ns);
}

/* TLS is up. Its verdict is asked for once more (security requirement G2). */
static void shaken(struct dial *d)
{
    struct err why = {.text = ""};
    loop_timer_disarm(&d->timer);
    if (!tlsclient_verified(d->ssl, &why))
        fail_conn(d, NET_CERTIFICATE, why.text);
    else if (d->stage == PARENT_TLS)
        reached_parent(d);
    else
        succeed(d);
}

static void read_parent(struct dial *d)
{
    struct err why = {.text = ""};
    switch (parent_read(&d->hop, d->conn, &why)) {
    case PARENT_MORE:
        break;
    case PARENT_OPEN:
        loop_timer_disarm(&d->timer);
        reached_origin(d);
        break;
    case PARENT_REFUSED:
        fail_conn(d, NET_PARENT_REFUSED, why.text);
        break;
    case PARENT_FAILED:
        fail_conn(d, NET_PARENT, why.text);
        break;
    }
}

static void on_conn(struct conn *c, enum conn_event ev, void *arg)
{
    struct dial *d = arg;
    switch (ev) {
    case CONN_UP:
        shaken(d);
        break;
    case CONN_READABLE:
        if (d->stage == PARENT_ASKED)
            read_parent(d);
        break;
    case CONN_EOF:
        if (d->stage == PARENT_ASKED)
            fail_conn(d, NET_PARENT, "closed without an answer to CONNECT");
        break;
    case CONN_BROKEN:
        fail_conn(d, conn_failure(c), conn_detail(c));
        break;
    case CONN_DRAINED:
    case CONN_TIMEOUT:
        break;
    }
}

static void on_timer(void *arg)
{
    struct dial *d = arg;
    if (d->stage == PARENT_ASKED)
        fail_conn(d, NET_PARENT, "no answer to CONNECT in time");
    else
        fail_conn(d, NET_TLS_TIMEOUT, "no TLS handshake in time");
}

static void on_race(void *arg, int fd, const struct sockaddr *peer, enum net_fail failure,
                    const char *detail)
{
    struct dial *d = arg;
    if (fd < 0) {
        fail(d, failure, "", detail);
        return;
    }
    if (d->resolved && peer != (const struct sockaddr *)&d->race.addr[0])
        dns_prefer(d->dialer->dns, d->parent ? d->parent->host : d->host, peer);
    d->conn = conn_new(d->dialer->loop, fd, &d->dialer->limits, on_conn, d);
    if (d->parent == NULL)
        reached_origin(d);
    else if (d->parent->tls)
        shake(d, PARENT_TLS, d->parent->tls, d->parent->host, d->parent->is_ip, d->parent->port);
    else
        reached_parent(d);
}

/* --- addresses --- */

static void set_port(struct sockaddr_storage *sa, uint16_t port)
{
    if (sa->ss_family == AF_INET)
        ((struct sockaddr_in *)sa)->sin_port = htons(port);
    else if (sa->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

static void start_race(struct dial *d, const struct sockaddr_storage *v, unsigned n)
{
    d->stage = TCP;
    race_start(&d->race, v, n);
}

static void on_resolved(void *arg, const struct dns_answer *answer)
{
    struct dial *d = arg;
    struct sockaddr_storage v[DNS_MAX_ADDRESSES];
    d->query = NULL;
    if (answer->n == 0) {
        fail(d, NET_DNS, d->parent ? d->parent->host : d->host, answer->problem);
        return;
    }
    for (unsigned i = 0; i < answer->n; i++) {
        v[i] = answer->addr[i];
        set_port(&v[i], d->parent ? d->parent->port : d->port);
    }
    d->resolved = true;
    start_race(d, v, answer->n);
}

static bool literal(const char *host, uint16_t port, struct sockaddr_storage *sa)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)sa;
    memset(sa, 0, sizeof *sa);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
        v4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1)
        v6->sin6_family = AF_INET6;
    else
        return false;
    set_port(sa, port);
    return true;
}

static void on_doomed(void *arg)
{
    struct dial *d = arg;
    if (!d->over)
        fail(d, d->failure, d->host, d->detail.text);
}

/* The callback comes later, as for every other failure. */
static void fail_later(struct dial *d, enum net_fail kind, const char *detail)
{
    d->failure = kind;
    err_set(&d->detail, "%s", detail);
    loop_defer(d->dialer->loop, on_doomed, d);
}

static void go_to(struct dial *d, const char *host, bool is_ip, uint16_t port)
{
    struct sockaddr_storage sa;
    if (!is_ip)
        d->query = dns_lookup(d->dialer->dns, host, on_resolved, d);
    else if (literal(host, port, &sa))
        start_race(d, &sa, 1);
    else
        fail_later(d, NET_DNS, "not an address");
}

/* The parent resolves names; an address can be judged here (security requirement I3). */
static void go_to_parent(struct dial *d, const struct dial_target *t)
{
    struct sockaddr_storage sa;
    const char *why = "not an address";
    if (t->is_ip && (!literal(t->host, t->port, &sa) ||
                     !addr_policy_allows(&d->dialer->policy, (const struct sockaddr *)&sa,
                                         t->private_ok, &why)))
        fail_later(d, NET_DENIED, why);
    else
        go_to(d, t->parent->host, t->parent->is_ip, t->parent->port);
}

struct dial *dial_start(const struct dialer *dialer, const struct dial_target *t, dial_fn *fn,
                        void *arg)
{
    struct dial *d = xcalloc(1, sizeof *d);
    bool fixed = t->parent == NULL && t->fixed.ss_family != AF_UNSPEC;
    d->dialer = dialer;
    d->host = xstrdup(t->host);
    d->is_ip = t->is_ip;
    d->tls = t->tls;
    d->port = t->port;
    d->parent = t->parent;
    d->absolute = t->absolute;
    d->via = t->parent && t->via ? xstrdup(t->via) : NULL;
    d->fn = fn;
    d->arg = arg;
    loop_timer_init(&d->timer, dialer->loop, on_timer, d);
    parent_hop_init(&d->hop);
    const struct race_rules rules = {.loop = dialer->loop,
                                     .policy = &dialer->policy,
                                     .named_by_operator = fixed || t->parent != NULL,
                                     .private_ok = t->private_ok,
                                     .source = t->source,
                                     .timeout_ns = dialer->connect_timeout_ns};
    race_init(&d->race, &rules, on_race, d);
    if (t->parent != NULL)
        go_to_parent(d, t);
    else if (fixed)
        start_race(d, &t->fixed, 1);
    else
        go_to(d, t->host, t->is_ip, t->port);
    return d;
}
