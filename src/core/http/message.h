/* Request and response heads, shared by every wire version.
 *
 * All slices live on the arena that the head was parsed onto; values are the bytes as received,
 * without surrounding OWS. Order, spelling and repetition of fields are kept: signatures cover
 * them. */
#ifndef RETRYD_CORE_HTTP_MESSAGE_H
#define RETRYD_CORE_HTTP_MESSAGE_H

#include "core/base/slice.h"
#include "core/http/header.h"
#include <stdint.h>

enum http_method {
    HTTP_OTHER, /* any other token; never idempotent */
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_CONNECT,
    HTTP_TRACE,
    HTTP_PATCH,
};

/* How a body ends (RFC 9112 6.3). */
enum http_framing {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_UNTIL_CLOSE, /* responses only */
};

struct http_req {
    struct slice method;
    enum http_method method_id;
    struct slice target; /* as written */
    unsigned minor;      /* HTTP/1.minor as received; a minor above 1 is handled as 1 */
    struct header_list fields;
    enum http_framing framing;
    uint64_t content_length; /* with HTTP_BODY_LENGTH */
    bool expect_continue;    /* Expect: 100-continue on a 1.1 request */
    bool close;              /* Connection: close, or 1.0 (keep-alive of 1.0 is not honoured) */
};

struct http_resp {
    unsigned status;
    unsigned minor;
    struct slice reason;
    struct header_list fields;
    enum http_framing framing;
    uint64_t
        content_length; /* the received Content-Length, also where no body follows (HEAD, 304) */
    bool close;         /* the connection cannot be used again after this response */
};

/* Methods are case-sensitive (RFC 9110 9.1). */
enum http_method http_method_of(struct slice name);

/* RFC 9110 9.2.2. */
bool http_method_idempotent(enum http_method m);

#endif
