/* A budget in plain memory: for tests, for `simulate`, and for a daemon of a single process. */
#ifndef RETRYD_CORE_RETRY_MEMBUDGET_H
#define RETRYD_CORE_RETRY_MEMBUDGET_H

#include "core/retry/retry.h"

struct membudget {
    struct budget base;
    uint32_t debt;
};

/* Full. admit always grants: the limiter belongs to adaptive mode. */
void membudget_init(struct membudget *b);

#endif
