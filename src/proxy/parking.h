/* The requests of a worker that wait on a timer: how many in all and of one upstream client, each
 * with its bound, so that what one of them meets leaves room for the others (security requirement
 * E6). */
#ifndef RETRYD_PROXY_PARKING_H
#define RETRYD_PROXY_PARKING_H

#include "core/base/list.h"
#include <stdbool.h>
#include <stdint.h>

enum { PARKING_BUCKETS = 256 };

struct parking_client;

/* All places; room for `max` requests, and for half of that many of one upstream client. */
struct parking {
    unsigned max, taken;
    struct list buckets[PARKING_BUCKETS];
};

/* Where one request waits; all-zero: nowhere. */
struct parking_place {
    struct parking *all;
    struct parking_client *client;
};

void parking_init(struct parking *p, unsigned max);
/* client: a number that is hard to choose (budgets_id). */
bool parking_has_room(const struct parking *p, uint64_t client);
/* Takes a place, room or not. */
void parking_enter(struct parking *p, uint64_t client, struct parking_place *at);
/* Leaves it; harmless when there is none. */
void parking_leave(struct parking_place *at);

#endif
