/* Head serializer (security requirement C1: heads are written from parsed parts, never copied raw).
 * Field values, order and spelling are kept; exactly one framing is written. */
#ifndef RETRYD_CORE_HTTP_H1_WRITE_H
#define RETRYD_CORE_HTTP_H1_WRITE_H

#include "core/base/strbuf.h"
#include "core/http/message.h"
#include "core/http/uri.h"

/* A field that the proxy adds at the end of a head. */
struct h1_extra {
    struct slice name, value;
};

/* "METHOD path_query HTTP/1.1", Host in the place and spelling it came in (value `host` when not
 * empty, else as received; added first when the request had none), the end-to-end fields as
 * hopbyhop decides, Content-Length where it stood (with the received spelling of the name and
 * canonical digits), then the extras, then Transfer-Encoding: chunked where that is the framing: it
 * is this hop's own. Writes Connection (and Upgrade) only for a WebSocket handshake or when
 * signed, as received: upstream connections are persistent by default. False when out is full. */
bool h1_write_request(struct strbuf *out, const struct http_req *req, struct slice path_query,
                      struct slice host, const struct h1_extra *extra, size_t n_extra);

/* framing is how the body will be written (a chunked body to a 1.0 client becomes UNTIL_CLOSE: the
 * caller says so); with NONE a received Content-Length is kept, except on 1xx and 204 (D2). A
 * framing field that was not received is added at the end. close adds "Connection: close". The
 * status line is "HTTP/1.1 <status> <reason as received>"; a 101 to WebSocket keeps Connection and
 * Upgrade. False when out is full. */
bool h1_write_response(struct strbuf *out, const struct http_resp *resp, enum http_framing framing,
                       bool close, const struct h1_extra *extra, size_t n_extra);

#endif
