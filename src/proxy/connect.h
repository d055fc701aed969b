/* What becomes of a CONNECT: opened with a certificate of ours, tunnelled unread, or refused
 * (security requirements F1-F3, I2). The front of the proxy that yields (authority, connection). */
#ifndef RETRYD_PROXY_CONNECT_H
#define RETRYD_PROXY_CONNECT_H

#include "proxy/client.h"

/* The client's present request is a CONNECT. May close the client or give its connection away. */
void connect_request(struct client *c);
/* The client's state is HELLO and bytes arrived. */
void connect_hello(struct client *c);

#endif
