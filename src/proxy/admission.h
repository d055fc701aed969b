/* Who may send next, in adaptive mode: the requests that wait for the send tokens of one upstream
 * client, first come, first served (retry-semantics 9.2), whichever worker they came to.
 *
 * A worker has a queue of its own, of which only the head asks the limiter; the others are woken
 * when they become the head. The head asks again when an attempt of this worker has moved the rate,
 * and at the latest after a quarter of a second, since other workers move it too. Nothing is
 * reserved while waiting: a token is taken only when it is granted.
 *
 * Between workers, heads tell each other since when they wait. Where a token is there, a head
 * leaves it to those that came before: for 20 ms at most, and not at all to one that has not been
 * seen since it was waited for in vain. So a worker with many waiters sends as many more, none can
 * hold up the others, and no token is lost, as the bucket keeps it meanwhile. */
#ifndef RETRYD_PROXY_ADMISSION_H
#define RETRYD_PROXY_ADMISSION_H

#include "core/base/list.h"
#include "core/retry/retry.h"

enum { ADMISSION_BUCKETS = 64 };

/* The queues of a worker. */
struct admission {
    struct list buckets[ADMISSION_BUCKETS];
};

/* One request that may have to wait; it is a budget itself, which stands before the real one. */
struct admission_ticket {
    struct budget base;
    struct admission *all;
    struct budget *budget;         /* the real one */
    struct list link;              /* in the queue */
    struct admission_queue *queue; /* NULL: not waiting */
    int64_t since_ns;              /* waiting */
    void (*wake)(void *arg); /* ask again, soon; never called from within a call of this room by the
                                ticket itself */
    void *arg;
};

void admission_init(struct admission *a);
void admission_ticket_init(struct admission_ticket *t, struct admission *a, struct budget *budget,
                           void (*wake)(void *arg), void *arg);
/* Leaves the queue, wherever it stands. */
void admission_leave(struct admission_ticket *t);

#endif
