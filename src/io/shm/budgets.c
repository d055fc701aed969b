/* The table: keys to slots, and the budget port on a slot.
 *
 * A slot's word is whose it is and what they owe, in one: claiming a slot, spending and refunding
 * are one compare-and-swap of the same word, so a spend can never land on the account of another
 * key, and an entry is only ever taken in the state that was found idle. The word alone is the
 * account, nothing else is published through it; hence relaxed order, but for one thing: a claimer
 * writes used_ns before the word, and who judges idleness reads it after (release, acquire).
 *
 * The limiter belongs to the slot's owner by the id in its cell (cow.h). A seat that was overtaken,
 * its slot gone to another key, reads the head first and the word second; it sees the word at least
 * as new as the publisher of that head saw it, so it either finds itself evicted or may replace
 * what it read, and its compare-and-swap fails if the new owner published meanwhile.
 *
 * Free slots are claimed in the order of probing and never become free again, only change hands; so
 * a key is never behind a free slot, and two who look for the same new key meet at the same word.
 * Where all places of a key are taken, two who evict at once may pick two victims for one key. Both
 * then use the one that comes first; a request that was quicker keeps the other until its end. */
#include "io/shm/budgets.h"
#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "core/retry/quota.h"
#include "io/shm/cow.h"
#include "io/shm/label.h"
#include "io/shm/layout.h"

#include <stdlib.h>
#include <unistd.h>

#define USED_GRAIN_NS NS_PER_S
/* A limiter that never held back has measured a rate, which is stale after this. */
#define MEASURE_STALE_NS (10 * NS_PER_S)

enum { FIND_TRIES = 8 };

/* A budget in use: what one request holds. */
struct handle {
    struct budget base; /* first: a budget is its handle */
    struct budgets *t;
    uint64_t hash;
    uint64_t id; /* 0: of an overflow slot */
    uint32_t slot;
    struct handle *next; /* among the unused */
};

struct budgets {
    struct region *region;
    unsigned seat;
    uint32_t generation;
    int64_t now_ns; /* the latest that anyone told */
    struct handle *unused;
};

static struct handle *self(struct budget *b)
{
    return (struct handle *)b;
}

static struct shm_slot *slot_of(const struct handle *h)
{
    return &h->t->region->slots[h->slot];
}

static uint64_t load_word(const struct shm_slot *s)
{
    return atomic_load_explicit(&s->word, memory_order_acquire);
}

/* Counters of a seat: it alone writes them. */
static void bump(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void tell_now(struct budgets *t, int64_t now_ns)
{
    if (now_ns > t->now_ns)
        t->now_ns = now_ns;
}

static void touch(const struct budgets *t, struct shm_slot *s)
{
    int64_t used_ns = atomic_load_explicit(&s->used_ns, memory_order_relaxed);
    if (t->now_ns - used_ns >= USED_GRAIN_NS)
        atomic_store_explicit(&s->used_ns, t->now_ns, memory_order_relaxed);
}

static void changed(const struct handle *h)
{
    atomic_store_explicit(&slot_of(h)->changed_ns, h->t->now_ns, memory_order_relaxed);
}

/* The seat's desk at the slot, with the counters of this key. */
static struct shm_desk *desk_of(const struct handle *h)
{
    struct shm_desk *d = shm_desk(h->t->region, h->slot, h->t->seat);
    if (atomic_load_explicit(&d->id, memory_order_relaxed) == h->id)
        return d;
    atomic_store_explicit(&d->throttles, 0, memory_order_relaxed);
    atomic_store_explicit(&d->granted, 0, memory_order_relaxed);
    atomic_store_explicit(&d->refused, 0, memory_order_relaxed);
    atomic_store_explicit(&d->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&d->head_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&d->id, h->id, memory_order_release);
    return d;
}

/* --- from key to slot --- */

/* Whether the owner of the word would lose nothing that matters. */
static bool is_idle(const struct budgets *t, uint32_t slot, uint64_t word, int64_t used_ns)
{
    struct cow_copy copy;
    int64_t unused_ns = t->now_ns - used_ns;
    if (unused_ns >= t->region->idle_ns)
        return true;
    if (shm_debt(word) != 0)
        return false;
    cow_read(t->region, slot, shm_id(word), &copy);
    return !copy.limiter.begun || (!copy.limiter.enabled && unused_ns >= MEASURE_STALE_NS);
}

/* used_ns goes first, lest the slot looks long unused to others as soon as it is ours. */
static bool claim(const struct budgets *t, uint32_t slot, uint64_t word, uint64_t id)
{
    struct shm_slot *s = &t->region->slots[slot];
    atomic_store_explicit(&s->used_ns, t->now_ns, memory_order_relaxed);
    return atomic_compare_exchange_strong_explicit(&s->word, &word, shm_word(id, 0),
                                                   memory_order_release, memory_order_relaxed);
}

struct probe {
    bool found, free, idle; /* free, idle: slot has that word */
    uint32_t slot;
    uint64_t word;
    int64_t used_ns;
};

/* The slot of the id; else the first free one; else the one among the idle that was so longest. */
static struct probe probe(const struct budgets *t, uint64_t hash, uint64_t id)
{
    struct probe p = {.found = false};
    for (uint32_t i = 0; i < SHM_PROBE; i++) {
        uint32_t slot = (uint32_t)(hash + i) & (t->region->n_slots - 1);
        const struct shm_slot *s = &t->region->slots[slot];
        uint64_t word = load_word(s);
        if (shm_id(word) == id)
            return (struct probe){.found = true, .slot = slot};
        if (word == 0)
            return (struct probe){.free = true, .slot = slot};
        int64_t used_ns = atomic_load_explicit(&s->used_ns, memory_order_relaxed);
        if ((!p.idle || used_ns < p.used_ns) && is_idle(t, slot, word, used_ns))
            p = (struct probe){.idle = true, .slot = slot, .word = word, .used_ns = used_ns};
    }
    return p;
}

/* Points the handle at the slot of its key, which is made if need be. */
static void find(struct handle *h)
{
    struct budgets *t = h->t;
    struct shm_seat *seat = &t->region->seats[t->seat];
    uint64_t id = h->hash >> SHM_DEBT_BITS;
    h->id = id != 0 ? id : 1;
    for (int i = 0; i < FIND_TRIES; i++) {
        struct probe p = probe(t, h->hash, h->id);
        h->slot = p.slot;
        if (p.found)
            return;
        if (!p.free && !p.idle)
            break;
        if (!claim(t, p.slot, p.word, h->id))
            continue; /* somebody was faster, perhaps with the same key */
        if (p.free)
            return;
        bump(&seat->evicted); /* and look again: the same may have happened in an earlier place */
    }
    bump(&seat->overflowed);
    h->id = 0;
    h->slot = t->region->n_slots + (uint32_t)(h->hash >> 32) % SHM_OVERFLOW;
}

/* Its word, once it is known to be ours. */
static uint64_t own_word(struct handle *h)
{
    uint64_t word = load_word(slot_of(h));
    while (shm_id(word) != h->id) {
        find(h);
        word = load_word(slot_of(h));
    }
    return word;
}

/* --- the port --- */

static uint32_t clamp(unsigned tokens)
{
    return tokens < SHM_DEBT_MAX ? tokens : SHM_DEBT_MAX;
}

static void note_capacity(struct shm_slot *s, uint32_t capacity)
{
    if (atomic_load_explicit(&s->capacity, memory_order_relaxed) != capacity)
        atomic_store_explicit(&s->capacity, capacity, memory_order_relaxed);
}

static bool swap_debt(const struct handle *h, uint64_t word, uint32_t debt)
{
    return atomic_compare_exchange_strong_explicit(&slot_of(h)->word, &word, shm_word(h->id, debt),
                                                   memory_order_relaxed, memory_order_relaxed);
}

static bool spend(struct budget *b, unsigned cost, unsigned capacity)
{
    struct handle *h = self(b);
    uint64_t word;
    uint32_t next;
    bool granted;
    do {
        word = own_word(h);
        granted = quota_spend(shm_debt(word), cost, clamp(capacity), &next);
    } while (granted && !swap_debt(h, word, next));
    touch(h->t, slot_of(h));
    note_capacity(slot_of(h), capacity);
    struct shm_desk *d = desk_of(h);
    bump(granted ? &d->granted : &d->refused);
    if (granted)
        changed(h);
    return granted;
}

/* A full quota takes no write; nor does one that lost its slot, which is as full. */
static void refund(struct budget *b, unsigned amount)
{
    struct handle *h = self(b);
    for (;;) {
        uint64_t word = load_word(slot_of(h));
        if (shm_id(word) != h->id || shm_debt(word) == 0)
            return;
        if (swap_debt(h, word, quota_refund(shm_debt(word), amount))) {
            touch(h->t, slot_of(h));
            changed(h);
            return;
        }
    }
}

static unsigned tokens(const struct budget *b, unsigned capacity)
{
    const struct handle *h = (const struct handle *)b;
    uint64_t word = load_word(slot_of(h));
    return quota_tokens(shm_id(word) == h->id ? shm_debt(word) : 0, clamp(capacity));
}

static int64_t step(struct handle *h, enum limiter_event event, int64_t now_ns)
{
    struct cow_copy copy;
    struct limiter next;
    int64_t wait_ns;
    tell_now(h->t, now_ns);
    for (;;) {
        cow_read(h->t->region, h->slot, h->id, &copy);
        if (shm_id(load_word(slot_of(h))) != h->id) {
            find(h);
            continue;
        }
        if (!limiter_step(&copy.limiter, event, now_ns, &next, &wait_ns) ||
            cow_publish(h->t->region, h->slot, h->t->seat, h->id, copy.head, &next))
            break;
    }
    touch(h->t, slot_of(h));
    return wait_ns;
}

static int64_t admit(struct budget *b, int64_t now_ns)
{
    return step(self(b), LIMITER_ACQUIRE, now_ns);
}

static void observe(struct budget *b, bool throttled, int64_t now_ns)
{
    struct handle *h = self(b);
    step(h, throttled ? LIMITER_THROTTLED : LIMITER_OK, now_ns);
    if (!throttled)
        return;
    changed(h);
    bump(&desk_of(h)->throttles);
}

static const struct budget_ops ops = {spend, refund, tokens, admit, observe};

/* --- handles --- */

struct budgets *budgets_new(struct region *r, int seat)
{
    ASSERT(seat >= 0 && seat < SHM_SEATS);
    struct budgets *t = xcalloc(1, sizeof *t);
    struct shm_seat *s = &r->seats[seat];
    t->region = r;
    t->seat = (unsigned)seat;
    t->generation = atomic_load_explicit(&s->generation, memory_order_relaxed);
    atomic_store_explicit(&s->pid, (uint32_t)getpid(), memory_order_relaxed);
    return t;
}

void budgets_free(struct budgets *t)
{
    while (t->unused != NULL) {
        struct handle *h = t->unused;
        t->unused = h->next;
        free(h);
    }
    free(t);
}

struct budget *budgets_acquire(struct budgets *t, struct slice key, struct slice label,
                               int64_t now_ns)
{
    struct handle *h = t->unused;
    if (h != NULL)
        t->unused = h->next;
    else
        h = xcalloc(1, sizeof *h);
    tell_now(t, now_ns);
    *h = (struct handle){.base = {&ops}, .t = t, .hash = hash_bytes(t->region->header->key, key)};
    find(h);
    touch(t, slot_of(h));
    label_write(t->region, h->slot, h->id, label);
    return &h->base;
}

void budgets_release(struct budget *b)
{
    struct handle *h = self(b);
    h->next = h->t->unused;
    h->t->unused = h;
}

uint64_t budgets_id(const struct budget *b)
{
    return ((const struct handle *)b)->hash;
}

void budgets_wait(struct budget *b, int change)
{
    struct handle *h = self(b);
    struct shm_desk *d = desk_of(h);
    uint64_t old = atomic_load_explicit(&d->waiting, memory_order_relaxed);
    uint32_t count = old >> 32 == h->t->generation ? (uint32_t)old : 0;
    if (change > 0)
        count++;
    else if (count > 0)
        count--;
    atomic_store_explicit(&d->waiting, (uint64_t)h->t->generation << 32 | count,
                          memory_order_relaxed);
}

/* --- whose turn it is among the seats --- */

void budgets_show_head(struct budget *b, int64_t since_ns)
{
    const struct handle *h = self(b);
    if (h->id == 0)
        return;
    struct shm_desk *d = desk_of(h);
    atomic_store_explicit(&d->head_asked_ns, h->t->now_ns, memory_order_relaxed);
    atomic_store_explicit(&d->head_since_ns, since_ns, memory_order_relaxed);
}

/* A desk that its seat's holder before left behind is told by the generation. The words of a desk
 * need no order among each other: one that is taken for older or younger than it is costs a moment
 * of patience, or a place in the order. */
static bool is_before(const struct handle *h, unsigned seat, uint32_t generation, int64_t since_ns,
                      int64_t seen_ns)
{
    const struct shm_desk *d = shm_desk(h->t->region, h->slot, seat);
    uint64_t opener = atomic_load_explicit(&h->t->region->seats[seat].opener, memory_order_relaxed);
    if (opener == 0 || atomic_load_explicit(&d->id, memory_order_relaxed) != h->id)
        return false;
    uint64_t waiting = atomic_load_explicit(&d->waiting, memory_order_relaxed);
    int64_t theirs_ns = atomic_load_explicit(&d->head_since_ns, memory_order_relaxed);
    return (uint32_t)waiting != 0 && waiting >> 32 == generation && theirs_ns != 0 &&
           theirs_ns < since_ns &&
           atomic_load_explicit(&d->head_asked_ns, memory_order_relaxed) > seen_ns;
}

/* Seats are claimed from the first on, so none beyond one that was never claimed was. */
bool budgets_is_behind(const struct budget *b, int64_t since_ns, int64_t seen_ns)
{
    const struct handle *h = (const struct handle *)b;
    for (unsigned i = 0; h->id != 0 && i < SHM_SEATS; i++) {
        const struct shm_seat *s = &h->t->region->seats[i];
        uint32_t generation = atomic_load_explicit(&s->generation, memory_order_relaxed);
        if (generation == 0)
            break;
        if (i != h->t->seat && is_before(h, i, generation, since_ns, seen_ns))
            return true;
    }
    return false;
}

int64_t budgets_token_wait(struct budget *b, int64_t now_ns)
{
    struct handle *h = self(b);
    struct cow_copy copy;
    struct limiter next;
    int64_t wait_ns;
    tell_now(h->t, now_ns);
    cow_read(h->t->region, h->slot, h->id, &copy);
    limiter_step(&copy.limiter, LIMITER_ACQUIRE, now_ns, &next, &wait_ns);
    return wait_ns;
}
