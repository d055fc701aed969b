/* What a proxy must strip and what it must never touch: the only room that may drop a field
 * (RFC 9110 7.6.1; security requirements C6, C7, C8, C12). */
#ifndef RETRYD_CORE_HTTP_HOPBYHOP_H
#define RETRYD_CORE_HTTP_HOPBYHOP_H

#include "core/http/header.h"

/* What a head's Connection fields and SignedHeaders say, computed once a head. */
struct hopbyhop {
    const struct header_list *fields;
    struct slice signed_headers; /* the SignedHeaders list, or empty */
    bool keep_upgrade;           /* a WebSocket handshake is relayed: Connection and Upgrade stay */
    bool lists_names;            /* a Connection field lists something besides close, keep-alive and
                                    upgrade: fields have to be looked up in it */
};

/* Borrows the list. Reads SignedHeaders from Authorization (AWS4-*) or the query of a presigned
 * target; SLICE_NONE: a response, which nothing signs. keep_upgrade starts false. */
void hopbyhop_init(struct hopbyhop *h, const struct header_list *fields, struct slice path_query);

/* True if the field goes to the next hop. Content-Length, Transfer-Encoding and Host are framing
 * and routing: the serializer writes them itself, this says false for Transfer-Encoding only. A
 * field named in SignedHeaders is kept, Connection, TE, Trailer and Keep-Alive too; not so Proxy-*,
 * Transfer-Encoding, HTTP2-Settings, Upgrade, and a Connection that names one of the last two. */
bool hopbyhop_keeps(const struct hopbyhop *h, const struct header_field *f);

/* True if the Connection fields name a field that must not be stripped (C7) or are malformed, or
 * list more than HOPBYHOP_NAMES_MAX members (a bound on work, B14): the head is refused. */
enum { HOPBYHOP_NAMES_MAX = 64 };
bool hopbyhop_abused(const struct header_list *fields);

/* True if the fields ask for, or agree to, a switch to the WebSocket protocol and nothing else: one
 * Upgrade field, value "websocket", named in Connection (C12). */
bool hopbyhop_websocket(const struct header_list *fields);

/* False for names that a trailer section may not carry: framing, routing, authentication,
 * hop-by-hop, conditionals, controls and Content-* (RFC 9110 6.5.1; B10). */
bool hopbyhop_trailer_allowed(struct slice name);

#endif
