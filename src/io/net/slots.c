/* Slots: a count and a queue by origin. An origin is known while a slot of it is held: nobody waits
 * where none is.
 *
 * A slot that comes back goes to the head of the queue at once, so that nobody who comes meanwhile
 * can be faster; the new holder hears of it at the end of the turn, never from within the call that
 * gave it back. All wait equally long, so one timer for the oldest of them is enough. */
#include "io/net/slots.h"

#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include <stdlib.h>

enum { BUCKETS = 256 };

struct slots_origin {
    struct list bucket;
    struct list waiting; /* by slot.queue, first come first */
    unsigned held;
    size_t key_bytes;
    char key[];
};

struct slots {
    struct loop *loop;
    struct hash_key key;
    unsigned per_origin, max_waiting;
    int64_t wait_ns;
    unsigned n_waiting, n_held;
    struct list arrivals;    /* by slot.arrival */
    struct list granted;     /* by slot.queue: to be told */
    bool telling;            /* tell() is deferred */
    struct loop_timer timer; /* for the first of arrivals */
    struct list buckets[BUCKETS];
};

static void on_timer(void *arg);

struct slots *slots_new(struct loop *l, struct hash_key key, unsigned per_origin, unsigned waiters,
                        int64_t wait_ns)
{
    struct slots *all = xcalloc(1, sizeof *all);
    all->loop = l;
    all->key = key;
    all->per_origin = per_origin;
    all->max_waiting = waiters;
    all->wait_ns = wait_ns;
    list_init(&all->arrivals);
    list_init(&all->granted);
    loop_timer_init(&all->timer, l, on_timer, all);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&all->buckets[i]);
    return all;
}

void slots_free(struct slots *all)
{
    if (all == NULL)
        return;
    ASSERT(all->n_held == 0 && all->n_waiting == 0);
    loop_timer_fini(&all->timer);
    loop_defer(all->loop, free, all); /* after tell() */
}

static struct list *bucket_of(struct slots *all, struct slice key)
{
    return &all->buckets[hash_bytes(all->key, key) % BUCKETS];
}

static struct slots_origin *find_or_make(struct slots *all, struct slice key)
{
    struct list *bucket = bucket_of(all, key);
    for (struct list *i = bucket->next; i != bucket; i = i->next) {
        struct slots_origin *o = list_entry(i, struct slots_origin, bucket);
        if (slice_eq(slice_of(o->key, o->key_bytes), key))
            return o;
    }
    struct slots_origin *o = xcalloc(1, sizeof *o + key.n);
    o->key_bytes = key.n;
    if (key.n > 0)
        memcpy(o->key, key.p, key.n);
    list_init(&o->waiting);
    list_push_back(bucket, &o->bucket);
    return o;
}

static struct slot *oldest(struct slots *all)
{
    return list_entry(all->arrivals.next, struct slot, arrival);
}

/* The timer fires at or before the moment at which the oldest has waited long enough. */
static void watch_oldest(struct slots *all)
{
    if (list_empty(&all->arrivals) || loop_timer_armed(&all->timer))
        return;
    int64_t left_ns = oldest(all)->until_ns - loop_now_ns(all->loop);
    loop_timer_arm(&all->timer, left_ns > 0 ? left_ns : 0);
}

static void stop_waiting(struct slot *s)
{
    list_remove(&s->queue);
    list_remove(&s->arrival);
    s->all->n_waiting--;
    s->state = SLOT_NONE;
}

static void on_timer(void *arg)
{
    struct slots *all = arg;
    while (!list_empty(&all->arrivals) && oldest(all)->until_ns <= loop_now_ns(all->loop)) {
        struct slot *s = oldest(all);
        stop_waiting(s);
        s->fn(s->arg, false);
    }
    watch_oldest(all);
}

enum slots_answer slots_ask(struct slots *all, struct slice key, struct slot *s,
                            void (*fn)(void *arg, bool granted), void *arg)
{
    ASSERT(s->state == SLOT_NONE);
    struct slots_origin *o = find_or_make(all, key);
    *s = (struct slot){.all = all, .origin = o, .fn = fn, .arg = arg};
    if (o->held < all->per_origin) {
        o->held++;
        all->n_held++;
        s->state = SLOT_HELD;
        return SLOTS_GRANTED;
    }
    if (all->n_waiting >= all->max_waiting)
        return SLOTS_FULL;
    s->state = SLOT_WAITING;
    s->until_ns = loop_now_ns(all->loop) + all->wait_ns;
    all->n_waiting++;
    list_push_back(&o->waiting, &s->queue);
    list_push_back(&all->arrivals, &s->arrival);
    watch_oldest(all);
    return SLOTS_WAIT;
}

static void tell(void *obj)
{
    struct slots *all = obj;
    all->telling = false;
    while (!list_empty(&all->granted)) {
        struct slot *s = list_entry(all->granted.next, struct slot, queue);
        list_remove(&s->queue);
        s->state = SLOT_HELD;
        s->fn(s->arg, true);
    }
}

static void grant(struct slot *s)
{
    struct slots *all = s->all;
    stop_waiting(s);
    s->state = SLOT_GRANTED;
    list_push_back(&all->granted, &s->queue);
    if (!all->telling)
        loop_defer(all->loop, tell, all);
    all->telling = true;
}

static void give_back(struct slots *all, struct slots_origin *o)
{
    if (!list_empty(&o->waiting)) {
        grant(list_entry(o->waiting.next, struct slot, queue));
        return;
    }
    all->n_held--;
    if (--o->held == 0) {
        list_remove(&o->bucket);
        free(o);
    }
}

void slots_leave(struct slot *s)
{
    struct slots *all = s->all;
    switch (s->state) {
    case SLOT_NONE:
        return;
    case SLOT_WAITING:
        stop_waiting(s);
        break;
    case SLOT_GRANTED:
        list_remove(&s->queue);
        s->state = SLOT_NONE;
        give_back(all, s->origin);
        break;
    case SLOT_HELD:
        s->state = SLOT_NONE;
        give_back(all, s->origin);
        break;
    }
}

void slots_hand_over(struct slot *from, struct slot *to)
{
    ASSERT(from->state == SLOT_HELD && to->state == SLOT_NONE);
    *to = (struct slot){.all = from->all, .origin = from->origin, .state = SLOT_HELD};
    from->state = SLOT_NONE;
}

unsigned slots_waiting(const struct slots *all)
{
    return all->n_waiting;
}

unsigned slots_held(const struct slots *all)
{
    return all->n_held;
}
