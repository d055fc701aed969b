/* Limiters by copy on write: 56 bytes that change as one.
 *
 * Each seat has two cells of its own for each slot. To change the limiter: copy the published cell,
 * compute, write into that own cell which is not published, and publish it with one
 * compare-and-swap of (version, cell). Whoever is killed, at whatever instruction, leaves a whole
 * version published; nobody waits for anybody. */
#ifndef RETRYD_IO_SHM_COW_H
#define RETRYD_IO_SHM_COW_H

#include "core/retry/limiter.h"
#include "io/shm/region.h"

struct cow_copy {
    uint64_t head; /* the version that it is */
    uint64_t id;   /* whose */
    struct limiter limiter;
};

/* The limiter in the slot, whoever's. False: the head names no cell that can be; then as if there
 * was none. */
bool cow_read_any(const struct region *r, uint32_t slot, struct cow_copy *out);
/* The limiter of id in the slot: what a client before left there is as none. */
void cow_read(const struct region *r, uint32_t slot, uint64_t id, struct cow_copy *out);
/* Replaces the version that was read. False: it is no longer the last. */
bool cow_publish(const struct region *r, uint32_t slot, unsigned seat, uint64_t id, uint64_t head,
                 const struct limiter *next);
/* Makes the limiter one that was never created; whose, does not matter. */
void cow_reset(const struct region *r, uint32_t slot);

#endif
