/* Says in the log, at the start and every day, that the local authority is near its end or past it
 * (security requirement H5). */
#ifndef RETRYD_DAEMON_CAWATCH_H
#define RETRYD_DAEMON_CAWATCH_H

#include "io/net/loop.h"
#include "io/tls/ca.h"

struct cawatch {
    struct loop_timer timer;
    const struct ca *ca;
};

/* Borrows the authority. */
void cawatch_start(struct cawatch *w, struct loop *l, const struct ca *ca);
void cawatch_stop(struct cawatch *w);

enum cawatch_state { CAWATCH_WELL, CAWATCH_ENDING, CAWATCH_OVER, CAWATCH_EARLY };
/* Of an authority that lives from begin to end. *days: whole days that are left, ENDING only. */
enum cawatch_state cawatch_look(time_t begin, time_t end, time_t now, int *days);

#endif
