/* Accepting. At most 64 connections a turn, so that a flood of connects leaves room for the work on
 * those that are in. Without descriptors the socket stays readable for ever: accepting then rests
 * for 100 ms instead of spinning (security requirement J2).
 *
 * Where processes share the socket, all of those that watch it wake, and a gate says whose turn it
 * is. Whose turn it is not looks again a little later: a process that is busy, stopped or dead
 * delays a connection by that, and no more. */
#include "io/net/listener.h"

#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/net/addrtext.h"
#include "io/net/sockopt.h"
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ACCEPTS_PER_TURN = 64, REST_MS = 100, YIELD_MS = 2 };

struct listener {
    struct loop *loop;
    int fd;
    struct event *ev;
    struct loop_timer rest;
    bool paused, resting, closed;
    bool yielding; /* it rests because the gate said so */
    struct listener_gate gate;
    void (*starved)(void *arg);
    void *starved_arg;
    listener_fn *fn;
    void *arg;
    struct sockaddr_storage addr;
};

/* One place decides whether the socket is watched. */
static void watch(struct listener *ls)
{
    if (ls->paused || ls->resting || event_add(ls->ev, NULL) != 0)
        event_del(ls->ev);
}

static void take_rest(struct listener *ls, int64_t ms)
{
    ls->resting = true;
    watch(ls);
    loop_timer_arm(&ls->rest, ms * NS_PER_MS);
}

static bool must_yield(struct listener *ls)
{
    return ls->gate.may_accept != NULL && !ls->gate.may_accept(ls->gate.arg);
}

/* overdue: the first connection was left to others once already. */
static void accept_some(struct listener *ls, bool overdue)
{
    for (int i = 0; i < ACCEPTS_PER_TURN && !ls->closed && !ls->paused; i++) {
        struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof peer;
        bool yields = must_yield(ls);
        overdue = overdue && yields; /* by now it may be our turn anyway */
        if (yields && !overdue) {
            ls->yielding = i == 0; /* else it is not known whether there is another one */
            if (ls->yielding)
                take_rest(ls, YIELD_MS);
            return;
        }
        int got = accept4(ls->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (got >= 0) {
            if (ls->gate.accepted != NULL)
                ls->gate.accepted(ls->gate.arg, overdue);
            overdue = false;
            ls->fn(ls->arg, got, (struct sockaddr *)&peer);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            take_rest(ls, REST_MS);
            if (ls->starved != NULL)
                ls->starved(ls->starved_arg);
            return;
        } /* else it concerned one connection only: gone before it was accepted */
    }
}

static void on_acceptable(int fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct listener *ls = arg;
    loop_tick(ls->loop);
    accept_some(ls, false);
}

static void on_rested(void *arg)
{
    struct listener *ls = arg;
    bool yielded = ls->yielding;
    ls->resting = ls->yielding = false;
    watch(ls);
    if (yielded)
        accept_some(ls, true);
}

static struct listener *make(struct loop *l, int fd, listener_fn *fn, void *arg, struct err *err)
{
    struct listener *ls = xcalloc(1, sizeof *ls);
    ls->loop = l;
    ls->fd = fd;
    ls->fn = fn;
    ls->arg = arg;
    sockopt_tune(fd);
    socklen_t len = sizeof ls->addr;
    getsockname(fd, (struct sockaddr *)&ls->addr, &len);
    loop_timer_init(&ls->rest, l, on_rested, ls);
    ls->ev = loop_watch(l, fd, EV_READ | EV_PERSIST, on_acceptable, ls);
    if (event_add(ls->ev, NULL) == 0)
        return ls;
    err_set(err, "cannot watch a listening socket: %s", strerror(errno));
    listener_close(ls);
    return NULL;
}

static bool bind_to(int fd, const struct sockaddr *sa, socklen_t len)
{
    if (bind(fd, sa, len) == 0)
        return true;
    if (errno != EADDRINUSE || sa->sa_family != AF_UNIX)
        return false;
    /* A socket file outlives its process. Nobody answers: it is a leftover. A name of anything else
     * is left alone, and a link is not followed. */
    const char *path = ((const struct sockaddr_un *)sa)->sun_path;
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        errno = EEXIST;
        return false;
    }
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool stale = probe >= 0 && connect(probe, sa, len) != 0 && errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    errno = EADDRINUSE;
    return stale && unlink(path) == 0 && bind(fd, sa, len) == 0;
}

int listener_bind(const struct sockaddr *sa, socklen_t len, struct err *err)
{
    const int on = 1;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (sa->sa_family == AF_INET6) /* an address means what it says: [::] is not 0.0.0.0 too */
            (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        if (bind_to(fd, sa, len) && listen(fd, SOMAXCONN) == 0)
            return fd;
    }
    char text[ADDRTEXT_BYTES];
    err_set(err, "cannot listen on %s: %s", addrtext(sa, text), strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

struct listener *listener_open(struct loop *l, const struct sockaddr *sa, socklen_t len,
                               listener_fn *fn, void *arg, struct err *err)
{
    int fd = listener_bind(sa, len, err);
    return fd < 0 ? NULL : make(l, fd, fn, arg, err);
}

struct listener *listener_adopt(struct loop *l, int fd, listener_fn *fn, void *arg, struct err *err)
{
    int listening = 0;
    socklen_t len = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 || !listening) {
        err_set(err, "descriptor %d is not a listening socket", fd);
        return NULL;
    }
    if (!sockopt_adopt(fd)) {
        err_set(err, "cannot use descriptor %d: %s", fd, strerror(errno));
        return NULL;
    }
    return make(l, fd, fn, arg, err);
}

void listener_close(struct listener *ls)
{
    if (!ls)
        return;
    ls->closed = true;
    event_free(ls->ev);
    loop_timer_fini(&ls->rest);
    close(ls->fd);
    loop_defer(ls->loop, free, ls);
}

void listener_pause(struct listener *ls, bool paused)
{
    ls->paused = paused;
    watch(ls);
}

void listener_set_gate(struct listener *ls, const struct listener_gate *gate)
{
    ls->gate = *gate;
}

void listener_on_starved(struct listener *ls, void (*fn)(void *arg), void *arg)
{
    ls->starved = fn;
    ls->starved_arg = arg;
}

const struct sockaddr_storage *listener_addr(const struct listener *ls)
{
    return &ls->addr;
}
