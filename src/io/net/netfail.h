/* The ways a connection fails. The proxy maps them to the retry engine's vocabulary. */
#ifndef RETRYD_IO_NET_NETFAIL_H
#define RETRYD_IO_NET_NETFAIL_H

enum net_fail {
    NET_OK,
    NET_DNS,             /* no such name, or the resolver failed or timed out */
    NET_DENIED,          /* the address rules forbid every address of the name */
    NET_REFUSED,         /* refused, unreachable, no route */
    NET_CONNECT_TIMEOUT, /* */
    NET_TLS,             /* handshake broken off */
    NET_TLS_TIMEOUT,
    NET_CERTIFICATE,    /* not trusted, expired, wrong name */
    NET_DISTRUSTED,     /* we are the server, and the client said so of our certificate */
    NET_RESET,          /* reset, or any other error on an established connection */
    NET_TRUNCATED,      /* TLS ended without close_notify */
    NET_PARENT,         /* the parent proxy cannot be reached or failed: may be better later */
    NET_PARENT_REFUSED, /* the parent proxy answered and does not want to: 407, 403 and the like */
    NET_STARVED,        /* out of descriptors or memory: what idles could go */
    NET_LOCAL,          /* out of ports, or another fault of this machine */
};

const char *net_fail_name(enum net_fail f);

#endif
