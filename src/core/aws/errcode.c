/* Error codes: which reader by what the response looks like (retry-semantics §3.3), and what counts
 * as a code at all (§3.2; security requirement E10). A response that no reader understands has no
 * code, and its status alone decides. */
#include "core/aws/errcode.h"

#include "core/aws/coding.h"
#include "core/aws/errcbor.h"
#include "core/aws/errjson.h"
#include "core/aws/errxml.h"
#include "core/base/attr.h"

static struct slice content_type(const struct http_resp *resp)
{
    return header_get(&resp->fields, SLICE("content-type"));
}

static char first_of(struct slice body)
{
    for (size_t i = 0; i < body.n; i++) {
        if (body.p[i] != ' ' && body.p[i] != '\t' && body.p[i] != '\r' && body.p[i] != '\n')
            return body.p[i];
    }
    return '\0';
}

static bool looks_cbor(const struct http_resp *resp, struct slice body)
{
    (void)body;
    return slice_eq_nocase(header_get(&resp->fields, SLICE("smithy-protocol")),
                           SLICE("rpc-v2-cbor")) ||
           slice_starts_nocase(content_type(resp), SLICE("application/cbor"));
}

static bool looks_json(const struct http_resp *resp, struct slice body)
{
    return slice_has_nocase(content_type(resp), SLICE("json")) || first_of(body) == '{';
}

static bool looks_xml(const struct http_resp *resp, struct slice body)
{
    return slice_has_nocase(content_type(resp), SLICE("xml")) || first_of(body) == '<';
}

static void read_xml(struct slice body, bool whole, struct arena *a, struct errcode *out)
{
    (void)whole;
    errxml_read(body, a, out);
}

/* The response headers that bear codes, by format. */
enum { TYPE_HEADER = 1 << 0, QUERY_HEADER = 1 << 1 };

/* First row that fits; the last one fits always and reads no body. */
static const struct reader {
    enum errcode_format format;
    bool (*fits)(const struct http_resp *resp, struct slice body);
    unsigned headers;
    void (*read)(struct slice body, bool whole, struct arena *a, struct errcode *out);
} readers[] = {
    {ERRCODE_FORMAT_CBOR, looks_cbor, QUERY_HEADER, errcbor_read},
    {ERRCODE_FORMAT_JSON, looks_json, TYPE_HEADER | QUERY_HEADER, errjson_read},
    {ERRCODE_FORMAT_XML, looks_xml, 0, read_xml},
    {ERRCODE_FORMAT_NONE, NULL, TYPE_HEADER | QUERY_HEADER, NULL},
};

static const struct reader *choose_reader(const struct http_resp *resp, struct slice body)
{
    const struct reader *r = readers;
    while (r->fits && !r->fits(resp, body))
        r++;
    return r;
}

static void take(struct slice code, enum errcode_source source, struct arena *a,
                 struct errcode *out)
{
    if (code.n == 0)
        return;
    out->code = arena_copy(a, code);
    out->source = source;
}

/* "Code;Fault", exactly two parts and the first not empty; else empty. Two lines are a list, and
 * that has more than two parts. */
static struct slice query_code(const struct http_resp *resp)
{
    struct slice name = SLICE("x-amzn-query-error");
    struct slice value = header_get(&resp->fields, name);
    struct slice code = slice_of(value.p, slice_index(value, ';'));
    if (header_count(&resp->fields, name) != 1 || code.n == value.n)
        return SLICE_NONE;
    struct slice fault = slice_of(value.p + code.n + 1, value.n - code.n - 1);
    code = slice_trim(code);
    return slice_index(fault, ';') == fault.n && errcode_allowed(code) ? code : SLICE_NONE;
}

static void read_text(const struct http_resp *resp, struct coding_text body, struct arena *a,
                      struct errcode *out)
{
    const struct reader *r = choose_reader(resp, body.text);
    out->format = r->format;
    if (r->headers & TYPE_HEADER)
        take(errcode_clean(header_get(&resp->fields, SLICE("x-amzn-errortype"))), ERRCODE_HEADER, a,
             out);
    if (r->read && body.text.n > 0) {
        struct errcode in_body = *out;
        in_body.code = SLICE_NONE;
        r->read(body.text, body.whole, a, &in_body);
        out->parsed = in_body.parsed;
        if (out->code.n == 0 && in_body.code.n > 0)
            *out = in_body;
    }
    if (r->headers & QUERY_HEADER)
        take(query_code(resp), ERRCODE_QUERY_COMPAT, a, out);
}

void errcode_read(const struct http_resp *resp, struct slice body, bool whole, bool has_body,
                  struct arena *a, struct errcode *out)
{
    struct strbuf mem;
    *out = (struct errcode){.source = ERRCODE_NONE};
    if (!has_body)
        body = SLICE_NONE;
    if (body.n > ERRCODE_BODY_MAX) {
        body.n = ERRCODE_BODY_MAX;
        whole = false;
    }
    strbuf_init(&mem, CODING_OUT_MAX);
    read_text(resp, coding_undo(coding_of(&resp->fields), body, whole, &mem), a, out);
    strbuf_fini(&mem);
}

bool errcode_allowed(struct slice code)
{
    for (size_t i = 0; i < code.n; i++) {
        char c = code.p[i];
        if (!ascii_is_alpha(c) && !ascii_is_digit(c) && !(c && strchr("._:#/-", c)))
            return false;
    }
    return code.n > 0 && code.n <= ERRCODE_MAX;
}

struct slice errcode_clean(struct slice raw)
{
    raw.n = slice_index(raw, ',');
    raw.n = slice_index(raw, ':');
    size_t hash = slice_index(raw, '#');
    if (hash < raw.n)
        raw = slice_of(raw.p + hash + 1, raw.n - hash - 1);
    raw = slice_trim(raw);
    return errcode_allowed(raw) ? raw : SLICE_NONE;
}

const char *errcode_source_name(enum errcode_source s)
{
    static const char *const names[] = {
        [ERRCODE_NONE] = "none",
        [ERRCODE_HEADER] = "x-amzn-errortype",
        [ERRCODE_QUERY_COMPAT] = "x-amzn-query-error",
        [ERRCODE_JSON_CODE] = "json code",
        [ERRCODE_JSON_TYPE] = "json __type",
        [ERRCODE_XML] = "xml",
        [ERRCODE_CBOR] = "cbor",
    };
    return names[s];
}

const char *errcode_format_name(enum errcode_format f)
{
    static const char *const names[] = {
        [ERRCODE_FORMAT_NONE] = "none",
        [ERRCODE_FORMAT_CBOR] = "cbor",
        [ERRCODE_FORMAT_JSON] = "json",
        [ERRCODE_FORMAT_XML] = "xml",
    };
    return names[f];
}
