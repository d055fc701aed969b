/* The memory in which quotas and limiters outlive whoever uses them.
 *
 * Anonymous, for one daemon and its workers; or a file that also survives the daemon and that
 * several daemons of one host may share. A file is validated before it is trusted: one that does
 * not fit is replaced, never repaired, and a line in the log says so. */
#ifndef RETRYD_IO_SHM_REGION_H
#define RETRYD_IO_SHM_REGION_H

#include "core/base/err.h"
#include <stdint.h>

enum {
    REGION_SEATS = 64,
    REGION_SLOTS_DEFAULT = 1024,
    REGION_SLOTS_MIN = 16,
    REGION_SLOTS_MAX = 65536,
};

/* All-zero: anonymous, with the defaults. */
struct region_options {
    const char *path; /* of the file; NULL: anonymous */
    unsigned slots;   /* upstream clients; a power of two; 0: REGION_SLOTS_DEFAULT */
    int64_t idle_ns;  /* how long an unused entry is kept when others need its place; 0: 10 min */
};

struct region;

/* NULL with err. A file that exists must have the same number of slots. */
struct region *region_open(const struct region_options *o, struct err *err);
/* Unmaps. Seats go with the last process that has this opening. */
void region_close(struct region *r);

/* A seat is the right to write, of one thread of control at a time. The process that opened the
 * region claims them and hands them to its children across fork; it releases a seat when it knows
 * that the holder is dead. Seats of a daemon that died as a whole are free by themselves.
 * -1: all are taken. Never waits. */
int region_seat_claim(struct region *r);
void region_seat_release(struct region *r, int seat);

#endif
