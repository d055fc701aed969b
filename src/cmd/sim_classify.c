/* Format retryd-classify-vectors/1: one request and one response in, error code and class out,
 * through the same identification, reading and classification as in the daemon. What is optional is
 * on for vectors of level "extended", off for the others. */
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
    struct aws_options options;
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

/* --- a vector --- */

static enum sim_result compare(const struct exchange *x, struct arena *a, struct err *why)
{
    struct aws_reading reading;
    const struct retry_outcome *o = &reading.outcome;
    enum retry_rule rule;
    sim_outcome(&x->resp, x->req.method_id, x->body, &x->target, &x->options, a, &reading);
    const char *class = retry_class_name(classify(&x->policy, o, &rule));
    if (!slice_eq(o->code, slice_str(x->code)))
        err_set(why, "step 1, code, expected %s, got %.*s", x->code ? x->code : "none",
                SLICE_FMT(o->code.n ? o->code : SLICE("none")));
    else if (strcmp(class, x->class) != 0)
        err_set(why, "step 1, class, expected %s, got %s", x->class, class);
    else
        return SIM_OK;
    return SIM_FAIL;
}

static void set_options(struct exchange *x, bool on)
{
    x->options = (struct aws_options){.modeled_errors = on, .s3_more = on, .crc32 = on};
    if (on) {
        x->policy.modeled_codes = aws_modeled_codes(&x->target);
        x->policy.crc32 = RETRY_CRC32_SUCCESS;
    }
}

static enum sim_result run(json_t *vector, struct arena *a, struct err *why)
{
    struct exchange x = {.class = NULL};
    const char *level = "core";
    json_t *request, *response, *expected;
    if (!sim_unpack(vector, "vector", why, "{s?s, s:o, s:o, s:o}", "level", &level, "request",
                    &request, "response", &response, "expected", &expected) ||
        !read_request(request, a, &x, why) || !read_response(response, a, &x, why) ||
        !read_expected(expected, &x, why))
        return SIM_BAD;
    aws_identify(&x.req, x.host, x.path, x.req_body, a, &x.target);
    x.policy = aws_policy(&x.target);
    set_options(&x, strcmp(level, "extended") == 0);
    return compare(&x, a, why);
}

static bool accepts(json_t *file, struct err *why)
{
    (void)file, (void)why;
    return true;
}

const struct sim_format sim_classify = {"retryd-classify-vectors/1", accepts, run};
