/* Format retryd-classify-vectors/1: one request and one response in, error code and class out,
 * through the same identification, reading and classification as in the daemon.
 *
 * What is not built is a row of `missing`, found by what a vector contains; a feature that gets
 * built loses its row here and nothing else. */
#include "cmd/sim.h"

#include "core/retry/classify.h"

struct exchange {
    struct http_req req;
    struct slice host, path, req_body;
    struct http_resp resp;
    struct slice body;
    const char *code; /* expected; NULL: none */
    const char *class;
    struct aws_target target;
    struct retry_policy policy;
};

/* --- reading --- */

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648 4, padded. */
static bool base64(struct slice text, struct arena *a, struct slice *out)
{
    char *p = arena_alloc(a, text.n / 4 * 3 + 1);
    size_t n = 0, pad = 0;
    while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
        pad++;
    if (text.n % 4 != 0)
        return false;
    uint32_t bits = 0;
    for (size_t i = 0; i < text.n; i++) {
        int v = i < text.n - pad ? sextet(text.p[i]) : 0;
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4 == 3) {
            p[n++] = (char)(bits >> 16);
            p[n++] = (char)(bits >> 8);
            p[n++] = (char)bits;
        }
    }
    *out = slice_of(p, n - pad);
    return true;
}

static bool read_body(const char *body, const char *encoded, struct arena *a, struct slice *out,
                      struct err *why)
{
    if (body && encoded)
        return err_set(why, "response: body and body_base64 exclude each other");
    *out = slice_str(body);
    if (encoded && !base64(slice_str(encoded), a, out))
        return err_set(why, "response: body_base64: not base64");
    return true;
}

static bool read_request(json_t *j, struct arena *a, struct exchange *x, struct err *why)
{
    const char *method, *host, *path, *body = NULL;
    json_t *headers = NULL;
    if (!sim_unpack(j, "request", why, "{s:s, s:s, s:s, s?o, s?s !}", "method", &method, "host",
                    &host, "path", &path, "headers", &headers, "body", &body))
        return false;
    if (path[0] != '/')
        return err_set(why, "request: path: must begin with /");
    x->host = slice_str(host);
    x->path = slice_str(path);
    x->req_body = slice_str(body);
    x->req.method = slice_str(method);
    x->req.method_id = http_method_of(x->req.method);
    x->req.target = x->path;
    x->req.minor = 1;
    x->req.framing = body ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    x->req.content_length = x->req_body.n;
    header_add(&x->req.fields, a, SLICE("host"), x->host);
    return sim_headers(headers, &x->req.fields, a, why);
}

static bool read_response(json_t *j, struct arena *a, struct exchange *x, struct err *why)
{
    const char *body = NULL, *encoded = NULL;
    json_t *headers = NULL, *status;
    json_int_t n = 0;
    if (!sim_unpack(j, "response", why, "{s:o, s?o, s?s, s?s !}", "status", &status, "headers",
                    &headers, "body", &body, "body_base64", &encoded) ||
        !sim_number(status, "response: status", 200, 599, &n, why) ||
        !sim_headers(headers, &x->resp.fields, a, why) ||
        !read_body(body, encoded, a, &x->body, why))
        return false;
    x->resp.status = (unsigned)n;
    x->resp.minor = 1;
    x->resp.framing = x->body.n > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    x->resp.content_length = x->body.n;
    return true;
}

static bool read_expected(json_t *j, struct exchange *x, struct err *why)
{
    json_t *code;
    if (!sim_unpack(j, "expected", why, "{s:o, s:s !}", "code", &code, "class", &x->class))
        return false;
    if (!json_is_string(code) && !json_is_null(code))
        return err_set(why, "expected: code: must be a string or null");
    x->code = json_string_value(code);
    return true;
}

/* --- what is not built --- */

static bool has_cbor(const struct exchange *x)
{
    return header_has(&x->resp.fields, SLICE("smithy-protocol")) ||
           slice_has_nocase(header_get(&x->resp.fields, SLICE("content-type")), SLICE("cbor"));
}

static bool has_coding(const struct exchange *x)
{
    struct slice coding = header_get(&x->resp.fields, SLICE("content-encoding"));
    return coding.n > 0 && !slice_eq_nocase(coding, SLICE("identity"));
}

static bool has_query_error(const struct exchange *x)
{
    return header_has(&x->resp.fields, SLICE("x-amzn-query-error"));
}

/* A code makes the response retryable that no table lists, under a status that does not. */
static bool is_modeled(const struct exchange *x)
{
    struct retry_outcome o = {.status = x->resp.status, .code = slice_str(x->code)};
    enum retry_rule rule;
    bool retryable = strcmp(x->class, retry_class_name(RETRY_TRANSIENT)) == 0 ||
                     strcmp(x->class, retry_class_name(RETRY_THROTTLING)) == 0;
    return retryable && x->code && x->resp.status >= 300 &&
           classify(&x->policy, &o, &rule) == RETRY_FINAL;
}

static const struct {
    const char *feature;
    bool extended_only;
    bool (*needed)(const struct exchange *x);
} missing[] = {
    {"CBOR error bodies", false, has_cbor},
    {"content codings of error bodies", false, has_coding},
    {"x-amzn-query-error", false, has_query_error},
    {"modeled errors", true, is_modeled},
};

static bool is_extended(json_t *vector)
{
    const char *level = json_string_value(json_object_get(vector, "level"));
    return level && strcmp(level, "extended") == 0;
}

static bool needs_missing(json_t *vector, const struct exchange *x, struct err *why)
{
    for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
        if (missing[i].extended_only && !is_extended(vector))
            continue;
        if (missing[i].needed(x)) {
            err_set(why, "needs %s", missing[i].feature);
            return true;
        }
    }
    return false;
}

/* --- a vector --- */

static enum sim_result compare(const struct exchange *x, struct arena *a, struct err *why)
{
    struct retry_outcome o;
    enum retry_rule rule;
    sim_outcome(&x->resp, x->req.method_id, x->body, &x->target, a, &o);
    const char *class = retry_class_name(classify(&x->policy, &o, &rule));
    if (!slice_eq(o.code, slice_str(x->code)))
        err_set(why, "step 1, code, expected %s, got %.*s", x->code ? x->code : "none",
                SLICE_FMT(o.code.n ? o.code : SLICE("none")));
    else if (strcmp(class, x->class) != 0)
        err_set(why, "step 1, class, expected %s, got %s", x->class, class);
    else
        return SIM_OK;
    return SIM_FAIL;
}

static enum sim_result run(json_t *vector, struct arena *a, struct err *why)
{
    struct exchange x = {.class = NULL};
    json_t *request, *response, *expected;
    if (!sim_unpack(vector, "vector", why, "{s:o, s:o, s:o}", "request", &request, "response",
                    &response, "expected", &expected) ||
        !read_request(request, a, &x, why) || !read_response(response, a, &x, why) ||
        !read_expected(expected, &x, why))
        return SIM_BAD;
    aws_identify(&x.req, x.host, x.path, x.req_body, a, &x.target);
    x.policy = aws_policy(&x.target);
    return needs_missing(vector, &x, why) ? SIM_SKIP : compare(&x, a, why);
}

static bool accepts(json_t *file, struct err *why)
{
    (void)file, (void)why;
    return true;
}

const struct sim_format sim_classify = {"retryd-classify-vectors/1", accepts, run};
