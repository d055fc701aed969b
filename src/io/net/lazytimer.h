/* A deadline that moves with every byte: later costs nothing, only the timer that fires too early
 * is set again for the rest. */
#ifndef RETRYD_IO_NET_LAZYTIMER_H
#define RETRYD_IO_NET_LAZYTIMER_H

#include "io/net/loop.h"

struct lazytimer {
    struct loop_timer timer;
    int64_t due_ns;   /* 0: none */
    int64_t armed_ns; /* when the timer fires, at or before due_ns; 0: not armed */
    void (*fn)(void *arg);
    void *arg;
};

void lazytimer_init(struct lazytimer *t, struct loop *l, void (*fn)(void *arg), void *arg);
void lazytimer_fini(struct lazytimer *t);
/* fn(arg) once when the loop's clock reaches due_ns; 0: never. */
void lazytimer_set(struct lazytimer *t, int64_t due_ns);

#endif
