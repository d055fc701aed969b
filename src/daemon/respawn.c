/* Back-off of replacements, without a clock. */
#include "daemon/respawn.h"

void respawn_started(struct respawn *r, int64_t now_ns)
{
    r->started_ns = now_ns;
}

void respawn_died(struct respawn *r, int64_t now_ns)
{
    bool young = now_ns - r->started_ns < RESPAWN_STABLE_NS;
    r->died_ns = now_ns;
    if (!young || r->wait_ns == 0)
        r->wait_ns = RESPAWN_MIN_NS;
    else if (r->wait_ns < RESPAWN_MAX_NS / 2)
        r->wait_ns *= 2;
    else
        r->wait_ns = RESPAWN_MAX_NS;
}

int64_t respawn_at(const struct respawn *r, bool scarce)
{
    bool shortest = scarce && r->wait_ns > RESPAWN_MIN_NS;
    return r->died_ns + (shortest ? RESPAWN_MIN_NS : r->wait_ns);
}
