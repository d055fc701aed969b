/* Own answers: one row a kind, one template a protocol. */
#include "proxy/reply.h"
#include "core/base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>

/* The one status that must name a scheme (RFC 9110 15.5.8). */
enum { PROXY_AUTHENTICATION_REQUIRED = 407 };

struct row {
    unsigned status;
    const char *word, *code, *text;
};

static const struct row rows[REPLY_COUNT] = {
#define REPLY(kind, status, word, code, text) [REPLY_##kind] = {status, word, code, text},
#include "proxy/reply.def"
#undef REPLY
};

/* For each protocol: content type, and the body around code, message and request id. */
static const struct {
    const char *content_type, *before, *between, *after_text, *end;
} shapes[] = {
    [AWS_WIRE_JSON] = {"application/x-amz-json-1.0", "{\"__type\":\"", "\",\"message\":\"",
                       "\",\"requestId\":\"", "\"}"},
    [AWS_WIRE_QUERY] = {"text/xml",
                        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<ErrorResponse><Error><Type>Receiver</Type><Code>",
                        "</Code><Message>", "</Message></Error><RequestId>",
                        "</RequestId></ErrorResponse>"},
    [AWS_WIRE_EC2] = {"text/xml",
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<Response><Errors><Error><Code>",
                      "</Code><Message>", "</Message></Error></Errors><RequestID>",
                      "</RequestID></Response>"},
    [AWS_WIRE_REST_XML] = {"application/xml",
                           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>",
                           "</Code><Message>", "</Message><RequestId>", "</RequestId></Error>"},
};

/* Text that is safe inside a JSON string and inside XML: printable ASCII without the characters
 * that either gives a meaning. Details are lines of our own, but may quote a name that OpenSSL or
 * the resolver gave. */
static void put_text(struct strbuf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        bool plain = *p >= 0x20 && *p < 0x7f && strchr("<>&\"'\\", *p) == NULL;
        strbuf_putc(out, plain ? *p : '?');
    }
}

void reply_write(struct conn *to, enum reply_kind kind, enum aws_wire wire, bool head_request,
                 bool close, uint64_t xid, const char *detail)
{
    const struct row *row = &rows[kind];
    struct strbuf body, head;
    strbuf_init(&body, 4096);
    strbuf_init(&head, 4096);

    strbuf_put(&body, slice_str(shapes[wire].before));
    strbuf_put(&body, slice_str(row->code));
    strbuf_put(&body, slice_str(shapes[wire].between));
    strbuf_put(&body, SLICE("retryd: "));
    put_text(&body, row->text);
    if (detail[0] != '\0') {
        strbuf_put(&body, SLICE(" ("));
        put_text(&body, detail);
        strbuf_putc(&body, ')');
    }
    strbuf_put(&body, slice_str(shapes[wire].after_text));
    strbuf_printf(&body, "retryd-%" PRIx64, xid);
    strbuf_put(&body, slice_str(shapes[wire].end));

    strbuf_printf(&head,
                  "HTTP/1.1 %u retryd\r\nX-Retryd-Error: %s\r\nX-Amzn-RequestId: retryd-%" PRIx64
                  "\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s\r\n",
                  row->status, row->word, xid, shapes[wire].content_type, body.n,
                  row->status == PROXY_AUTHENTICATION_REQUIRED
                      ? "Proxy-Authenticate: Basic realm=\"retryd\", charset=\"UTF-8\"\r\n"
                      : "",
                  close ? "Connection: close\r\n" : "");
    conn_write(to, strbuf_slice(&head));
    if (!head_request)
        conn_write(to, strbuf_slice(&body));
    conn_flush(to);
    strbuf_fini(&head);
    strbuf_fini(&body);
}

unsigned reply_status(enum reply_kind kind)
{
    return rows[kind].status;
}

const char *reply_word(enum reply_kind kind)
{
    return rows[kind].word;
}

enum reply_kind reply_for_failure(enum retry_failure f)
{
    static const enum reply_kind kinds[RETRY_FAIL_COUNT] = {
        [RETRY_FAIL_NONE] = REPLY_MALFORMED,
        [RETRY_FAIL_DNS] = REPLY_DNS,
        [RETRY_FAIL_CONNECT_REFUSED] = REPLY_CONNECT_REFUSED,
        [RETRY_FAIL_CONNECT_TIMEOUT] = REPLY_CONNECT_TIMEOUT,
        [RETRY_FAIL_TLS] = REPLY_TLS,
        [RETRY_FAIL_TLS_TIMEOUT] = REPLY_TLS_TIMEOUT,
        [RETRY_FAIL_CERTIFICATE] = REPLY_CERTIFICATE,
        [RETRY_FAIL_POLICY] = REPLY_ADDRESS,
        [RETRY_FAIL_PARENT] = REPLY_PARENT,
        [RETRY_FAIL_PARENT_REFUSED] = REPLY_PARENT_REFUSED,
        [RETRY_FAIL_SEND] = REPLY_SEND,
        [RETRY_FAIL_RESET] = REPLY_RESET,
        [RETRY_FAIL_CLOSED] = REPLY_CLOSED,
        [RETRY_FAIL_READ_TIMEOUT] = REPLY_RESPONSE_TIMEOUT,
        [RETRY_FAIL_MALFORMED] = REPLY_MALFORMED,
        [RETRY_FAIL_TRUNCATED] = REPLY_TRUNCATED,
        [RETRY_FAIL_CHECKSUM] = REPLY_TRUNCATED,
        [RETRY_FAIL_BODY_RESET] = REPLY_TRUNCATED,
        [RETRY_FAIL_OVERLOAD] = REPLY_OVERLOAD,
        [RETRY_FAIL_RATE_LIMIT] = REPLY_RATE_LIMIT,
    };
    return kinds[f];
}

enum reply_kind reply_for_status(unsigned status)
{
    switch (status) {
    case 414:
        return REPLY_TARGET_TOO_LONG;
    case 417:
        return REPLY_EXPECTATION;
    case 431:
        return REPLY_HEAD_TOO_LARGE;
    case 501:
        return REPLY_NOT_IMPLEMENTED;
    case 505:
        return REPLY_VERSION;
    default:
        return REPLY_BAD_REQUEST;
    }
}

enum retry_failure reply_failure_of_net(enum net_fail f)
{
    switch (f) {
    case NET_OK:
        return RETRY_FAIL_NONE;
    case NET_DNS:
        return RETRY_FAIL_DNS;
    case NET_DENIED:
        return RETRY_FAIL_POLICY;
    case NET_REFUSED:
        return RETRY_FAIL_CONNECT_REFUSED;
    case NET_CONNECT_TIMEOUT:
        return RETRY_FAIL_CONNECT_TIMEOUT;
    case NET_TLS:
    case NET_DISTRUSTED:
        return RETRY_FAIL_TLS;
    case NET_TLS_TIMEOUT:
        return RETRY_FAIL_TLS_TIMEOUT;
    case NET_CERTIFICATE:
        return RETRY_FAIL_CERTIFICATE;
    case NET_RESET:
    case NET_TRUNCATED:
        return RETRY_FAIL_RESET;
    case NET_PARENT:
        return RETRY_FAIL_PARENT;
    case NET_PARENT_REFUSED:
        return RETRY_FAIL_PARENT_REFUSED;
    case NET_STARVED:
    case NET_LOCAL:
        return RETRY_FAIL_OVERLOAD;
    }
    return RETRY_FAIL_RESET;
}
