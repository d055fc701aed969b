/* May the TLS of this client be opened? A table from what its ClientHello says to what becomes of
 * the connection (security requirements F2, F6, F7; RFC 9849 for ECH). */
#ifndef RETRYD_CORE_TLS_OPENING_H
#define RETRYD_CORE_TLS_OPENING_H

#include "core/tls/clienthello.h"

enum opening_kind {
    OPENING_OPEN,
    OPENING_TUNNEL, /* what we cannot speak is passed on unread: nothing is broken */
    OPENING_REFUSE, /* it asks for another host than its CONNECT named */
};

struct opening {
    enum opening_kind kind;
    const char *reason; /* a word for the log; NULL: it is opened */
};

/* host: of the CONNECT, in the canonical form of struct authority. */
struct opening opening_of(const struct clienthello *h, struct slice host);

#endif
