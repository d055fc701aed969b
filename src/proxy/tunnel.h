/* A blind tunnel: bytes both ways, unread, half-closes and resets passed on in kind (security
 * requirements F1, J10). */
#ifndef RETRYD_PROXY_TUNNEL_H
#define RETRYD_PROXY_TUNNEL_H

#include "core/http/uri.h"
#include "proxy/proxy.h"

/* Takes the client's connection, which waits for the answer to its CONNECT; bytes that it sent
 * after the head are in its input. Dials, answers, pumps. via: for a parent proxy. */
void tunnel_start(struct proxy *px, struct conn *client, const struct authority *to,
                  const struct listener_config *rules, const char *via);
/* Takes two connections that have left HTTP (a WebSocket), and the slot that the upstream one
 * holds: opaque bytes from here on. */
void tunnel_join(struct proxy *px, struct conn *client, struct conn *upstream,
                 const struct authority *to, struct slot *slot);
void tunnel_close_all(struct proxy *px);

#endif
