/* A parent proxy: where it is, and CONNECT through it (RFC 9110 9.3.6). Its answer is read by the
 * strict codec, bounded like every response head. */
#ifndef RETRYD_IO_NET_PARENT_H
#define RETRYD_IO_NET_PARENT_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/http/h1_head.h"
#include "io/net/conn.h"
#include "io/tls/tlsclient.h"

struct parent {
    const char *host; /* canonical name, or a literal's text without brackets */
    bool is_ip;
    uint16_t port;
    struct tlsclient *tls;     /* NULL: http:// */
    const char *authorization; /* value of Proxy-Authorization, a secret; NULL: none */
};

/* One CONNECT under way. */
struct parent_hop {
    struct h1_head head;
    struct arena arena;
    unsigned interim;
};

enum parent_answer {
    PARENT_MORE,    /* the head is not there yet */
    PARENT_OPEN,    /* 2xx: what follows in conn_in() comes from the origin */
    PARENT_REFUSED, /* it does not want to, and asking again is of no use */
    PARENT_FAILED,  /* it could not, or did not speak HTTP: may be better later */
};

void parent_hop_init(struct parent_hop *hop);
void parent_hop_fini(struct parent_hop *hop);

enum { PARENT_VIA_MAX = 512 };

/* Asks for a tunnel to host:port. via: value of the Via field, shorter than PARENT_VIA_MAX; NULL:
 * none. */
void parent_connect(const struct parent *p, struct conn *c, const char *host, uint16_t port,
                    const char *via);
/* What has come so far. A line about it in *why when it is REFUSED or FAILED: the status, never the
 * credentials. */
enum parent_answer parent_read(struct parent_hop *hop, struct conn *c, struct err *why);

/* Status that a parent gave for a request or a CONNECT of ours: is asking again of no use? */
bool parent_status_is_final(unsigned status);

#endif
