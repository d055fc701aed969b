/* Names to addresses on the loop, through c-ares; small cache (security requirement I6). */
#ifndef RETRYD_IO_NET_DNS_H
#define RETRYD_IO_NET_DNS_H

#include "core/base/err.h"
#include "io/net/loop.h"
#include <sys/socket.h>

enum { DNS_MAX_ADDRESSES = 16 };

struct dns;
struct dns_query;

struct dns_answer {
    struct sockaddr_storage addr[DNS_MAX_ADDRESSES]; /* port 0 */
    unsigned n;                                      /* 0: failed */
    const char *problem;                             /* static, when n == 0 */
    int ttl_s; /* how long it is remembered from its arrival on; 0: not at all */
};

struct dns *dns_new(struct loop *l, int64_t timeout_ns, struct err *err);
/* Queries under way end without a callback and must not be cancelled any more. Not from within a
 * callback. */
void dns_free(struct dns *d);
/* Instead of those of resolv.conf: "address[:port],...". */
bool dns_use_servers(struct dns *d, const char *csv);

/* Calls fn(arg, answer) later, never from within; answer borrowed during the call. */
struct dns_query *dns_lookup(struct dns *d, const char *name,
                             void (*fn)(void *, const struct dns_answer *), void *arg);
/* This address of the name was the first to answer, and others before it were not: it stands in
 * front while the answer is remembered (RFC 8305 section 4, history). */
void dns_prefer(struct dns *d, const char *name, const struct sockaddr *winner);
/* No callback any more. */
void dns_cancel(struct dns_query *q);

#endif
