/* Head serializer. Fields go out in the order they came in; only the framing and routing ones are
 * rewritten, each at its old place, so that a head that needs no change comes out unchanged. */
#include "core/http/h1_write.h"
#include "core/http/hopbyhop.h"

/* What is written instead of received framing and routing fields. */
struct rewrite {
    enum http_framing framing;
    uint64_t content_length;
    bool keep_length;  /* no body is framed, a received Content-Length still informs */
    struct slice host; /* empty: as received */
    bool coding_last;  /* Transfer-Encoding belongs to this hop: it goes behind what the hop adds */
    bool framed;       /* the framing field was written */
};

static void put_field(struct strbuf *out, struct slice name, struct slice value)
{
    strbuf_put(out, name);
    strbuf_put(out, SLICE(": "));
    strbuf_put(out, value);
    strbuf_put(out, SLICE("\r\n"));
}

static void put_length(struct strbuf *out, struct slice name, uint64_t length)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + length % 10);
        length /= 10;
    } while (length > 0);
    put_field(out, name, slice_of(digits + at, sizeof digits - at));
}

/* True if f is one that rw decides about. */
static bool put_rewritten(struct strbuf *out, const struct header_field *f, struct rewrite *rw)
{
    if (slice_eq_nocase(f->name, SLICE("Content-Length"))) {
        if (rw->framing == HTTP_BODY_LENGTH || rw->keep_length)
            put_length(out, f->name, rw->content_length);
        rw->framed |= rw->framing == HTTP_BODY_LENGTH;
        return true;
    }
    if (slice_eq_nocase(f->name, SLICE("Transfer-Encoding"))) {
        if (rw->framing == HTTP_BODY_CHUNKED && !rw->coding_last) {
            put_field(out, f->name, SLICE("chunked"));
            rw->framed = true;
        }
        return true;
    }
    if (slice_eq_nocase(f->name, SLICE("Host")) && rw->host.n > 0) {
        put_field(out, f->name, rw->host);
        return true;
    }
    return false;
}

static void put_fields(struct strbuf *out, const struct hopbyhop *hop, struct rewrite *rw)
{
    const struct header_list *fields = hop->fields;
    for (size_t i = 0; i < fields->n; i++) {
        const struct header_field *f = &fields->v[i];
        if (!put_rewritten(out, f, rw) && hopbyhop_keeps(hop, f))
            put_field(out, f->name, f->value);
    }
}

static bool put_end(struct strbuf *out, const struct rewrite *rw, const struct h1_extra *extra,
                    size_t n_extra)
{
    for (size_t i = 0; i < n_extra; i++)
        put_field(out, extra[i].name, extra[i].value);
    if (!rw->framed && rw->framing == HTTP_BODY_LENGTH)
        put_length(out, SLICE("Content-Length"), rw->content_length);
    else if (!rw->framed && rw->framing == HTTP_BODY_CHUNKED)
        put_field(out, SLICE("Transfer-Encoding"), SLICE("chunked"));
    strbuf_put(out, SLICE("\r\n"));
    return !out->overflow;
}

bool h1_write_request(struct strbuf *out, const struct http_req *req, struct slice path_query,
                      struct slice host, const struct h1_extra *extra, size_t n_extra)
{
    struct hopbyhop hop;
    hopbyhop_init(&hop, &req->fields, path_query);
    hop.keep_upgrade = req->method_id == HTTP_GET && req->minor > 0 &&
                       req->framing == HTTP_BODY_NONE && hopbyhop_websocket(&req->fields);
    struct rewrite rw = {.framing = req->framing,
                         .content_length = req->content_length,
                         .host = host,
                         .coding_last = true};
    strbuf_put(out, req->method);
    strbuf_putc(out, ' ');
    if (path_query.n == 0 || path_query.p[0] == '?')
        strbuf_putc(out, '/');
    strbuf_put(out, path_query);
    strbuf_put(out, SLICE(" HTTP/1.1\r\n"));
    if (host.n > 0 && !header_has(&req->fields, SLICE("Host")))
        put_field(out, SLICE("Host"), host);
    put_fields(out, &hop, &rw);
    return put_end(out, &rw, extra, n_extra);
}

bool h1_write_response(struct strbuf *out, const struct http_resp *resp, enum http_framing framing,
                       bool close, const struct h1_extra *extra, size_t n_extra)
{
    struct hopbyhop hop;
    hopbyhop_init(&hop, &resp->fields, SLICE_NONE);
    hop.keep_upgrade = resp->status == 101 && hopbyhop_websocket(&resp->fields);
    struct rewrite rw = {
        .framing = framing,
        .content_length = resp->content_length,
        .keep_length = framing == HTTP_BODY_NONE && resp->status >= 200 && resp->status != 204,
    };
    strbuf_printf(out, "HTTP/1.1 %03u ", resp->status);
    strbuf_put(out, resp->reason);
    strbuf_put(out, SLICE("\r\n"));
    put_fields(out, &hop, &rw);
    if (close)
        put_field(out, SLICE("Connection"), SLICE("close"));
    return put_end(out, &rw, extra, n_extra);
}
