/* Error codes: which reader by what the response looks like (retry-semantics §3.3), and what counts
 * as a code at all (§3.2; security requirement E10). A response that no reader understands has no
 * code, and its status alone decides. Nothing is ever inflated. */
#include "core/aws/errcode.h"

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

/* First row that fits. header: x-amzn-errortype counts, before the body. No reader: the body tells
 * nothing. */
static const struct {
    bool (*fits)(const struct http_resp *resp, struct slice body);
    bool header;
    void (*read)(struct slice body, bool whole, struct arena *a, struct errcode *out);
} readers[] = {
    {looks_cbor, false, NULL},
    {looks_json, true, errjson_read},
    {looks_xml, false, read_xml},
};

static bool has_coding(const struct http_resp *resp)
{
    struct slice coding = header_get(&resp->fields, SLICE("content-encoding"));
    return coding.n > 0 && !slice_eq_nocase(coding, SLICE("identity"));
}

void errcode_read(const struct http_resp *resp, struct slice body, bool whole, bool has_body,
                  struct arena *a, struct errcode *out)
{
    *out = (struct errcode){SLICE_NONE, ERRCODE_NONE};
    if (!has_body || has_coding(resp))
        body = SLICE_NONE;
    if (body.n > ERRCODE_BODY_MAX) {
        body.n = ERRCODE_BODY_MAX;
        whole = false;
    }
    size_t r = 0;
    while (r < ARRAY_LEN(readers) && !readers[r].fits(resp, body))
        r++;
    if (r == ARRAY_LEN(readers) || readers[r].header) {
        struct slice type = header_get(&resp->fields, SLICE("x-amzn-errortype"));
        out->code = arena_copy(a, errcode_clean(type));
        if (out->code.n)
            out->source = ERRCODE_HEADER;
    }
    if (out->code.n == 0 && body.n && r < ARRAY_LEN(readers) && readers[r].read)
        readers[r].read(body, whole, a, out);
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
