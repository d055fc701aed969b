/* Names in a hash table and in order of use; the least recently used gives way (security
 * requirements F4, F5).
 *
 * Invariants: an entry is looked up by its full name, never by a hash alone; n <= capacity; a leaf
 * with less than an hour left is not handed out. SSLs hold their own reference to a leaf, so an
 * entry can go at any time. */
#include "io/tls/leafcache.h"

#include "core/base/attr.h"
#include "core/base/hash.h"
#include "core/base/list.h"
#include "core/base/xalloc.h"
#include "io/tls/mint.h"
#include "io/tls/ticketkeys.h"
#include "io/tls/tlserr.h"
#include "io/tls/tlsinit.h"
#include "io/tls/tlsserver.h"
#include <openssl/rand.h>
#include <stdlib.h>

#define SPARE_S 3600    /* the longest handshake and connection set-up, with a wide margin */
#define MINTS_PER_S 200 /* F5: what hostile names can cost in signatures */

struct leaf {
    struct list lru;   /* most recent first */
    struct leaf *next; /* in its bucket */
    char *host;
    bool is_ip;
    X509 *cert;
    time_t begin, end; /* handed out from, and until */
};

struct leafcache {
    struct ca *ca;
    EVP_PKEY *key;
    SSL_CTX *ctx;
    struct ticketkeys *tickets;
    time_t second; /* the one that `minted` counts in */
    unsigned minted;
    struct hash_key hash;
    struct list lru;
    struct leaf **buckets;
    size_t n, capacity, mask;
};

struct leafcache *leafcache_new(struct ca *ca, size_t capacity, struct err *err)
{
    tlsinit();
    struct leafcache *lc = xcalloc(1, sizeof *lc);
    lc->ca = ca;
    lc->capacity = capacity > 0 ? capacity : 1;
    list_init(&lc->lru);
    size_t buckets = 1;
    while (buckets < lc->capacity)
        buckets *= 2;
    lc->mask = buckets - 1;
    lc->buckets = xcalloc(buckets, sizeof(struct leaf *));
    lc->key = mint_key(err);
    lc->tickets = ticketkeys_new(ca_ticket_secret(ca));
    lc->ctx = lc->key ? tlsserver_ctx(lc->key, ca_intermediate(ca), err) : NULL;
    if (lc->ctx != NULL && ticketkeys_use(lc->ctx, lc->tickets) &&
        RAND_bytes((unsigned char *)&lc->hash, sizeof lc->hash) == 1)
        return lc;
    if (lc->ctx != NULL)
        tlserr_set(err, "leaf cache");
    leafcache_free(lc);
    return NULL;
}

static struct leaf **slot(const struct leafcache *lc, const char *host, bool is_ip)
{
    struct leaf **at = &lc->buckets[hash_bytes(lc->hash, slice_str(host)) & lc->mask];
    while (*at != NULL && ((*at)->is_ip != is_ip || strcmp((*at)->host, host) != 0))
        at = &(*at)->next;
    return at;
}

static void leaf_free(struct leaf *leaf)
{
    X509_free(leaf->cert);
    free(leaf->host);
    free(leaf);
}

static void drop(struct leafcache *lc, struct leaf *leaf)
{
    struct leaf **at = slot(lc, leaf->host, leaf->is_ip);
    ASSERT(*at == leaf);
    *at = leaf->next;
    list_remove(&leaf->lru);
    lc->n--;
    leaf_free(leaf);
}

void leafcache_free(struct leafcache *lc)
{
    if (lc == NULL)
        return;
    for (struct list *at = lc->lru.next, *next; at != &lc->lru; at = next) {
        next = at->next;
        leaf_free(list_entry(at, struct leaf, lru));
    }
    SSL_CTX_free(lc->ctx);
    ticketkeys_free(lc->tickets);
    EVP_PKEY_free(lc->key);
    free(lc->buckets);
    free(lc);
}

static bool may_mint(struct leafcache *lc, time_t now)
{
    if (lc->second != now) {
        lc->second = now;
        lc->minted = 0;
    }
    return lc->minted++ < MINTS_PER_S;
}

static struct leaf *add(struct leafcache *lc, const char *host, bool is_ip, time_t now,
                        struct err *err)
{
    time_t end;
    if (!may_mint(lc, now)) {
        err_set(err, "%s: more than %d new certificates a second", host, MINTS_PER_S);
        return NULL;
    }
    X509 *cert = mint_leaf(lc->ca, lc->key, host, is_ip, now, &end, err);
    if (cert == NULL)
        return NULL;
    if (lc->n == lc->capacity)
        drop(lc, list_entry(lc->lru.prev, struct leaf, lru));
    struct leaf *leaf = xcalloc(1, sizeof *leaf);
    leaf->host = xstrdup(host);
    leaf->is_ip = is_ip;
    leaf->cert = cert;
    leaf->begin = now;
    leaf->end = end - SPARE_S;
    *slot(lc, host, is_ip) = leaf;
    list_push_front(&lc->lru, &leaf->lru);
    lc->n++;
    return leaf;
}

SSL *leafcache_ssl(struct leafcache *lc, const char *host, bool is_ip, time_t now, struct err *err)
{
    struct leaf *leaf = *slot(lc, host, is_ip);
    /* Before its beginning: the clock was put back. */
    if (leaf != NULL && (now >= leaf->end || now < leaf->begin)) {
        drop(lc, leaf);
        leaf = NULL;
    }
    if (leaf == NULL)
        leaf = add(lc, host, is_ip, now, err);
    if (leaf == NULL)
        return NULL;
    list_remove(&leaf->lru);
    list_push_front(&lc->lru, &leaf->lru);
    if (!ticketkeys_turn(lc->tickets, now, err))
        return NULL;
    return tlsserver_ssl(lc->ctx, leaf->cert, leaf->host, err);
}
