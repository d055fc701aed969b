/* The race. connect_next() is the one place that decides what is tried when; every end of an
 * attempt, every expiry and the pace of the race lead there.
 *
 * Each address passes the policy right before connect() (security requirement I3). */
#include "io/net/race.h"

#include "core/base/units.h"
#include "io/net/addrtext.h"
#include "io/net/sockopt.h"
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Of several failures the one that says most is told; among equals the last. */
enum telling {
    TELL_DENIED = 1, /* our own rules: only when nothing else was tried */
    TELL_NO_ROUTE,   /* this machine has no such family, or no way there */
    TELL_LOCAL,
    TELL_PEER, /* somebody refused, or nobody answered */
};

void race_interleave(struct sockaddr_storage *v, unsigned n)
{
    struct sockaddr_storage out[DNS_MAX_ADDRESSES];
    bool used[DNS_MAX_ADDRESSES] = {false};
    sa_family_t want = n > 0 ? v[0].ss_family : AF_UNSPEC;
    for (unsigned i = 0; i < n; i++) {
        unsigned pick = n;
        for (unsigned k = 0; k < n; k++) {
            if (used[k])
                continue;
            if (pick == n)
                pick = k; /* the rest is of the other family */
            if (v[k].ss_family == want) {
                pick = k;
                break;
            }
        }
        used[pick] = true;
        out[i] = v[pick];
        want = v[pick].ss_family == AF_INET6 ? AF_INET : AF_INET6;
    }
    memcpy(v, out, n * sizeof *v);
}

static const struct sockaddr *addr_at(const struct race *r, unsigned i)
{
    return (const struct sockaddr *)&r->addr[i];
}

/* --- ends --- */

static void stop(struct race_try *t)
{
    if (t->ev)
        event_free(t->ev);
    t->ev = NULL;
    if (t->fd < 0)
        return;
    close(t->fd);
    t->fd = -1;
    t->race->running--;
}

static void stop_all(struct race *r)
{
    for (unsigned i = 0; i < r->n_tries; i++)
        stop(&r->tries[i]);
    loop_timer_disarm(&r->timer);
}

static void lose(struct race *r)
{
    struct err detail = r->detail;
    stop_all(r);
    if (r->n > 1)
        err_set(&detail, "%s (%u addresses)", r->detail.text, r->n);
    r->fn(r->arg, -1, NULL, r->failure, detail.text);
}

static void win(struct race_try *t)
{
    struct race *r = t->race;
    int fd = t->fd;
    event_free(t->ev);
    t->ev = NULL;
    t->fd = -1;
    r->running--;
    stop_all(r);
    r->fn(r->arg, fd, addr_at(r, t->addr), NET_OK, "");
}

static void note(struct race *r, unsigned addr, enum net_fail kind, enum telling rank,
                 const char *what)
{
    char text[ADDRTEXT_BYTES];
    if ((int)rank < r->telling)
        return;
    r->telling = (int)rank;
    r->failure = kind;
    err_set(&r->detail, "%s: %s", addrtext(addr_at(r, addr), text), what);
}

/* What an error of socket(2), bind(2) or connect(2) is, and how much it says. */
static void note_errno(struct race *r, unsigned addr, int error)
{
    /* Where IPv6 is switched off, this is how the kernel says that there is no way. */
    if (error == EADDRNOTAVAIL && r->addr[addr].ss_family == AF_INET6) {
        note(r, addr, NET_REFUSED, TELL_NO_ROUTE, strerror(error));
        return;
    }
    switch (error) {
    case ETIMEDOUT:
        note(r, addr, NET_CONNECT_TIMEOUT, TELL_PEER, strerror(error));
        break;
    case ENETUNREACH:
    case EAFNOSUPPORT:
        note(r, addr, NET_REFUSED, TELL_NO_ROUTE, strerror(error));
        break;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        note(r, addr, NET_STARVED, TELL_LOCAL, strerror(error));
        break;
    case EADDRNOTAVAIL: /* out of ports, or a source address that is not here */
    case EADDRINUSE:
    case EAGAIN:
    case EACCES:
    case EPERM:
        note(r, addr, NET_LOCAL, TELL_LOCAL, strerror(error));
        break;
    default:
        note(r, addr, NET_REFUSED, TELL_PEER, strerror(error));
    }
}

/* --- one address --- */

static void connect_next(struct race *r);

static void on_connect(int fd, short what, void *arg)
{
    (void)what;
    struct race_try *t = arg;
    struct race *r = t->race;
    loop_tick(r->rules.loop);
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0) {
        win(t);
        return;
    }
    note_errno(r, t->addr, error);
    stop(t);
    r->next_at_ns = 0;
    connect_next(r);
}

static bool permitted(struct race *r, unsigned addr)
{
    const struct addr_policy *p = r->rules.policy;
    const struct sockaddr *sa = addr_at(r, addr);
    const char *why = "own listener";
    bool ok = r->rules.named_by_operator ? !addr_policy_is_own(p, sa)
                                         : addr_policy_allows(p, sa, r->rules.private_ok, &why);
    if (!ok)
        note(r, addr, NET_DENIED, TELL_DENIED, why);
    return ok;
}

/* The source address of that family, if one is set. The port is chosen by connect(), which knows
 * the target: one port serves many targets. */
static bool bind_source(const struct race *r, int fd, sa_family_t family)
{
    const struct race_source *src = r->rules.source;
    if (src == NULL)
        return true;
    const struct sockaddr_storage *from = family == AF_INET ? &src->v4 : &src->v6;
    if (from->ss_family == AF_UNSPEC)
        return true;
    sockopt_late_port(fd);
    return bind(fd, (const struct sockaddr *)from,
                family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) == 0;
}

/* Opens a socket and starts connecting. False: this address failed at once. */
static bool try_address(struct race *r, unsigned addr)
{
    const struct sockaddr *sa = addr_at(r, addr);
    socklen_t len =
        sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    struct race_try *t = &r->tries[r->n_tries];
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        note_errno(r, addr, errno);
        return false;
    }
    r->n_tries++;
    r->running++;
    *t = (struct race_try){.race = r, .fd = fd, .addr = addr};
    sockopt_tune(fd);
    /* A connect that is done at once is reported by the event all the same. */
    if (bind_source(r, fd, sa->sa_family) && (connect(fd, sa, len) == 0 || errno == EINPROGRESS)) {
        t->ev = loop_watch(r->rules.loop, fd, EV_WRITE, on_connect, t);
        if (event_add(t->ev, NULL) == 0) {
            t->deadline_ns = loop_now_ns(r->rules.loop) + r->rules.timeout_ns;
            return true;
        }
        errno = ENOMEM;
    }
    note_errno(r, addr, errno);
    stop(t);
    return false;
}

/* --- the race --- */

/* Until the next address is due or the oldest attempt is over. */
static void arm(struct race *r)
{
    int64_t at = r->next < r->n ? r->next_at_ns : INT64_MAX;
    for (unsigned i = 0; i < r->n_tries; i++)
        if (r->tries[i].fd >= 0 && r->tries[i].deadline_ns < at)
            at = r->tries[i].deadline_ns;
    int64_t wait = at - loop_now_ns(r->rules.loop);
    loop_timer_arm(&r->timer, wait > 0 ? wait : 0);
}

static void connect_next(struct race *r)
{
    int64_t now = loop_now_ns(r->rules.loop);
    while (r->next < r->n && (r->running == 0 || now >= r->next_at_ns)) {
        unsigned addr = r->next++;
        if (permitted(r, addr) && try_address(r, addr))
            r->next_at_ns = now + RACE_STAGGER_MS * NS_PER_MS;
    }
    if (r->running == 0)
        lose(r);
    else
        arm(r);
}

static void on_timer(void *arg)
{
    struct race *r = arg;
    int64_t now = loop_now_ns(r->rules.loop);
    for (unsigned i = 0; i < r->n_tries; i++) {
        struct race_try *t = &r->tries[i];
        if (t->fd < 0 || t->deadline_ns > now)
            continue;
        note(r, t->addr, NET_CONNECT_TIMEOUT, TELL_PEER, "no connection in time");
        stop(t);
        r->next_at_ns = 0;
    }
    connect_next(r);
}

void race_init(struct race *r, const struct race_rules *rules, race_fn *fn, void *arg)
{
    memset(r, 0, sizeof *r);
    r->rules = *rules;
    r->fn = fn;
    r->arg = arg;
    loop_timer_init(&r->timer, rules->loop, on_timer, r);
}

void race_start(struct race *r, const struct sockaddr_storage *v, unsigned n)
{
    ASSERT(r->n == 0 && n > 0 && n <= DNS_MAX_ADDRESSES);
    memcpy(r->addr, v, n * sizeof *v);
    race_interleave(r->addr, n);
    r->n = n;
    loop_timer_arm(&r->timer, 0);
}

void race_fini(struct race *r)
{
    stop_all(r);
    loop_timer_fini(&r->timer);
}
