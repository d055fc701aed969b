/* Host name to server context: minted leaves, bounded LRU (security requirements F4, F5). One key
 * pair per process for all leaves. */
#ifndef RETRYD_IO_TLS_LEAFCACHE_H
#define RETRYD_IO_TLS_LEAFCACHE_H

#include "core/base/err.h"
#include "io/tls/ca.h"
#include <openssl/ssl.h>

struct leafcache;

/* Keeps ca. capacity: at most that many names. */
struct leafcache *leafcache_new(struct ca *ca, size_t capacity, struct err *err);
void leafcache_free(struct leafcache *lc);

/* A new server SSL for the host (lower-case name or literal as in struct authority), which answers
 * with its leaf and the intermediate, ALPN http/1.1 only, TLS >= 1.2, refuses an SNI that differs
 * (unrecognized_name). NULL with *err, e.g. for a name outside the constraints. The SSL is the
 * caller's; it owns no descriptor yet. now: wall clock. */
SSL *leafcache_ssl(struct leafcache *lc, const char *host, bool is_ip, time_t now, struct err *err);

#endif
