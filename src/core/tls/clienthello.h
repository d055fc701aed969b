/* Reads a ClientHello, TLS up to 1.3, out of the first bytes of a tunnel: who is asked for and what
 * is offered, and no more. It takes nothing away and answers nothing: whatever it says, the bytes
 * can still go to a TLS stack or through a tunnel. RFC 8446 4.1.2 and 5.1, RFC 6066 3, RFC
 * 7301 3.1, RFC 9849 5. */
#ifndef RETRYD_CORE_TLS_CLIENTHELLO_H
#define RETRYD_CORE_TLS_CLIENTHELLO_H

#include "core/base/slice.h"
#include <stdint.h>

enum {
    HELLO_WIRE_MAX = 64 * 1024,    /* with the records around it (security requirement F10) */
    HELLO_MESSAGE_MAX = 32 * 1024, /* today's are 0.2 to 2 KiB, with post-quantum keys */
    HELLO_NAME_MAX = 253,
};

enum hello_read {
    HELLO_MORE,    /* so far it can be one */
    HELLO_NOT_TLS, /* the first two bytes are no handshake record of TLS (F3) */
    HELLO_BAD,     /* begins as one, and breaks the rules or is too long */
    HELLO_WHOLE,
};

enum hello_alpn {
    HELLO_ALPN_NONE,   /* the extension is absent: HTTP/1.1 by custom */
    HELLO_ALPN_HTTP11, /* among others or alone */
    HELLO_ALPN_H2,     /* h2, and not http/1.1 */
    HELLO_ALPN_OTHER,  /* neither */
};

struct clienthello {
    /* server_name: lower case, one trailing dot removed, NUL-terminated; "": absent. Letters,
     * digits,
     * "-", "_", ".", and ":" for the IPv6 literals that some clients send against RFC 6066. */
    char name[HELLO_NAME_MAX + 1];
    enum hello_alpn alpn;
    /* encrypted_client_hello is there: a real one or GREASE, which nobody but the addressee can
     * tell apart (RFC 9849 6.2). `name` is the outer one. */
    bool ech;
    bool modern; /* TLS 1.2 or 1.3 is offered */
};

/* in: all bytes received so far, split into records anywhere. *out is valid after HELLO_WHOLE. */
enum hello_read clienthello_read(struct slice in, struct clienthello *out);

#endif
