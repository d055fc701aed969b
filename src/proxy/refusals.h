/* Clients that refused our certificate, by address and host: for a while their connections are
 * passed through unread. Each worker remembers its own. */
#ifndef RETRYD_PROXY_REFUSALS_H
#define RETRYD_PROXY_REFUSALS_H

#include "core/base/hash.h"

enum { REFUSALS_MAX = 1024 };

struct refusals;

/* memory_ns: how long one is remembered, > 0. */
struct refusals *refusals_new(struct hash_key key, int64_t memory_ns);
void refusals_free(struct refusals *r);

/* peer: as in struct peer, text; a port does not count. At REFUSALS_MAX the oldest is forgotten.
 */
void refusals_add(struct refusals *r, const char *peer, const char *host, int64_t now_ns);
bool refusals_has(const struct refusals *r, const char *peer, const char *host, int64_t now_ns);

#endif
