/* Response to client. Heads are built in one buffer, bodies pass through piece by piece. */
#include "proxy/relay.h"
#include "core/base/fixtext.h"
#include "core/base/units.h"
#include "core/http/h1_body.h"
#include "core/http/h1_write.h"

/* A response head is at most 128 KiB as received; framing and Via add less than this. */
enum { HEAD_OUT_MAX = 136 * 1024 };

struct slice relay_via(char buf[RELAY_VIA_MAX], unsigned minor, struct slice pseudonym)
{
    struct fixtext t = fixtext_in(buf, RELAY_VIA_MAX);
    fixtext_put(&t, SLICE("1."));
    fixtext_number(&t, minor);
    fixtext_put(&t, SLICE(" "));
    fixtext_put(&t, pseudonym);
    return fixtext_slice(&t);
}

static enum http_framing framing_for(enum http_framing in, unsigned client_minor)
{
    if (in == HTTP_BODY_UNTIL_CLOSE && client_minor >= 1)
        return HTTP_BODY_CHUNKED;
    if (in == HTTP_BODY_CHUNKED && client_minor == 0)
        return HTTP_BODY_UNTIL_CLOSE;
    return in;
}

bool relay_begin(struct relay *r, struct conn *to, const struct http_resp *resp,
                 unsigned client_minor, bool head_request, bool close, struct slice via)
{
    enum http_framing framing =
        head_request ? HTTP_BODY_NONE : framing_for(resp->framing, client_minor);
    *r = (struct relay){.to = to, .framing = framing, .open = true};
    close = close || framing == HTTP_BODY_UNTIL_CLOSE;

    char value[RELAY_VIA_MAX];
    struct h1_extra extra = {SLICE("Via"), relay_via(value, resp->minor, via)};
    struct strbuf head;
    strbuf_init(&head, HEAD_OUT_MAX);
    bool ok = h1_write_response(&head, resp, framing, close, &extra, 1);
    ASSERT(ok); /* the parser bounded what it accepted */
    conn_write(to, strbuf_slice(&head));
    strbuf_fini(&head);
    return close;
}

void relay_data(struct relay *r, struct slice data)
{
    if (data.n == 0 || r->framing == HTTP_BODY_NONE)
        return;
    r->body_bytes += data.n;
    if (r->framing != HTTP_BODY_CHUNKED) {
        conn_write(r->to, data);
        return;
    }
    char head[H1_CHUNK_HEAD_MAX];
    conn_write(r->to, slice_of(head, h1_chunk_head(head, data.n)));
    conn_write(r->to, data);
    conn_write(r->to, SLICE("\r\n"));
}

void relay_end(struct relay *r, const struct header_list *trailers)
{
    r->open = false;
    if (r->framing != HTTP_BODY_CHUNKED)
        return;
    struct strbuf end;
    strbuf_init(&end, 16 * KIB); /* trailers are at most 8 KiB as received */
    bool ok = h1_chunk_end(&end, trailers);
    ASSERT(ok);
    conn_write(r->to, strbuf_slice(&end));
    strbuf_fini(&end);
}
