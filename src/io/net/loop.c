/* The event loop. A turn is: wait, run the callbacks of what happened, run what they deferred.
 * Functions deferred by deferred functions belong to the next turn, which then does not wait: a
 * chain of them can starve nobody.
 *
 * Time is CLOCK_MONOTONIC only (security requirement L7). libevent's own time cache is off, so that
 * a timer counts from the moment it was armed and never fires early as seen by loop_now_ns. Signals
 * are turned into ordinary callbacks by libevent: the handler writes one byte (L5). */
#include "io/net/loop.h"

#include "core/base/list.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct deferred {
    void (*fn)(void *obj);
    void *obj;
};

/* Grows to the largest number of objects that ever died in one turn. */
struct deferred_queue {
    struct deferred *items;
    size_t n, cap;
};

struct signal_watch {
    struct list link;
    struct loop *loop;
    struct event *ev;
    void (*fn)(void *arg, int signo);
    void *arg;
};

struct loop {
    struct event_base *base;
    int64_t now_ns;
    uint64_t turn;
    bool stopped;
    struct deferred_queue deferred; /* collecting */
    struct deferred_queue running;  /* of the turn that ends */
    struct list signals;
};

struct loop *loop_new(struct err *err)
{
    struct event_config *cfg = event_config_new();
    struct event_base *base = NULL;
    if (cfg && event_config_require_features(cfg, EV_FEATURE_ET) == 0 &&
        event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER) == 0 &&
        event_config_set_flag(cfg, EVENT_BASE_FLAG_NO_CACHE_TIME) == 0 &&
        event_config_set_flag(cfg, EVENT_BASE_FLAG_IGNORE_ENV) == 0)
        base = event_base_new_with_config(cfg);
    if (cfg)
        event_config_free(cfg);
    if (!base) {
        err_set(err, "cannot make an event loop: %s", strerror(errno));
        return NULL;
    }
    struct loop *l = xcalloc(1, sizeof *l);
    l->base = base;
    list_init(&l->signals);
    loop_tick(l);
    return l;
}

static void run_deferred(struct loop *l)
{
    struct deferred_queue batch = l->deferred;
    l->deferred = l->running;
    l->running = batch;
    loop_tick(l);
    for (size_t i = 0; i < batch.n; i++)
        batch.items[i].fn(batch.items[i].obj);
    l->running.n = 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    while (l->deferred.n > 0)
        run_deferred(l);
    struct list *link = l->signals.next;
    while (link != &l->signals) {
        struct signal_watch *w = list_entry(link, struct signal_watch, link);
        link = link->next;
        event_free(w->ev);
        free(w);
    }
    event_base_free(l->base);
    free(l->deferred.items);
    free(l->running.items);
    free(l);
}

void loop_run(struct loop *l)
{
    l->stopped = false;
    while (!l->stopped) {
        /* ONCE in both cases: NONBLOCK alone goes on for as long as sockets are ready, and under
         * load that is for ever. */
        int wait = l->deferred.n > 0 ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE;
        int rc = event_base_loop(l->base, wait | EVLOOP_NO_EXIT_ON_EMPTY);
        ASSERT(rc >= 0);
        l->turn++;
        if (l->deferred.n > 0)
            run_deferred(l);
    }
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

bool loop_after_fork(struct loop *l)
{
    return event_reinit(l->base) == 0;
}

struct event_base *loop_base(struct loop *l)
{
    return l->base;
}

int64_t loop_now_ns(struct loop *l)
{
    return l->now_ns;
}

uint64_t loop_turn(const struct loop *l)
{
    return l->turn;
}

void loop_tick(struct loop *l)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    l->now_ns = (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

struct event *loop_watch(struct loop *l, int fd, short what, void (*fn)(int, short, void *),
                         void *arg)
{
    struct event *ev = event_new(l->base, fd, what, fn, arg);
    ASSERT(ev);
    return ev;
}

void loop_defer(struct loop *l, void (*fn)(void *obj), void *obj)
{
    struct deferred_queue *q = &l->deferred;
    if (q->n == q->cap) {
        q->cap = q->cap ? q->cap * 2 : 64;
        q->items = xrealloc(q->items, q->cap * sizeof *q->items);
    }
    q->items[q->n++] = (struct deferred){fn, obj};
}

static void on_timer(int fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct loop_timer *t = arg;
    loop_tick(t->loop);
    t->fn(t->arg);
}

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(void *arg), void *arg)
{
    *t = (struct loop_timer){.loop = l, .fn = fn, .arg = arg};
}

void loop_timer_fini(struct loop_timer *t)
{
    if (t->ev)
        event_free(t->ev);
    t->ev = NULL;
}

void loop_timer_arm(struct loop_timer *t, int64_t delay_ns)
{
    ASSERT(delay_ns >= 0);
    int64_t us = delay_ns / 1000 + (delay_ns % 1000 != 0); /* up: never early */
    struct timeval tv = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    if (t->ev == NULL)
        t->ev = loop_watch(t->loop, -1, 0, on_timer, t);
    int rc = event_add(t->ev, &tv);
    ASSERT(rc == 0);
}

void loop_timer_disarm(struct loop_timer *t)
{
    if (t->ev != NULL)
        event_del(t->ev);
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return t->ev != NULL && event_pending(t->ev, EV_TIMEOUT, NULL) != 0;
}

static void on_signal(int signo, short what, void *arg)
{
    (void)what;
    struct signal_watch *w = arg;
    loop_tick(w->loop);
    w->fn(w->arg, signo);
}

void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg)
{
    struct signal_watch *w = xcalloc(1, sizeof *w);
    w->loop = l;
    w->fn = fn;
    w->arg = arg;
    w->ev = loop_watch(l, signo, EV_SIGNAL | EV_PERSIST, on_signal, w);
    int rc = event_add(w->ev, NULL);
    ASSERT(rc == 0);
    list_push_back(&l->signals, &w->link);
}
