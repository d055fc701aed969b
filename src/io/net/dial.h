/* From an origin to a connected conn, or a kind of failure: addresses, TCP to one of them (race.h),
 * a parent proxy's CONNECT, TLS, as the target asks for.
 *
 * Every candidate address passes the policy right before connect(). Through a parent proxy names
 * are resolved there and cannot be checked; literal targets still are. */
#ifndef RETRYD_IO_NET_DIAL_H
#define RETRYD_IO_NET_DIAL_H

#include "io/net/addrpolicy.h"
#include "io/net/conn.h"
#include "io/net/dns.h"
#include "io/net/parent.h"
#include "io/net/race.h"
#include "io/tls/tlsclient.h"

struct dial;

struct dialer {
    struct loop *loop;
    struct dns *dns;
    struct addr_policy policy;
    int64_t connect_timeout_ns; /* for each address; for the parent's answer to CONNECT */
    int64_t tls_timeout_ns;
    struct conn_limits limits;
};

struct dial_target {
    const char *host; /* canonical name, or a literal's text */
    bool is_ip;
    uint16_t port;
    struct tlsclient *tls; /* NULL: no TLS with the origin */
    bool private_ok;       /* private addresses may be dialled */
    /* from `resolve`: dialled instead of a lookup, and allowed whatever the policy says; ss_family
     * 0: none. Port included. Without a meaning when there is a parent. */
    struct sockaddr_storage fixed;
    const struct race_source *source; /* NULL: the kernel chooses */
    const struct parent *parent;      /* NULL: directly */
    const char *via; /* with a parent: Via of the CONNECT (PARENT_VIA_MAX); NULL: none */
    bool absolute;   /* with a parent: no CONNECT, the connection takes requests in absolute-form */
};

/* conn is the callee's (its owner is to be set at once) or NULL with the failure and a line about
 * it. */
typedef void dial_fn(void *arg, struct conn *conn, enum net_fail failure, const char *detail);

/* Borrows the target during the call, but for what it points to (tls, source, parent), which lives
 * as long as the dial; keeps the dialer. fn is called later, once, never from within. */
struct dial *dial_start(const struct dialer *d, const struct dial_target *t, dial_fn *fn,
                        void *arg);
/* No callback any more; everything under way is closed. */
void dial_cancel(struct dial *d);

#endif
