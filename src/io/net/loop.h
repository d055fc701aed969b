/* One event loop, one thread: libevent core underneath, and nobody above this room sees it.
 *
 * Callbacks are never called from within the function that registers them. An object that dies
 * inside a callback unhooks its events at once and defers its free to the end of the turn. */
#ifndef RETRYD_IO_NET_LOOP_H
#define RETRYD_IO_NET_LOOP_H

#include "core/base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct event_base;
struct event;

struct loop *loop_new(struct err *err);
/* Runs what was deferred, then frees. */
void loop_free(struct loop *l);
/* Until loop_stop. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* In the child after fork(): the loop becomes the child's own, so that running or freeing it no
 * longer touches the parent's. False: it can only be abandoned. */
bool loop_after_fork(struct loop *l);

/* For this room only: the base; a number that grows by one each turn; a new libevent event, not yet
 * added. */
struct event_base *loop_base(struct loop *l);
uint64_t loop_turn(const struct loop *l);
struct event *loop_watch(struct loop *l, int fd, short what, void (*fn)(int, short, void *),
                         void *arg);

/* Monotonic, read once per callback from the kernel side. */
int64_t loop_now_ns(struct loop *l);
/* Called by this room at the head of each libevent callback. */
void loop_tick(struct loop *l);

/* fn(obj) at the end of this turn, before the loop waits again; in the order of the calls. From
 * within a deferred function: at the end of the next turn. */
void loop_defer(struct loop *l, void (*fn)(void *obj), void *obj);

struct loop_timer {
    struct loop *loop;
    struct event *ev; /* NULL until it is armed: most never are */
    void (*fn)(void *arg);
    void *arg;
};

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(void *arg), void *arg);
void loop_timer_fini(struct loop_timer *t);
/* One shot after delay_ns (>= 0). Re-arming replaces. */
void loop_timer_arm(struct loop_timer *t, int64_t delay_ns);
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);

/* fn(arg, signo) on the loop when the signal arrives; for the life of the loop. */
void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

#endif
