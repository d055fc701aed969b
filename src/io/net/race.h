/* Several addresses of one host, one connection: RFC 8305 ("happy eyeballs"). An attempt begins
 * 250 ms after the one before it, or as soon as one has failed; the first to connect wins and the
 * others are closed. Families take turns, beginning with that of the first address; within a family
 * the order is the resolver's.
 *
 * Both families come from one lookup, which waits for both answers: the resolution delay of RFC
 * 8305 section 3 has nothing to do here. */
#ifndef RETRYD_IO_NET_RACE_H
#define RETRYD_IO_NET_RACE_H

#include "core/base/err.h"
#include "io/net/addrpolicy.h"
#include "io/net/dns.h"
#include "io/net/netfail.h"

enum { RACE_STAGGER_MS = 250 }; /* RFC 8305 section 5, "Connection Attempt Delay" */

/* Where connections come from, by family of the target; ss_family 0: the kernel chooses. Ports 0.
 */
struct race_source {
    struct sockaddr_storage v4, v6;
};

struct race_rules {
    struct loop *loop;
    const struct addr_policy *policy;
    bool named_by_operator; /* passes whatever the policy says, except that the proxy never dials
                               itself (security requirement I5) */
    bool private_ok;
    const struct race_source *source; /* NULL: none */
    int64_t timeout_ns;               /* for each address */
};

/* fd is the callee's, connected to *peer, which is an element of race.addr; or -1 with the most
 * telling failure and a line about it.
 */
typedef void race_fn(void *arg, int fd, const struct sockaddr *peer, enum net_fail failure,
                     const char *detail);

struct race_try {
    struct race *race;
    int fd; /* -1: not running */
    unsigned addr;
    int64_t deadline_ns;
    struct event *ev;
};

struct race {
    struct race_rules rules;
    race_fn *fn;
    void *arg;
    struct sockaddr_storage addr[DNS_MAX_ADDRESSES];
    unsigned n, next; /* addresses; the first that was not tried */
    struct race_try tries[DNS_MAX_ADDRESSES];
    unsigned n_tries, running;
    int64_t next_at_ns; /* when the next address is due */
    struct loop_timer timer;
    enum net_fail failure;
    int telling; /* rank of the failure */
    struct err detail;
};

/* The families take turns, beginning with that of v[0]; order within a family is kept. n <=
 * DNS_MAX_ADDRESSES. */
void race_interleave(struct sockaddr_storage *v, unsigned n);

void race_init(struct race *r, const struct race_rules *rules, race_fn *fn, void *arg);
/* Once: 1..DNS_MAX_ADDRESSES addresses with their ports. fn is called later, once, never from
 * within. */
void race_start(struct race *r, const struct sockaddr_storage *v, unsigned n);
/* No callback any more; what runs is closed. Also needed after the callback. */
void race_fini(struct race *r);

#endif
