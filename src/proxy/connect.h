/* What becomes of a CONNECT: opened with a certificate of ours, tunnelled unread, or refused
 * (security requirements F1-F3, F7, F10, I2). The front of the proxy that yields (authority,
 * connection). Where TLS would be opened, the answer is 200 and the ClientHello decides: what
 * cannot be opened without breaking it is tunnelled. */
#ifndef RETRYD_PROXY_CONNECT_H
#define RETRYD_PROXY_CONNECT_H

#include "proxy/client.h"

/* The client's present request is a CONNECT. May close the client or give its connection away. */
void connect_request(struct client *c);
/* The client's state is HELLO and bytes arrived. As above. */
void connect_hello(struct client *c);
/* The deadline passed in state HELLO or HANDSHAKE. As above. */
void connect_timeout(struct client *c);
/* The handshake is done. */
void connect_up(struct client *c);
/* An opened connection broke, in the handshake or later: tells the log why, if that is to be told,
 * and remembers a client that does not want our certificates. */
void connect_broken(struct client *c);

/* proxy.handshakes: it is the client's turn; it gives way. */
void connect_start_handshake(struct handshake *h);
void connect_cut_handshake(struct handshake *h);

#endif
