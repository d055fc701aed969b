/* The bytes of the shared region, for this room alone (doc/shared-memory.md draws them).
 *
 *   header    one page, written before anyone else can see the region, then constant
 *   seats     one line for each thread of control that may write
 *   slots     one for each upstream client, then the overflow slots
 *   desks     for each slot, one for each seat: what only that seat writes
 *
 * No pointers, no locks. Everything that changes is an atomic word; all-zero is a valid state of
 * each. What a word says about an upstream client carries that client's id, so that a slot changes
 * hands with one compare-and-swap and whatever the one before left behind is recognised as foreign,
 * whenever it is looked at and whoever was killed in between. */
#ifndef RETRYD_IO_SHM_LAYOUT_H
#define RETRYD_IO_SHM_LAYOUT_H

#include "core/base/hash.h"
#include "core/retry/limiter.h"
#include "io/shm/region.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    SHM_HEADER_BYTES = 4096,
    SHM_SEATS = REGION_SEATS,
    SHM_OVERFLOW = 8, /* slots for the keys that find none */
    SHM_PROBE = 16,   /* slots in which a key may be */
    SHM_LABEL_BYTES = 48,
    SHM_BOOT_ID_BYTES = 40,
    SHM_CELL_WORDS = 8,
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock in the region would outlive its holder");

struct shm_header {
    char magic[8];
    uint64_t layout; /* of this file, as region.c computes it */
    uint64_t bytes;
    uint32_t slots;
    uint32_t seats;
    struct hash_key key;
    char boot_id[SHM_BOOT_ID_BYTES]; /* monotonic times compare within one boot only */
    uint64_t check;                  /* of all before */
};

struct shm_seat {
    _Alignas(64) _Atomic uint64_t opener; /* which opening of the region claimed it; 0: none */
    _Atomic uint32_t generation;          /* how often it was claimed */
    _Atomic uint32_t pid;                 /* for people */
    _Atomic uint64_t overflowed, evicted; /* of all its holders */
};

struct shm_slot {
    /* Whose slot and what they owe: id << SHM_DEBT_BITS | debt. 0: free, as no id is 0. */
    _Alignas(128) _Atomic uint64_t word;
    /* The limiter: version << 8 | number of its cell + 1. Cell 0: not created. */
    _Atomic uint64_t head;
    _Atomic int64_t used_ns;    /* within a second */
    _Atomic int64_t changed_ns; /* quota or rate, for people */
    _Atomic uint32_t capacity;  /* of the quota, as seen last, for people */

    /* For people: valid if the seal fits the bytes and the id. */
    _Alignas(64) _Atomic uint64_t label_id;
    _Atomic uint64_t label_seal;
    _Atomic uint64_t label[SHM_LABEL_BYTES / 8];
};

/* One version of a limiter: the id of its owner, then struct limiter. */
struct shm_cell {
    _Alignas(64) _Atomic uint64_t word[SHM_CELL_WORDS];
};

_Static_assert(sizeof(struct limiter) == (SHM_CELL_WORDS - 1) * sizeof(uint64_t),
               "a cell holds an id and a limiter");

struct shm_desk {
    struct shm_cell cell[2];
    _Alignas(64) _Atomic uint64_t id; /* whose the counters are */
    _Atomic uint64_t throttles, granted, refused;
    _Atomic uint64_t waiting; /* generation of the seat << 32 | count */
    /* Of the first who waits: since when, 0: no order is kept; when it asked last. */
    _Atomic int64_t head_since_ns, head_asked_ns;
};

_Static_assert(sizeof(struct shm_header) <= SHM_HEADER_BYTES, "");
_Static_assert(sizeof(struct shm_seat) == 64 && sizeof(struct shm_slot) == 128 &&
                   sizeof(struct shm_desk) == 192,
               "whole cache lines");

#define SHM_DEBT_BITS 20
#define SHM_DEBT_MAX ((UINT32_C(1) << SHM_DEBT_BITS) - 1)

static inline uint64_t shm_word(uint64_t id, uint32_t debt)
{
    return id << SHM_DEBT_BITS | debt;
}

static inline uint64_t shm_id(uint64_t word)
{
    return word >> SHM_DEBT_BITS;
}

static inline uint32_t shm_debt(uint64_t word)
{
    return (uint32_t)(word & SHM_DEBT_MAX);
}

/* The mapping as one process sees it. */
struct region {
    struct shm_header *header;
    struct shm_seat *seats;
    struct shm_slot *slots; /* n_slots of them for keys, then SHM_OVERFLOW */
    struct shm_desk *desks;
    unsigned n_slots; /* a power of two */
    size_t bytes;
    int fd;
    bool is_file;     /* others may open it too */
    uint64_t opener;  /* tells this opening from all others */
    int opener_pid;   /* who may claim and release seats */
    uint64_t claimed; /* set of seats */
    int64_t idle_ns;
};

static inline struct shm_desk *shm_desk(const struct region *r, uint32_t slot, unsigned seat)
{
    return &r->desks[(size_t)slot * SHM_SEATS + seat];
}

uint64_t shm_header_check(const struct shm_header *h);

/* Whether the seat's holder, or the daemon that watches over it, is alive. May ask the kernel. */
bool region_seat_live(const struct region *r, unsigned seat);

#endif
