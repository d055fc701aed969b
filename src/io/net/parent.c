/* CONNECT through a parent proxy. */
#include "io/net/parent.h"

#include "core/base/strbuf.h"
#include <string.h>

enum {
    INTERIM_MAX = 8,          /* heads 1xx before the answer */
    REQUEST_MAX_BYTES = 4096, /* two authorities, Via, the credentials: each is bounded */
};

void parent_hop_init(struct parent_hop *hop)
{
    *hop = (struct parent_hop){.interim = 0};
    arena_init(&hop->arena);
}

void parent_hop_fini(struct parent_hop *hop)
{
    arena_fini(&hop->arena);
}

void parent_connect(const struct parent *p, struct conn *c, const char *host, uint16_t port,
                    const char *via)
{
    struct strbuf head;
    bool v6 = strchr(host, ':') != NULL;
    const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";
    strbuf_init(&head, REQUEST_MAX_BYTES);
    strbuf_printf(&head, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n", open, host, close,
                  port, open, host, close, port);
    if (via) {
        strbuf_put(&head, SLICE("Via: "));
        strbuf_put(&head, slice_str(via));
        strbuf_put(&head, SLICE("\r\n"));
    }
    if (p->authorization) {
        strbuf_put(&head, SLICE("Proxy-Authorization: "));
        strbuf_put(&head, slice_str(p->authorization));
        strbuf_put(&head, SLICE("\r\n"));
    }
    strbuf_put(&head, SLICE("\r\n"));
    ASSERT(!head.overflow);
    conn_write(c, strbuf_slice(&head));
    conn_flush(c);
    strbuf_fini(&head);
}

bool parent_status_is_final(unsigned status)
{
    static const unsigned later[] = {408, 425, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (status == later[i])
            return false;
    return true;
}

enum parent_answer parent_read(struct parent_hop *hop, struct conn *c, struct err *why)
{
    for (;;) {
        struct http_resp resp = {.status = 0};
        struct slice in = conn_in(c);
        enum parse p = h1_parse_response(&hop->head, in.p, in.n, &h1_response_limits, HTTP_CONNECT,
                                         &hop->arena, &resp);
        if (p == PARSE_MORE)
            return PARENT_MORE;
        if (p == PARSE_BAD) {
            err_set(why, "no HTTP/1.1 answer to CONNECT: %s", hop->head.problem);
            return PARENT_FAILED;
        }
        conn_consume(c, hop->head.consumed);
        hop->head = (struct h1_head){0};
        if (resp.status >= 200 && resp.status < 300)
            return PARENT_OPEN;
        if (resp.status >= 200 || resp.status == 101) {
            err_set(why, "answered %u to CONNECT", resp.status);
            return parent_status_is_final(resp.status) ? PARENT_REFUSED : PARENT_FAILED;
        }
        if (++hop->interim > INTERIM_MAX) {
            err_set(why, "too many interim answers to CONNECT");
            return PARENT_FAILED;
        }
    }
}
