/* Idle connections. Two views of the same set: per origin, newest last (the warmest is handed out),
 * and by age over all (the oldest goes first when there are too many).
 *
 * The pool owns an idle connection and keeps reading from it: any byte, end or error there takes it
 * out at once (security requirement D3), so an unasked answer can never meet the next request.
 * Between two turns of the loop the socket may know more than the loop, so a connection is asked
 * once more when it is taken. */
#include "io/net/pool.h"

#include "core/base/list.h"
#include "core/base/xalloc.h"
#include <stdlib.h>

struct origin {
    struct list bucket;
    struct list idle; /* by struct idle.here, newest last */
    unsigned n;
    unsigned stale; /* in a row, since one of the idle ones served */
    size_t key_bytes;
    char key[];
};

struct idle {
    struct list here; /* in its origin */
    struct list age;  /* in the pool, newest last */
    struct pool *pool;
    struct origin *origin;
    struct conn *conn;
};

struct pool {
    struct loop *loop;
    struct hash_key key;
    unsigned per_origin, total;
    int64_t idle_ns;
    struct list age;
    unsigned n;
    size_t n_buckets; /* a power of two: no more origins than connections */
    struct list *buckets;
};

struct pool *pool_new(struct loop *l, struct hash_key key, unsigned per_origin, unsigned total,
                      int64_t idle_ns)
{
    struct pool *p = xcalloc(1, sizeof *p);
    *p = (struct pool){.loop = l,
                       .key = key,
                       .per_origin = per_origin,
                       .total = total,
                       .idle_ns = idle_ns,
                       .n_buckets = 1};
    list_init(&p->age);
    while (p->n_buckets < total)
        p->n_buckets *= 2;
    p->buckets = xcalloc(p->n_buckets, sizeof *p->buckets);
    for (size_t i = 0; i < p->n_buckets; i++)
        list_init(&p->buckets[i]);
    return p;
}

static struct list *bucket_of(struct pool *p, struct slice key)
{
    return &p->buckets[hash_bytes(p->key, key) & (p->n_buckets - 1)];
}

static struct origin *find(struct pool *p, struct slice key)
{
    struct list *bucket = bucket_of(p, key);
    for (struct list *i = bucket->next; i != bucket; i = i->next) {
        struct origin *o = list_entry(i, struct origin, bucket);
        if (slice_eq(slice_of(o->key, o->key_bytes), key))
            return o;
    }
    return NULL;
}

static struct origin *find_or_make(struct pool *p, struct slice key)
{
    struct origin *o = find(p, key);
    if (o)
        return o;
    o = xcalloc(1, sizeof *o + key.n);
    o->key_bytes = key.n;
    memcpy(o->key, key.p, key.n);
    list_init(&o->idle);
    list_push_back(bucket_of(p, key), &o->bucket);
    return o;
}

/* Takes the entry out of both views; an origin without connections is forgotten. */
static struct conn *extract(struct idle *i)
{
    struct conn *c = i->conn;
    struct origin *o = i->origin;
    list_remove(&i->here);
    list_remove(&i->age);
    i->pool->n--;
    if (--o->n == 0) {
        list_remove(&o->bucket);
        loop_defer(i->pool->loop, free, o);
    }
    loop_defer(i->pool->loop, free, i);
    return c;
}

static void drop(struct idle *i)
{
    conn_close(extract(i), false);
}

static struct idle *oldest(struct list *head)
{
    return list_entry(head->next, struct idle, age);
}

void pool_shed(struct pool *p)
{
    while (!list_empty(&p->age))
        drop(oldest(&p->age));
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pool_shed(p);
    free(p->buckets);
    free(p);
}

static void on_idle_event(struct conn *c, enum conn_event ev, void *arg)
{
    (void)c;
    if (ev != CONN_DRAINED)
        drop(arg);
}

struct conn *pool_take(struct pool *p, struct slice key)
{
    for (;;) {
        struct origin *o = find(p, key);
        if (!o)
            return NULL;
        struct conn *c = extract(list_entry(o->idle.prev, struct idle, here));
        if (conn_quiet(c)) {
            conn_deadline(c, 0);
            return c;
        }
        conn_close(c, false);
    }
}

void pool_put(struct pool *p, struct slice key, struct conn *c, bool was_idle)
{
    if (p->per_origin == 0 || p->total == 0 || !conn_quiet(c)) {
        conn_close(c, false);
        return;
    }
    struct origin *o = find_or_make(p, key);
    struct idle *i = xcalloc(1, sizeof *i);
    *i = (struct idle){.pool = p, .origin = o, .conn = c};
    list_push_back(&o->idle, &i->here);
    list_push_back(&p->age, &i->age);
    o->n++;
    p->n++;
    if (was_idle)
        o->stale = 0;
    conn_set_owner(c, on_idle_event, i);
    conn_deadline(c, loop_now_ns(p->loop) + p->idle_ns);
    conn_resume_read(c);
    if (o->n > p->per_origin)
        drop(list_entry(o->idle.next, struct idle, here));
    else if (p->n > p->total)
        drop(oldest(&p->age));
}

void pool_stale(struct pool *p, struct slice key)
{
    enum { DISTRUST_AFTER = 2 };
    struct origin *o = find(p, key);
    if (o == NULL || ++o->stale < DISTRUST_AFTER)
        return;
    for (; o; o = find(p, key))
        drop(list_entry(o->idle.next, struct idle, here));
}

unsigned pool_idle(const struct pool *p)
{
    return p->n;
}
