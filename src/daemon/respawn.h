/* When a worker that died is replaced.
 *
 * One that had worked for long is replaced after the shortest wait; each further one that dies
 * young waits twice as long, so that a crash in a loop costs little. But it may not become an
 * outage: while workers are scarce, waits are the shortest (security requirement J13). */
#ifndef RETRYD_DAEMON_RESPAWN_H
#define RETRYD_DAEMON_RESPAWN_H

#include "core/base/units.h"

#include <stdbool.h>

#define RESPAWN_MIN_NS (100 * NS_PER_MS)
#define RESPAWN_MAX_NS (5 * NS_PER_S)
#define RESPAWN_STABLE_NS (10 * NS_PER_S)

/* Of one place; all-zero is one that may be filled at once. */
struct respawn {
    int64_t started_ns, died_ns;
    int64_t wait_ns;
};

void respawn_started(struct respawn *r, int64_t now_ns);
void respawn_died(struct respawn *r, int64_t now_ns);
/* When the next one may start. */
int64_t respawn_at(const struct respawn *r, bool scarce);

#endif
