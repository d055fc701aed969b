/* Who is at the other end of a client connection, and how many connections each of them has. */
#ifndef RETRYD_PROXY_PEER_H
#define RETRYD_PROXY_PEER_H

#include "core/base/hash.h"
#include "core/base/list.h"
#include "io/net/addrtext.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer {
    bool has_address;
    unsigned char address[16]; /* IPv4 as ::ffff:a.b.c.d */
    bool has_user;
    uid_t user;
    char text[ADDRTEXT_BYTES]; /* for logs: "192.0.2.1:4711", "uid=1000" */
};

/* Of an accepted socket. On a unix socket the kernel says which user it is. */
void peer_of(struct peer *p, int fd, const struct sockaddr *sa);
/* As a load balancer names it: IPv4 or IPv6. */
void peer_named(struct peer *p, const struct sockaddr *sa);

/* The text without the port, which changes with each connection; "uid=1000" has none. */
struct slice peer_without_port(const char *text);

/* Connections by peer: its address, or its user where it has none. A keyed hash, since peers choose
 * what they are called (security requirement J14). */
enum { PEERS_BUCKETS = 1024 };
struct peers {
    struct hash_key key;
    struct list bucket[PEERS_BUCKETS];
};

/* The connections of one peer; it exists while there are any. */
struct peer_count {
    struct list link;
    struct peer peer;
    unsigned n;
    unsigned turned_away; /* since it was last told */
    int64_t told_ns;      /* 0: never */
};

/* Holds nothing once all have left. */
void peers_init(struct peers *t, struct hash_key key);
/* One connection more, for peers_leave. When it has max of them already, *ok is false, and the
 * count is lent, for a word about it. */
struct peer_count *peers_enter(struct peers *t, const struct peer *p, unsigned max, bool *ok);
void peers_leave(struct peer_count *c);

#endif
