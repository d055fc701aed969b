/* A response on its way to the client: which framing it gets there, and the truth about its end
 * (security requirements D2, D5, C14). */
#ifndef RETRYD_PROXY_RELAY_H
#define RETRYD_PROXY_RELAY_H

#include "core/http/message.h"
#include "io/net/conn.h"

struct relay {
    struct conn *to;
    enum http_framing framing; /* towards the client */
    uint64_t body_bytes;       /* written so far */
    bool open;                 /* a head went out and the end did not */
};

/* The value of our Via field (C9): the version the message came in, and our pseudonym. In buf. */
enum { RELAY_VIA_MAX = 64 };
struct slice relay_via(char buf[RELAY_VIA_MAX], unsigned minor, struct slice pseudonym);

/* Writes the head. framing_in is the response's own; a body that ends with the origin's connection
 * becomes chunked for a 1.1 client, so that a cut shows; chunked becomes until-close for a 1.0
 * client. close: the connection ends after this response (forced true where the framing needs it:
 * returned). */
bool relay_begin(struct relay *r, struct conn *to, const struct http_resp *resp,
                 unsigned client_minor, bool head_request, bool close, struct slice via);
void relay_data(struct relay *r, struct slice data);
/* The body is complete. Trailers go out only where the framing carries them. */
void relay_end(struct relay *r, const struct header_list *trailers);

#endif
