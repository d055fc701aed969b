/* Pace: an average that forgets. */
#include "proxy/pace.h"
#include "core/base/units.h"

#define GRACE_NS (10 * NS_PER_S)
#define FORGET_NS (60 * NS_PER_S) /* longer than the timeouts within which nothing need come */

void pace_start(struct pace *p, int64_t now_ns, uint64_t bytes)
{
    *p = (struct pace){.seen_ns = now_ns, .seen_bytes = bytes};
}

bool pace_too_slow(struct pace *p, int64_t now_ns, uint64_t bytes, bool waiting, uint64_t min_rate)
{
    p->bytes += bytes - p->seen_bytes;
    p->waited_ns += waiting ? now_ns - p->seen_ns : 0;
    p->seen_ns = now_ns;
    p->seen_bytes = bytes;
    /* In ms: a rate of 1 GiB/s and an hour of it are far from the end of 64 bits. */
    bool slow = p->waited_ns > GRACE_NS &&
                p->bytes < min_rate * (uint64_t)(p->waited_ns / NS_PER_MS) / 1000;
    while (p->waited_ns > FORGET_NS) {
        p->waited_ns /= 2;
        p->bytes /= 2;
    }
    return slow;
}
