/* What the workers of one daemon tell each other about their load, so that each connection goes to
 * the one that has the fewest.
 *
 * All of them watch the same listening sockets: one that dies leaves no queue behind, and none has
 * to be told anything. Who accepts is decided by each for itself, from the counts of all. Nobody
 * waits for anybody for long: while a worker whose turn it is does not come, the others take one
 * connection after each rest, and after 250 ms as many as there are, until it comes. */
#ifndef RETRYD_DAEMON_ROSTER_H
#define RETRYD_DAEMON_ROSTER_H

#include "core/base/err.h"
#include <stdint.h>

enum { ROSTER_MAX = 32 };

/* One page, shared by the master and its workers. */
struct roster;

/* Before the first fork. NULL with *err. */
struct roster *roster_new(unsigned workers, struct err *err);
void roster_free(struct roster *r);

/* Worker i comes, with nothing in its hands, or is gone. Of a dead one, the master says it. */
void roster_enter(struct roster *r, unsigned i);
void roster_leave(struct roster *r, unsigned i);

/* Publishes how many connections worker i has; returns how many all have. */
unsigned roster_count(struct roster *r, unsigned i, unsigned open);
/* Whether the next connection may be worker i's; asking, it has come. */
bool roster_may_accept(struct roster *r, unsigned i, int64_t now_ns);
/* It accepted one; overdue: after those whose turn it was had not come. */
void roster_accepted(struct roster *r, unsigned i);
void roster_overdue(struct roster *r, unsigned i, int64_t now_ns);

#endif
