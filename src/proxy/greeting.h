/* What a listener may ask for ahead of the first request: the PROXY protocol's word about who
 * connects, then TLS with the proxy itself. */
#ifndef RETRYD_PROXY_GREETING_H
#define RETRYD_PROXY_GREETING_H

#include "proxy/client.h"

/* The client's connection has begun. count: of its peer; NULL: a load balancer is to say first who
 * it is. May close the client. */
void greeting_start(struct client *c, struct peer_count *count);
/* The client's state is CLIENT_INTRODUCTION and bytes arrived. */
void greeting_readable(struct client *c);
/* It is that or CLIENT_GREETING, and its time is over; or the connection broke. Before the client
 * is closed. */
void greeting_timeout(struct client *c);
void greeting_broken(struct client *c);
/* Its turn for the handshake with the proxy has come; or it has to give way to others. */
void greeting_handshake(struct client *c);
void greeting_cut(struct client *c);

#endif
