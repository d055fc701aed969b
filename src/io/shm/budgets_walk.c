/* Looking at the table, and resetting. Counters are sums over the desks, each of which its seat
 * alone writes; what is read is no instant of the whole, but no word of it is torn. */
#include "core/base/num.h"
#include "core/retry/quota.h"
#include "io/shm/budgets.h"
#include "io/shm/cow.h"
#include "io/shm/label.h"

_Static_assert((int)BUDGETS_LABEL_MAX == (int)SHM_LABEL_BYTES, "the room for a label");

static void add_desk(const struct region *r, uint32_t slot, unsigned seat, uint64_t id,
                     struct budgets_entry *e)
{
    const struct shm_desk *d = shm_desk(r, slot, seat);
    if (atomic_load_explicit(&d->id, memory_order_acquire) != id)
        return;
    e->throttles += atomic_load_explicit(&d->throttles, memory_order_relaxed);
    e->granted += atomic_load_explicit(&d->granted, memory_order_relaxed);
    e->refused += atomic_load_explicit(&d->refused, memory_order_relaxed);
    uint64_t waiting = atomic_load_explicit(&d->waiting, memory_order_relaxed);
    uint32_t generation = atomic_load_explicit(&r->seats[seat].generation, memory_order_relaxed);
    if ((uint32_t)waiting != 0 && waiting >> 32 == generation && region_seat_live(r, seat))
        e->waiting += (uint32_t)waiting;
}

/* How many seats, from the first on, may have written anything. */
static unsigned seats_used(const struct region *r)
{
    unsigned n = SHM_SEATS;
    while (n > 0 && atomic_load_explicit(&r->seats[n - 1].generation, memory_order_relaxed) == 0)
        n--;
    return n;
}

static void read_limiter(const struct region *r, uint32_t slot, uint64_t id, int64_t now_ns,
                         struct budgets_entry *e)
{
    struct cow_copy copy;
    struct limiter *l = &copy.limiter;
    cow_read(r, slot, id, &copy);
    if (!l->begun)
        return;
    if (l->refilled && now_ns > l->refilled_ns)
        limiter_take(l, 0.0, &limiter_floor, now_ns);
    e->limited = l->enabled;
    e->rate_limit = l->fill_rate;
    e->rate_measured = l->tx;
    e->send_tokens = l->cap;
    e->send_capacity = limiter_max_cap(l, &limiter_floor);
}

/* False: nobody's. */
static bool read_entry(const struct region *r, uint32_t slot, unsigned seats, int64_t now_ns,
                       struct budgets_entry *e)
{
    const struct shm_slot *s = &r->slots[slot];
    uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);
    uint64_t id = shm_id(word);
    *e = (struct budgets_entry){
        .fingerprint = id,
        .capacity = atomic_load_explicit(&s->capacity, memory_order_relaxed),
        .changed_ns = atomic_load_explicit(&s->changed_ns, memory_order_relaxed),
        .used_ns = atomic_load_explicit(&s->used_ns, memory_order_relaxed),
    };
    if (slot < r->n_slots ? word == 0 : e->used_ns == 0)
        return false;
    e->tokens = quota_tokens(shm_debt(word), e->capacity);
    label_read(r, slot, id, e->label);
    read_limiter(r, slot, id, now_ns, e);
    for (unsigned i = 0; i < seats; i++)
        add_desk(r, slot, i, id, e);
    return true;
}

bool budgets_walk(const struct region *r, int64_t now_ns,
                  bool (*fn)(void *arg, const struct budgets_entry *e), void *arg)
{
    struct budgets_entry e;
    unsigned seats = seats_used(r);
    for (uint32_t i = 0; i < r->n_slots + SHM_OVERFLOW; i++)
        if (read_entry(r, i, seats, now_ns, &e) && !fn(arg, &e))
            return false;
    return true;
}

/* Of the same owner still: another who came meanwhile keeps what they owe. */
static void reset(const struct region *r, uint32_t slot, uint64_t word)
{
    struct shm_slot *s = &r->slots[slot];
    uint64_t id = shm_id(word);
    while (shm_id(word) == id &&
           !atomic_compare_exchange_weak_explicit(&s->word, &word, shm_word(id, 0),
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    if (shm_id(word) == id)
        cow_reset(r, slot);
}

unsigned budgets_reset(const struct region *r, struct slice which)
{
    char label[SHM_LABEL_BYTES + 1];
    uint64_t fingerprint = 0;
    unsigned n = 0;
    if (which.n == 0)
        return 0;
    num_hex_u64(which, 16, UINT64_MAX, &fingerprint);
    for (uint32_t i = 0; i < r->n_slots; i++) {
        uint64_t word = atomic_load_explicit(&r->slots[i].word, memory_order_acquire);
        if (word == 0)
            continue;
        label_read(r, i, shm_id(word), label);
        if (shm_id(word) != fingerprint && !slice_eq(which, slice_str(label)))
            continue;
        reset(r, i, word);
        n++;
    }
    return n;
}

void budgets_totals(const struct region *r, struct budgets_totals *out)
{
    *out = (struct budgets_totals){.slots = r->n_slots};
    for (uint32_t i = 0; i < r->n_slots; i++)
        out->entries += atomic_load_explicit(&r->slots[i].word, memory_order_relaxed) != 0;
    for (unsigned i = 0; i < SHM_SEATS; i++) {
        const struct shm_seat *s = &r->seats[i];
        out->seats += region_seat_live(r, i);
        out->overflowed += atomic_load_explicit(&s->overflowed, memory_order_relaxed);
        out->evicted += atomic_load_explicit(&s->evicted, memory_order_relaxed);
    }
}
