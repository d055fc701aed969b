/* The end of a connection whose peer may still be sending: flush, half-close, read and forget until
 * the peer closes, at most 2 s and 1 MiB. Without it a close with unread input becomes a reset, and
 * the last answer is lost (RFC 9112 9.6; security requirement B11). */
#ifndef RETRYD_PROXY_LINGER_H
#define RETRYD_PROXY_LINGER_H

#include "proxy/proxy.h"

/* Takes the connection. */
void linger_start(struct proxy *px, struct conn *conn);
void linger_close_all(struct proxy *px);

#endif
