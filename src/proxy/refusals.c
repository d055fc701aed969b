/* A hash table of bounded size over a list in order of time, for what peers choose (J14). */
#include "proxy/refusals.h"
#include "core/base/fixtext.h"
#include "core/base/list.h"
#include "core/base/xalloc.h"
#include "proxy/peer.h"

#include <stdlib.h>

enum { N_BUCKETS = REFUSALS_MAX, KEY_MAX = 352 }; /* an address, a bar, a host */

struct refusal {
    struct list link;     /* oldest first */
    struct refusal *next; /* in its bucket */
    char *key;
    int64_t since_ns;
};

struct refusals {
    struct hash_key hash;
    int64_t memory_ns;
    struct list by_time;
    unsigned n;
    struct refusal *buckets[N_BUCKETS];
};

struct refusals *refusals_new(struct hash_key key, int64_t memory_ns)
{
    struct refusals *r = xcalloc(1, sizeof *r);
    r->hash = key;
    r->memory_ns = memory_ns;
    list_init(&r->by_time);
    return r;
}

static struct slice key_of(struct fixtext *key, const char *peer, const char *host)
{
    fixtext_put(key, peer_without_port(peer));
    fixtext_put(key, SLICE("|"));
    fixtext_put(key, slice_str(host));
    return fixtext_slice(key);
}

/* Where the entry is linked from, or would be. */
static struct refusal *const *slot(const struct refusals *r, struct slice key)
{
    struct refusal *const *at = &r->buckets[hash_bytes(r->hash, key) % N_BUCKETS];
    while (*at != NULL && !slice_eq(slice_str((*at)->key), key))
        at = &(*at)->next;
    return at;
}

static void free_one(struct refusal *one)
{
    free(one->key);
    free(one);
}

static void forget(struct refusals *r, struct refusal *old)
{
    struct refusal **at = (struct refusal **)slot(r, slice_str(old->key));
    *at = old->next;
    list_remove(&old->link);
    r->n--;
    free_one(old);
}

void refusals_free(struct refusals *r)
{
    if (r == NULL)
        return;
    for (struct list *at = r->by_time.next, *next; at != &r->by_time; at = next) {
        next = at->next;
        free_one(list_entry(at, struct refusal, link));
    }
    free(r);
}

void refusals_add(struct refusals *r, const char *peer, const char *host, int64_t now_ns)
{
    char text[KEY_MAX];
    struct fixtext buf = fixtext_in(text, sizeof text);
    struct slice key = key_of(&buf, peer, host);
    struct refusal *one = *slot(r, key);
    if (one == NULL) {
        if (r->n == REFUSALS_MAX)
            forget(r, list_entry(r->by_time.next, struct refusal, link));
        one = xcalloc(1, sizeof *one);
        one->key = xstrdup(text);
        list_init(&one->link);
        *(struct refusal **)slot(r, key) = one;
        r->n++;
    }
    one->since_ns = now_ns;
    list_remove(&one->link);
    list_push_back(&r->by_time, &one->link);
}

bool refusals_has(const struct refusals *r, const char *peer, const char *host, int64_t now_ns)
{
    char text[KEY_MAX];
    struct fixtext buf = fixtext_in(text, sizeof text);
    const struct refusal *one = *slot(r, key_of(&buf, peer, host));
    return one != NULL && now_ns - one->since_ns < r->memory_ns;
}
