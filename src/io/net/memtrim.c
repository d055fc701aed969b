/* Trimming: a second after half of a crowd has left, at most once a second. */
#include "io/net/memtrim.h"
#include "core/base/units.h"

#include <malloc.h>

enum { CROWD = 128, KEEP_BYTES = 1024 * 1024 };

static void on_timer(void *arg)
{
    struct memtrim *m = arg;
    m->most = m->now;
    malloc_trim(KEEP_BYTES);
}

void memtrim_init(struct memtrim *m, struct loop *l)
{
    *m = (struct memtrim){.now = 0};
    loop_timer_init(&m->timer, l, on_timer, m);
}

void memtrim_fini(struct memtrim *m)
{
    loop_timer_fini(&m->timer);
}

void memtrim_count(struct memtrim *m, unsigned now)
{
    m->now = now;
    if (now > m->most)
        m->most = now;
    if (m->most >= CROWD && now <= m->most / 2 && !loop_timer_armed(&m->timer))
        loop_timer_arm(&m->timer, NS_PER_S);
}
