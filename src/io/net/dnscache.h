/* Answers by name, for a while: the memory of dns. Least recently used goes first when it is full.
 */
#ifndef RETRYD_IO_NET_DNSCACHE_H
#define RETRYD_IO_NET_DNSCACHE_H

#include "core/base/hash.h"
#include "io/net/dns.h"

/* An answer that several hold: the cache and those who wait for it. */
struct dns_result {
    unsigned refs;
    struct dns_answer answer;
};

/* One reference, the caller's. */
struct dns_result *dns_result_new(void);
struct dns_result *dns_result_ref(struct dns_result *r);
void dns_result_unref(struct dns_result *r);

struct dnscache;

struct dnscache *dnscache_new(struct hash_key key, unsigned capacity);
void dnscache_free(struct dnscache *c);
/* Borrowed, until the cache changes; NULL: unknown or expired. */
struct dns_result *dnscache_get(struct dnscache *c, const char *name, int64_t now_ns);
/* Keeps a reference until expires_ns. */
void dnscache_put(struct dnscache *c, const char *name, struct dns_result *r, int64_t expires_ns);

#endif
