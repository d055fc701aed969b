/* One worker's proxy: everything that its exchanges share, and the door for new clients.
 *
 *   entrance a listening socket with its rules
 *   client   downstream connection: heads in, answers out, CONNECT
 *   connect  what becomes of a CONNECT: opened, tunnelled, refused
 *   handshakes, refusals   whose turn TLS is, and who does not want it from us
 *   tunnel   bytes both ways, unread
 *   route    request -> origin, policy, budget
 *   ways     origin -> trust, client certificate, source address, parent proxy
 *   drive    one exchange at work: performs the machine's actions, feeds it events
 *   attempt  one request on one upstream connection
 *   relay    response -> client, with its framing
 *   reply    answers of our own
 *   bodylog  the request body as a log that attempts read from
 *   linger   closing so that the last answer survives */
#ifndef RETRYD_PROXY_PROXY_H
#define RETRYD_PROXY_PROXY_H

#include "core/base/list.h"
#include "core/base/rng.h"
#include "core/config/config.h"
#include "io/net/dial.h"
#include "io/net/listener.h"
#include "io/net/memtrim.h"
#include "io/net/pool.h"
#include "io/net/slots.h"
#include "io/shm/budgets.h"
#include "io/tls/ca.h"
#include "io/tls/leafcache.h"
#include "proxy/admission.h"
#include "proxy/bodylog.h"
#include "proxy/entrance.h"
#include "proxy/handshakes.h"
#include "proxy/parking.h"
#include "proxy/peer.h"
#include "proxy/refusals.h"
#include "proxy/ways.h"

enum { PROXY_VIA_MAX = 40 };

/* Clients come to several processes by the same sockets. */
struct proxy_door {
    struct listener_gate gate;
    /* Is told the number of connections here, says that of all processes. */
    unsigned (*count)(void *arg, unsigned n_clients);
    void *arg;
};

/* What was told of clients that were not let in. */
struct turned_away {
    int64_t since_ns;       /* of this second: */
    unsigned lines, untold; /* written, and not */
};

/* An entrance in this worker. */
struct doorway {
    struct proxy *px;
    const struct entrance *entrance;
    struct listener *listener;
};

struct proxy {
    struct loop *loop;
    const struct config *config;
    struct ca *ca;
    struct leafcache *leafcache;
    struct ways *ways;
    struct dns *dns;
    struct dialer dialer;
    struct pool *pool;
    struct slots *slots;
    struct budgets *budgets;
    struct admission admission;
    struct handshakes handshakes;
    struct refusals *refusals;     /* NULL: they are not remembered */
    const struct proxy_door *door; /* NULL: this process is alone */
    struct bodylog_shared replay;
    struct rng rng;
    struct hash_key key; /* of tables whose keys peers choose */

    struct doorway *doorways;
    size_t n_doorways;
    struct peers peers;
    struct turned_away turned_away;
    struct addr_range *allow;     /* dialler's view of allow_addresses */
    struct sockaddr_storage *own; /* dialler's view of our listeners */

    struct list clients; /* struct client, all */
    struct list tunnels;
    struct list lingers;
    unsigned n_clients; /* connections in the three lists: max_clients bounds them all */
    struct parking parking;
    struct memtrim memtrim;
    uint64_t next_xid;
    char via[PROXY_VIA_MAX]; /* pseudonym of this install, without the version */

    bool draining;
    bool cutting; /* the drain timeout has passed: nothing is waited for any more */
    void (*on_drained)(void *arg);
    void *on_drained_arg;
    struct loop_timer drain_timer;
};

/* What the process gives to its proxy: borrowed for the proxy's life, but for the descriptors. */
struct proxy_parts {
    struct loop *loop;
    const struct config *config;
    struct ca *ca;
    const struct entrance *entrances; /* the descriptors are taken */
    size_t n_entrances;
    struct region *region;
    int seat; /* in the region */
    const struct proxy_door *door;
    uint64_t first_xid;
};

struct proxy *proxy_new(const struct proxy_parts *parts, struct err *err);
void proxy_free(struct proxy *px);

/* Stops accepting, closes idle clients, lets exchanges end; after the drain timeout parked and
 * running ones are answered 503 and cut. fn is called once when nothing is left (possibly later,
 * never from within). */
void proxy_drain(struct proxy *px, void (*fn)(void *arg), void *arg);
/* One connection more, or one less, in the three lists. Returns how many there are now, in all
 * processes. */
unsigned proxy_count(struct proxy *px, int change);
/* Something ended: tells the drain when it was the last. */
void proxy_check_drained(struct proxy *px);

#endif
