/* From an origin to a connected conn (TCP, then TLS when asked), or a kind of failure. Every
 * candidate address passes the policy right before connect(). */
#ifndef RETRYD_IO_NET_DIAL_H
#define RETRYD_IO_NET_DIAL_H

#include "io/net/addrpolicy.h"
#include "io/net/conn.h"
#include "io/net/dns.h"
#include "io/tls/tlsclient.h"

struct dial;

struct dialer {
    struct loop *loop;
    struct dns *dns;
    struct tlsclient *tls;
    struct addr_policy policy;
    int64_t connect_timeout_ns; /* per address */
    int64_t tls_timeout_ns;
    struct conn_limits limits;
};

struct dial_target {
    const char *host; /* canonical name, or a literal's text */
    bool is_ip;
    uint16_t port;
    bool tls;
    bool private_ok; /* an AWS service endpoint */
    /* from `resolve`: dialled instead of a lookup, and allowed whatever the policy says; ss_family
     * 0: none. Port included. */
    struct sockaddr_storage fixed;
};

/* conn is the callee's (its owner is to be set at once) or NULL with the failure and a line about
 * it. */
typedef void dial_fn(void *arg, struct conn *conn, enum net_fail failure, const char *detail);

/* Borrows the target during the call, keeps the dialer. fn is called later, once, never from
 * within. */
struct dial *dial_start(const struct dialer *d, const struct dial_target *t, dial_fn *fn,
                        void *arg);
/* No callback any more; everything under way is closed. */
void dial_cancel(struct dial *d);

#endif
