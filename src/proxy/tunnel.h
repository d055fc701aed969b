/* A blind tunnel: bytes both ways, unread, half-closes and resets passed on in kind (security
 * requirements F1, J10). */
#ifndef RETRYD_PROXY_TUNNEL_H
#define RETRYD_PROXY_TUNNEL_H

#include "core/http/uri.h"
#include "proxy/proxy.h"

struct tunnel_terms {
    const struct listener_config *rules; /* of the client's listener */
    const char *user;                    /* as client.user */
    const char *via;                     /* for a parent proxy; NULL: none */
    const char *reason; /* why it is not opened although its host would be, a static word for the
                           log; NULL: it would not */
    bool answered;      /* the client has its 200: when the dial fails, its connection just ends */
};

/* Takes the client's connection, which waits for the answer to its CONNECT; bytes that it sent
 * after the head are in its input. Dials, answers, pumps. Borrows the terms during the call. */
void tunnel_start(struct proxy *px, struct conn *client, const struct authority *to,
                  const struct tunnel_terms *terms);
/* Takes two connections that have left HTTP (a WebSocket), and the slot that the upstream one
 * holds: opaque bytes from here on. */
void tunnel_join(struct proxy *px, struct conn *client, struct conn *upstream,
                 const struct authority *to, struct slot *slot);
void tunnel_close_all(struct proxy *px);

#endif
