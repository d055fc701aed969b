/* Who may send next, in adaptive mode: the requests of one worker that wait for the send tokens of
 * one upstream client, first come, first served (retry-semantics 9.2).
 *
 * Only the head of a queue asks the limiter; the others are woken when they become the head. The
 * head looks again when an attempt of this worker has moved the rate, and at the latest after a
 * quarter of a second, since other workers move it too. Nothing is reserved while waiting: a token
 * is taken only when it is granted. */
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
