/* Bounded map from name to answer (security requirement I6), keyed hash (J14), in LRU order. */
#include "io/net/dnscache.h"

#include "core/base/list.h"
#include "core/base/xalloc.h"
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct entry {
    struct list bucket;
    struct list use; /* most recent last */
    struct dns_result *result;
    int64_t expires_ns;
    char name[];
};

struct dnscache {
    struct hash_key key;
    unsigned capacity, n;
    struct list use;
    struct list buckets[BUCKETS];
};

struct dns_result *dns_result_new(void)
{
    struct dns_result *r = xcalloc(1, sizeof *r);
    r->refs = 1;
    return r;
}

struct dns_result *dns_result_ref(struct dns_result *r)
{
    r->refs++;
    return r;
}

void dns_result_unref(struct dns_result *r)
{
    if (--r->refs == 0)
        free(r);
}

struct dnscache *dnscache_new(struct hash_key key, unsigned capacity)
{
    struct dnscache *c = xcalloc(1, sizeof *c);
    c->key = key;
    c->capacity = capacity;
    list_init(&c->use);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&c->buckets[i]);
    return c;
}

static void forget(struct dnscache *c, struct entry *e)
{
    list_remove(&e->bucket);
    list_remove(&e->use);
    dns_result_unref(e->result);
    free(e);
    c->n--;
}

void dnscache_free(struct dnscache *c)
{
    struct list *next;
    for (struct list *i = c->use.next; i != &c->use; i = next) {
        struct entry *e = list_entry(i, struct entry, use);
        next = i->next;
        dns_result_unref(e->result);
        free(e);
    }
    free(c);
}

static struct list *bucket_of(struct dnscache *c, const char *name)
{
    return &c->buckets[hash_bytes(c->key, slice_str(name)) % BUCKETS];
}

static struct entry *find(struct dnscache *c, const char *name)
{
    struct list *bucket = bucket_of(c, name);
    for (struct list *i = bucket->next; i != bucket; i = i->next) {
        struct entry *e = list_entry(i, struct entry, bucket);
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

struct dns_result *dnscache_get(struct dnscache *c, const char *name, int64_t now_ns)
{
    struct entry *e = find(c, name);
    if (!e)
        return NULL;
    if (now_ns >= e->expires_ns) {
        forget(c, e);
        return NULL;
    }
    list_remove(&e->use);
    list_push_back(&c->use, &e->use);
    return e->result;
}

void dnscache_put(struct dnscache *c, const char *name, struct dns_result *r, int64_t expires_ns)
{
    struct entry *old = find(c, name);
    if (old)
        forget(c, old);
    else if (c->n == c->capacity)
        forget(c, list_entry(c->use.next, struct entry, use));
    size_t bytes = strlen(name) + 1;
    struct entry *e = xcalloc(1, sizeof *e + bytes);
    memcpy(e->name, name, bytes);
    e->result = dns_result_ref(r);
    e->expires_ns = expires_ns;
    list_push_back(bucket_of(c, name), &e->bucket);
    list_push_back(&c->use, &e->use);
    c->n++;
}
