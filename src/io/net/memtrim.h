/* Memory goes back to the system after a crowd has left (security requirement E7): the allocator
 * keeps freed pages for a next time that may never come. */
#ifndef RETRYD_IO_NET_MEMTRIM_H
#define RETRYD_IO_NET_MEMTRIM_H

#include "io/net/loop.h"

struct memtrim {
    struct loop_timer timer;
    unsigned now, most; /* connections: at present, and at most since the last time */
};

void memtrim_init(struct memtrim *m, struct loop *l);
void memtrim_fini(struct memtrim *m);
/* How many connections there are. Cheap. */
void memtrim_count(struct memtrim *m, unsigned now);

#endif
