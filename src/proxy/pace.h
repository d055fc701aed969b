/* Whether somebody is too slow: bytes a second, averaged over the time in which it kept us waiting
 * (security requirements J4, J5). The first 10 s of waiting are free. The average forgets: what
 * came long ago counts less and less, so that a fast beginning does not pay for a drip that never
 * ends.
 */
#ifndef RETRYD_PROXY_PACE_H
#define RETRYD_PROXY_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int64_t seen_ns; /* the last look, and the count of bytes then */
    uint64_t seen_bytes;
    int64_t waited_ns; /* in all, and what came meanwhile: both halved now and then */
    uint64_t bytes;
};

/* Begins to measure. */
void pace_start(struct pace *p, int64_t now_ns, uint64_t bytes);
/* bytes: counted so far, never less than before. waiting: since the last look we have waited for
 * more. True: it is too slow; min_rate: bytes a second, 0: never. */
bool pace_too_slow(struct pace *p, int64_t now_ns, uint64_t bytes, bool waiting, uint64_t min_rate);

#endif
