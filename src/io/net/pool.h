/* Idle connections by origin: keep-alive towards upstreams (security requirements D3, D4, J7). An
 * idle connection that becomes readable, ends or stays longer than idle_ns is closed and never
 * handed out. */
#ifndef RETRYD_IO_NET_POOL_H
#define RETRYD_IO_NET_POOL_H

#include "core/base/hash.h"
#include "io/net/conn.h"

struct pool;

struct pool *pool_new(struct loop *l, struct hash_key key, unsigned per_origin, unsigned total,
                      int64_t idle_ns);
void pool_free(struct pool *p);

/* The most recently used idle connection of the key, checked to be silent and open; NULL: none. The
 * caller sets the owner. */
struct conn *pool_take(struct pool *p, struct slice key);
/* Takes the connection. Over a cap the oldest idle one (of the origin, of all) is closed. A
 * connection with unread input or unsent output is closed instead. was_idle: it came from
 * pool_take() and served, so others that idle may be as good: no stale one counts any more. */
void pool_put(struct pool *p, struct slice key, struct conn *c, bool was_idle);
/* One that pool_take() gave turned out to be closed by the peer. After two in a row the idle ones
 * of the key are distrusted: all are closed (retry-semantics 13.1). */
void pool_stale(struct pool *p, struct slice key);
/* Closes all: there are too few descriptors (J2). */
void pool_shed(struct pool *p);
unsigned pool_idle(const struct pool *p);

#endif
