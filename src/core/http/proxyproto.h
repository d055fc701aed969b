/* The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt): what a load balancer says
 * ahead of a connection about who opened it. Strict and bounded; nothing is repaired. */
#ifndef RETRYD_CORE_HTTP_PROXYPROTO_H
#define RETRYD_CORE_HTTP_PROXYPROTO_H

#include "core/base/slice.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    PROXYPROTO_V1_MAX = 107, /* a whole line with its CRLF (section 2.1) */
    PROXYPROTO_V2_MAX = 536, /* header, addresses and 484 bytes of TLVs, which are passed over */
};

enum proxyproto_result { PROXYPROTO_MORE, PROXYPROTO_OK, PROXYPROTO_BAD };

struct proxyproto {
    bool named; /* false: it speaks for itself (LOCAL), or does not know (UNKNOWN, UNSPEC, UNIX):
                   the connection's own address counts */
    bool ipv6;
    unsigned char address[16]; /* of the client, network order; 4 bytes unless ipv6 */
    uint16_t port;
    size_t consumed;     /* PROXYPROTO_OK: bytes of the header */
    const char *problem; /* PROXYPROTO_BAD: static text */
};

/* Reads the header at the start of a connection; called again with more after MORE. It is BAD as
 * soon as no continuation could make it good, at the latest when the bounds are used up. */
enum proxyproto_result proxyproto_read(struct slice in, struct proxyproto *out);

#endif
