/* Dialling: addresses (given, literal or looked up), then TCP to one after the other in the
 * resolver's order, then TLS. A failed TCP connect moves on to the next address; TLS that fails
 * ends the dial, since the address did answer. Trying the families in parallel (RFC 8305) would go
 * into connect_next(), which decides what is tried when.
 *
 * Each address passes the policy right before connect() (security requirement I3). One given by
 * `resolve` passes whatever the rules say, except that the proxy never dials itself (I5). */
#include "io/net/dial.h"

#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/net/addrtext.h"
#include "io/net/sockopt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dial {
    const struct dialer *dialer;
    char *host;
    bool is_ip, tls, private_ok, given;
    uint16_t port;
    dial_fn *fn;
    void *arg;
    bool over;

    struct dns_query *query;
    struct sockaddr_storage addr[DNS_MAX_ADDRESSES];
    unsigned n, next;
    struct loop_timer timer;
    int fd; /* -1: none under way */
    struct event *ev;
    struct conn *conn;

    enum net_fail failure; /* the last one; a denial counts only while there is no other */
    struct err detail;
};

/* --- ends --- */

static void on_free(void *arg)
{
    struct dial *d = arg;
    free(d->host);
    free(d);
}

static void drop_socket(struct dial *d)
{
    if (d->ev)
        event_free(d->ev);
    d->ev = NULL;
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

/* Unhooks everything but d->conn. */
static void end(struct dial *d)
{
    ASSERT(!d->over);
    d->over = true;
    if (d->query)
        dns_cancel(d->query);
    drop_socket(d);
    loop_timer_fini(&d->timer);
    loop_defer(d->dialer->loop, on_free, d);
}

void dial_cancel(struct dial *d)
{
    end(d);
    if (d->conn)
        conn_close(d->conn, false);
}

static void fail(struct dial *d)
{
    end(d);
    if (d->conn)
        conn_close(d->conn, false);
    d->fn(d->arg, NULL, d->failure, d->detail.text);
}

static void succeed(struct dial *d)
{
    end(d);
    d->fn(d->arg, d->conn, NET_OK, "");
}

static void note(struct dial *d, enum net_fail kind, const struct sockaddr *sa, const char *what)
{
    char text[ADDRTEXT_BYTES];
    if (kind == NET_DENIED && d->failure != NET_OK)
        return;
    d->failure = kind;
    err_set(&d->detail, "%s: %s", addrtext(sa, text), what);
}

static const struct sockaddr *current(const struct dial *d)
{
    return (const struct sockaddr *)&d->addr[d->next - 1];
}

/* --- TLS --- */

static void on_conn(struct conn *c, enum conn_event ev, void *arg)
{
    struct dial *d = arg;
    if (ev == CONN_UP) {
        succeed(d);
    } else if (ev == CONN_BROKEN) {
        note(d, conn_failure(c), current(d), conn_detail(c));
        fail(d);
    }
}

static void start_tls(struct dial *d)
{
    struct err why = {.text = ""};
    SSL *ssl = tlsclient_ssl(d->dialer->tls, d->host, d->is_ip, &why);
    if (!ssl) {
        note(d, NET_TLS, current(d), why.text);
        fail(d);
        return;
    }
    conn_start_tls(d->conn, ssl);
    loop_timer_arm(&d->timer, d->dialer->tls_timeout_ns);
}

static void connected(struct dial *d)
{
    int fd = d->fd;
    d->fd = -1;
    drop_socket(d);
    loop_timer_disarm(&d->timer);
    d->conn = conn_new(d->dialer->loop, fd, &d->dialer->limits, on_conn, d);
    if (d->tls)
        start_tls(d);
    else
        succeed(d);
}

/* --- TCP --- */

/* Which failures are this machine's own fault (connect(2), socket(2)). */
static enum net_fail kind_of(int error)
{
    switch (error) {
    case ETIMEDOUT:
        return NET_CONNECT_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EADDRNOTAVAIL: /* out of ports */
    case EADDRINUSE:
    case EAGAIN:
    case EACCES:
    case EPERM:
        return NET_LOCAL;
    default:
        return NET_REFUSED;
    }
}

static void connect_next(struct dial *d);

static void on_connect(int fd, short what, void *arg)
{
    (void)what;
    struct dial *d = arg;
    loop_tick(d->dialer->loop);
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0) {
        connected(d);
        return;
    }
    note(d, kind_of(error), current(d), strerror(error));
    connect_next(d);
}

static bool permitted(struct dial *d, const struct sockaddr *sa)
{
    const char *why = "own listener";
    bool ok = d->given ? !addr_policy_is_own(&d->dialer->policy, sa)
                       : addr_policy_allows(&d->dialer->policy, sa, d->private_ok, &why);
    if (!ok)
        note(d, NET_DENIED, sa, why);
    return ok;
}

/* Opens a socket and starts connecting. False: this address failed at once. */
static bool connect_to(struct dial *d, const struct sockaddr *sa)
{
    socklen_t len =
        sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    d->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->fd >= 0) {
        sockopt_tune(d->fd);
        /* A connect that is done at once is reported by the event all the same. */
        if (connect(d->fd, sa, len) == 0 || errno == EINPROGRESS) {
            d->ev = loop_watch(d->dialer->loop, d->fd, EV_WRITE, on_connect, d);
            if (event_add(d->ev, NULL) == 0)
                return true;
            errno = ENOMEM;
        }
    }
    note(d, kind_of(errno), sa, strerror(errno));
    return false;
}

static void connect_next(struct dial *d)
{
    drop_socket(d);
    while (d->next < d->n) {
        const struct sockaddr *sa = (const struct sockaddr *)&d->addr[d->next++];
        if (permitted(d, sa) && connect_to(d, sa)) {
            loop_timer_arm(&d->timer, d->dialer->connect_timeout_ns);
            return;
        }
        drop_socket(d);
    }
    fail(d);
}

static void on_timer(void *arg)
{
    struct dial *d = arg;
    if (d->conn) {
        note(d, NET_TLS_TIMEOUT, current(d), "no TLS handshake in time");
        fail(d);
    } else {
        note(d, NET_CONNECT_TIMEOUT, current(d), "no connection in time");
        connect_next(d);
    }
}

/* --- addresses --- */

static void set_port(struct sockaddr_storage *sa, uint16_t port)
{
    if (sa->ss_family == AF_INET)
        ((struct sockaddr_in *)sa)->sin_port = htons(port);
    else if (sa->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

static void on_resolved(void *arg, const struct dns_answer *answer)
{
    struct dial *d = arg;
    d->query = NULL;
    if (answer->n == 0) {
        d->failure = NET_DNS;
        err_set(&d->detail, "%s: %s", d->host, answer->problem);
        fail(d);
        return;
    }
    for (d->n = 0; d->n < answer->n; d->n++) {
        d->addr[d->n] = answer->addr[d->n];
        set_port(&d->addr[d->n], d->port);
    }
    connect_next(d);
}

static bool from_literal(struct dial *d)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&d->addr[0];
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&d->addr[0];
    if (inet_pton(AF_INET, d->host, &v4->sin_addr) == 1)
        v4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, d->host, &v6->sin6_addr) == 1)
        v6->sin6_family = AF_INET6;
    else
        return false;
    set_port(&d->addr[0], d->port);
    d->n = 1;
    return true;
}

static void on_begin(void *arg)
{
    struct dial *d = arg;
    if (d->over)
        return;
    if (d->given) {
        connect_next(d);
    } else if (!d->is_ip) {
        d->query = dns_lookup(d->dialer->dns, d->host, on_resolved, d);
    } else if (from_literal(d)) {
        connect_next(d);
    } else {
        d->failure = NET_DNS;
        err_set(&d->detail, "%s: not an address", d->host);
        fail(d);
    }
}

struct dial *dial_start(const struct dialer *dialer, const struct dial_target *t, dial_fn *fn,
                        void *arg)
{
    struct dial *d = xcalloc(1, sizeof *d);
    d->dialer = dialer;
    d->host = xstrdup(t->host);
    d->is_ip = t->is_ip;
    d->tls = t->tls;
    d->private_ok = t->private_ok;
    d->port = t->port;
    d->fn = fn;
    d->arg = arg;
    d->fd = -1;
    d->given = t->fixed.ss_family != AF_UNSPEC;
    if (d->given) {
        d->addr[0] = t->fixed;
        d->n = 1;
    }
    loop_timer_init(&d->timer, dialer->loop, on_timer, d);
    loop_defer(dialer->loop, on_begin, d);
    return d;
}
