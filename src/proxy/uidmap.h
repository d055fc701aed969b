/* Which users a user namespace can tell apart (user_namespaces(7)): all others look like one and
 * the same, the overflow user. */
#ifndef RETRYD_PROXY_UIDMAP_H
#define RETRYD_PROXY_UIDMAP_H

#include "core/base/slice.h"
#include <stdint.h>

/* map: the text of /proc/self/uid_map, lines of "first inside, first outside, how many". */
bool uidmap_has(struct slice map, uint32_t uid);
/* Of this process; true where the map cannot be read. */
bool uidmap_knows(uint32_t uid);

#endif
