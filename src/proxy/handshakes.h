/* Turns for the TLS handshakes of clients: so many run at once in a worker, the rest waits
 * (security requirement F10).
 *
 * A crowd of clients that begin a handshake and leave it there must not keep out those that mean
 * it. So the newest waits shortest (the oldest has most likely left), and while somebody waits, a
 * handshake that got its time and did not end gives way. Who is cut, or waits in vain, is bounded
 * by the deadline of its connection. */
#ifndef RETRYD_PROXY_HANDSHAKES_H
#define RETRYD_PROXY_HANDSHAKES_H

#include "core/base/list.h"
#include "io/net/loop.h"

/* One that wants a turn; part of its owner. */
struct handshake {
    struct list link;
    enum { HANDSHAKE_IDLE, HANDSHAKE_WAITS, HANDSHAKE_RUNS } state;
    int64_t since_ns; /* RUNS: its start */
};

struct handshakes {
    struct loop *loop;
    unsigned max;        /* that run */
    struct list running; /* oldest first */
    struct list waiting; /* newest first */
    unsigned n_running, n_waiting;
    /* It is h's turn: begin. May end h, by handshakes_leave(). */
    void (*start)(struct handshake *h);
    /* h has to give way: end it. */
    void (*cut)(struct handshake *h);
    struct loop_timer timer; /* armed while somebody waits */
    bool handing_on;
};

/* max: 1 or more. */
void handshakes_init(struct handshakes *hs, struct loop *l, unsigned max,
                     void (*start)(struct handshake *h), void (*cut)(struct handshake *h));
/* hs must outlive the turn of the loop in which the last one left. */
void handshakes_fini(struct handshakes *hs);

/* start() is called for h, now or later. h is idle (all zero). */
void handshakes_enter(struct handshakes *hs, struct handshake *h);
/* Its handshake is over, or it waits no more. Nothing happens to one that is idle. */
void handshakes_leave(struct handshakes *hs, struct handshake *h);

#endif
