/* The protocol of cow.h and the order of its memory accesses.
 *
 * P  publish: the words of the cell are stored before the head names it.
 *    The compare-and-swap releases; the load of the head in `cow_read` acquires.
 * R  recycle: a reader that met a word of a later version must find the head changed.
 *    The words are stored with release and loaded with acquire. A seat reuses a cell only after it
 *    has seen a head that does not name it, and that head is younger than any that did: only the
 *    seat itself publishes its cells, and it sees its own doings in order. So the reader, having
 *    acquired such a word, loads a head at least that young, and begins again.
 * S  a seat changes hands: its new holder must not take a published cell for free. The death of the
 *    holder before reached us through the kernel (wait, or the lock on the seat), after its last
 *    store; our loads of the head come after that.
 * V  versions have 56 bits: at a million changes a second they last for two thousand years, so an
 *    equal head is the same version.
 *
 * There are no fences: the order hangs on the words, where tools can follow it. On x86-64 all of
 * these loads and stores are plain moves; on AArch64 they are LDAR and STLR. */
#include "io/shm/cow.h"
#include "io/shm/layout.h"

enum { CELL_BITS = 8, CELL_MASK = (1 << CELL_BITS) - 1, CELLS = 2 * SHM_SEATS };

_Static_assert(CELLS < CELL_MASK, "cells are numbered from 1");

static struct shm_cell *cell_at(const struct region *r, uint32_t slot, unsigned number)
{
    return &shm_desk(r, slot, (number - 1) / 2)->cell[(number - 1) % 2];
}

static uint64_t successor(uint64_t head, unsigned number)
{
    return ((head >> CELL_BITS) + 1) << CELL_BITS | number;
}

bool cow_read_any(const struct region *r, uint32_t slot, struct cow_copy *out)
{
    const struct shm_slot *s = &r->slots[slot];
    uint64_t copy[SHM_CELL_WORDS];
    uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire); /* P */
    for (;;) {
        unsigned number = (unsigned)(head & CELL_MASK);
        *out = (struct cow_copy){.head = head};
        if (number == 0 || number > CELLS)
            return number == 0;
        const struct shm_cell *c = cell_at(r, slot, number);
        for (int i = 0; i < SHM_CELL_WORDS; i++)
            copy[i] = atomic_load_explicit(&c->word[i], memory_order_acquire); /* R */
        uint64_t again = atomic_load_explicit(&s->head, memory_order_acquire);
        if (again == head)
            break;
        head = again;
    }
    out->id = copy[0];
    memcpy(&out->limiter, &copy[1], sizeof out->limiter);
    return true;
}

void cow_read(const struct region *r, uint32_t slot, uint64_t id, struct cow_copy *out)
{
    cow_read_any(r, slot, out);
    if (out->id != id)
        out->limiter = (struct limiter){.begun = false};
}

bool cow_publish(const struct region *r, uint32_t slot, unsigned seat, uint64_t id, uint64_t head,
                 const struct limiter *next)
{
    struct shm_slot *s = &r->slots[slot];
    uint64_t words[SHM_CELL_WORDS] = {id};
    memcpy(&words[1], next, sizeof *next);
    unsigned number = 2 * seat + 1;
    if ((head & CELL_MASK) == number)
        number++;
    struct shm_cell *c = cell_at(r, slot, number);
    for (int i = 0; i < SHM_CELL_WORDS; i++)
        atomic_store_explicit(&c->word[i], words[i], memory_order_release); /* R */
    return atomic_compare_exchange_strong_explicit(&s->head, &head, successor(head, number),
                                                   memory_order_release, /* P */
                                                   memory_order_relaxed);
}

void cow_reset(const struct region *r, uint32_t slot)
{
    struct shm_slot *s = &r->slots[slot];
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&s->head, &head, successor(head, 0),
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}
