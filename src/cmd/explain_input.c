/* From the command line, or a raw file, to one case. Both are text of HTTP/1.1 in the end and go
 * through the parsers of the proxy, with their limits: options are written down as heads first.
 *
 * A raw file is a request, then a response. Where the request ends says its own framing: at the
 * empty line, or after the body that Content-Length or chunked coding measures. Line breaks between
 * the two are passed over, interim responses too. The response ends by its own framing, or with the
 * file; when it should go on there, it counts as cut short. A file whose first line ends in LF
 * alone came through an editor: the lines of its heads are then read as if they ended in CRLF. */
#include "cmd/explain.h"

#include "core/base/num.h"
#include "core/base/strbuf.h"
#include "core/base/units.h"
#include "core/http/h1_body.h"
#include "core/http/h1_head.h"

#include <errno.h>

#define INPUT_MAX_BYTES ((size_t)MIB)
#define HEAD_MAX_BYTES ((size_t)(256 * KIB))

/* Failures before there is a response head. */
#define BEFORE_HEAD                                                                                \
    (RETRY_FAILURE(RETRY_FAIL_DNS) | RETRY_FAILURE(RETRY_FAIL_CONNECT_REFUSED) |                   \
     RETRY_FAILURE(RETRY_FAIL_CONNECT_TIMEOUT) | RETRY_FAILURE(RETRY_FAIL_TLS) |                   \
     RETRY_FAILURE(RETRY_FAIL_TLS_TIMEOUT) | RETRY_FAILURE(RETRY_FAIL_CERTIFICATE) |               \
     RETRY_FAILURE(RETRY_FAIL_PARENT) | RETRY_FAILURE(RETRY_FAIL_PARENT_REFUSED) |                 \
     RETRY_FAILURE(RETRY_FAIL_POLICY) | RETRY_FAILURE(RETRY_FAIL_SEND) |                           \
     RETRY_FAILURE(RETRY_FAIL_RESET) | RETRY_FAILURE(RETRY_FAIL_CLOSED) |                          \
     RETRY_FAILURE(RETRY_FAIL_OVERLOAD) | RETRY_FAILURE(RETRY_FAIL_RATE_LIMIT))

/* Heads are read from here; bodies are found behind them. */
struct text {
    struct slice rest;
    bool lf; /* its lines end in LF alone */
};

struct source {
    struct arena *a;
    struct err *why;
};

/* --- reading files --- */

static bool read_all(const char *name, FILE *in, struct source *s, struct slice *out)
{
    bool is_file = strcmp(name, "-") != 0;
    FILE *f = is_file ? fopen(name, "re") : in;
    if (!f)
        return err_set(s->why, "%s: %s", name, strerror(errno));
    char *p = arena_alloc(s->a, INPUT_MAX_BYTES + 1);
    size_t n = fread(p, 1, INPUT_MAX_BYTES + 1, f);
    int error = ferror(f) ? errno : 0;
    if (is_file)
        fclose(f);
    *out = slice_of(p, n);
    if (error)
        return err_set(s->why, "%s: %s", name, strerror(error));
    return n <= INPUT_MAX_BYTES ||
           err_set(s->why, "%s: larger than %zu bytes", name, INPUT_MAX_BYTES);
}

/* --- text of HTTP --- */

/* The head at the start of the text with CRLF at the end of its lines; *taken: its bytes in the
 * text. */
static struct slice with_crlf(struct slice in, struct arena *a, size_t *taken)
{
    size_t limit = in.n < HEAD_MAX_BYTES ? in.n : HEAD_MAX_BYTES, n = 0, line = 0, i = 0;
    char *out = arena_alloc(a, 2 * limit + 1);
    for (bool end = false; i < limit && !end; i++) {
        if (in.p[i] == '\n') {
            end = n == line;
            out[n++] = '\r';
            line = n + 1;
        }
        out[n++] = in.p[i];
    }
    *taken = i;
    return slice_of(out, n);
}

static struct slice next_head(const struct text *t, struct arena *a, size_t *taken)
{
    *taken = 0;
    return t->lf ? with_crlf(t->rest, a, taken) : t->rest;
}

static void advance(struct text *t, size_t n)
{
    t->rest = slice_of(t->rest.p + n, t->rest.n - n);
}

static void skip_line_breaks(struct text *t)
{
    while (t->rest.n > 0 && (t->rest.p[0] == '\n' || t->rest.p[0] == '\r'))
        advance(t, 1);
}

static bool head_problem(enum parse p, const struct h1_head *h, const char *what, struct source *s)
{
    return err_set(s->why, "%s: %s", what, p == PARSE_MORE ? "the head is incomplete" : h->problem);
}

static bool parse_request(struct text *t, struct source *s, struct http_req *out)
{
    struct h1_head h = {0};
    size_t taken;
    struct slice head = next_head(t, s->a, &taken);
    enum parse p = h1_parse_request(&h, head.p, head.n, &h1_request_limits, s->a, out);
    if (p != PARSE_OK)
        return head_problem(p, &h, "request", s);
    advance(t, t->lf ? taken : h.consumed);
    return true;
}

static bool parse_response(struct text *t, enum http_method method, struct source *s,
                           struct http_resp *out)
{
    struct h1_head h = {0};
    size_t taken;
    struct slice head = next_head(t, s->a, &taken);
    *out = (struct http_resp){0};
    enum parse p = h1_parse_response(&h, head.p, head.n, &h1_response_limits, method, s->a, out);
    if (p != PARSE_OK)
        return head_problem(p, &h, "response", s);
    advance(t, t->lf ? taken : h.consumed);
    return true;
}

/* The body at the start of the text, off it; *ended: its end is there, too. */
static bool read_body(struct text *t, enum http_framing framing, uint64_t length, const char *what,
                      struct source *s, struct slice *out, bool *ended)
{
    struct h1_body b;
    enum parse p = framing == HTTP_BODY_NONE ? PARSE_OK : PARSE_MORE;
    char *body = arena_alloc(s->a, t->rest.n + 1);
    size_t n = 0, used = 1;
    h1_body_init(&b, framing, length);
    while (p == PARSE_MORE && used > 0) {
        struct slice piece;
        p = h1_body_read(&b, t->rest.p, t->rest.n, s->a, &used, &piece);
        if (piece.n > 0)
            memcpy(body + n, piece.p, piece.n);
        n += piece.n;
        advance(t, used);
    }
    *ended = p == PARSE_OK || h1_body_eof(&b);
    *out = slice_of(body, n);
    const char *problem = p == PARSE_BAD ? b.problem : NULL;
    h1_body_fini(&b);
    return !problem || err_set(s->why, "%s body: %s", what, problem);
}

/* --- where the request wants to go: as for a proxy, or within an opened tunnel --- */

static bool find_origin(struct explain_case *x, struct source *s)
{
    struct target t;
    const char *problem = "";
    if (x->req.method_id == HTTP_CONNECT || x->req.method_id == HTTP_TRACE)
        return err_set(s->why, "request: CONNECT and TRACE are not sent on");
    if (target_parse(x->req.target, false, &t, &problem) == TARGET_BAD)
        return err_set(s->why, "request target: %s", problem);
    x->path_query = t.path_query;
    x->plain = t.form == TARGET_ABSOLUTE && !t.https;
    x->origin = t.authority;
    struct slice host = header_get(&x->req.fields, SLICE("Host"));
    if (t.form == TARGET_ABSOLUTE)
        return true;
    if (!host.p)
        return err_set(s->why, "request: Host missing");
    return authority_parse(host, 443, &x->origin, &problem) ||
           err_set(s->why, "request: Host: %s", problem);
}

/* --- failures --- */

static bool find_failure(const char *name, struct source *s, enum retry_failure *out)
{
    char known[EXPLAIN_LINE_MAX] = "";
    size_t n = 0;
    for (unsigned f = RETRY_FAIL_NONE + 1; f < RETRY_FAIL_COUNT; f++) {
        const char *word = retry_failure_name((enum retry_failure)f);
        if (strcmp(word, name) == 0) {
            *out = (enum retry_failure)f;
            return true;
        }
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", word);
    }
    return err_set(s->why, "--failure: one of %s", known);
}

/* A failure and a response: only one that can come within a body. Without a word of failure a body
 * that is not whole was cut short. */
static bool join_failure(const struct explain_args *args, struct source *s, struct explain_case *x)
{
    if (args->failure && !find_failure(args->failure, s, &x->failure))
        return false;
    if (x->has_response && (BEFORE_HEAD & RETRY_FAILURE(x->failure)))
        return err_set(s->why, "--failure %s: then there is no response", args->failure);
    if (x->has_response && !x->failure && !x->body_ended)
        x->failure = RETRY_FAIL_TRUNCATED;
    return x->has_response || x->failure || err_set(s->why, "no response: give one, or --failure");
}

/* --- a raw file --- */

/* "…; the body of the request before it ended at byte 321" */
static bool read_final_response(struct text *t, struct slice whole, struct source *s,
                                struct explain_case *x)
{
    enum { INTERIM_MAX = 32 };
    for (unsigned i = 0; i <= INTERIM_MAX; i++) {
        size_t at = whole.n - t->rest.n;
        if (!parse_response(t, x->req.method_id, s, &x->resp)) {
            size_t n = strlen(s->why->text);
            snprintf(s->why->text + n, sizeof s->why->text - n,
                     ", at byte %zu, where by its own framing the message before it ends", at);
            return false;
        }
        if (x->resp.status >= 200)
            return true;
        if (x->resp.status == 101)
            break;
        skip_line_breaks(t);
    }
    return err_set(s->why, "response: status 101, or too many interim responses");
}

static bool read_raw(const struct explain_args *args, FILE *in, struct source *s,
                     struct explain_case *x)
{
    struct slice whole = SLICE_NONE;
    bool ended = false;
    if (!read_all(args->raw, in, s, &whole))
        return false;
    struct text t = {.rest = whole};
    skip_line_breaks(&t);
    size_t eol = slice_index(t.rest, '\n');
    t.lf = eol < t.rest.n && (eol == 0 || t.rest.p[eol - 1] != '\r');
    if (!parse_request(&t, s, &x->req) ||
        !read_body(&t, x->req.framing, x->req.content_length, "request", s, &x->req_body, &ended))
        return false;
    if (!ended)
        return err_set(s->why, "request body: cut short; nothing can follow it");
    skip_line_breaks(&t);
    x->has_response = t.rest.n > 0;
    if (!x->has_response)
        return true;
    if (!read_final_response(&t, whole, s, x) ||
        !read_body(&t, x->resp.framing, x->resp.content_length, "response", s, &x->body,
                   &x->body_ended))
        return false;
    skip_line_breaks(&t);
    return t.rest.n == 0 || err_set(s->why, "response: %zu bytes follow its end", t.rest.n);
}

/* --- options --- */

static bool has_break(const char *text)
{
    return strpbrk(text, "\r\n") != NULL;
}

/* drop_framing: the body is what is given, whatever its head once said. */
static bool put_fields(const struct explain_lines *lines, const char *option, bool drop_framing,
                       struct source *s, struct strbuf *out)
{
    for (size_t i = 0; i < lines->n; i++) {
        struct slice line = slice_str(lines->v[i]), name = line;
        name.n = slice_index(line, ':');
        if (name.n == line.n || has_break(lines->v[i]))
            return err_set(s->why, "%s: give 'Name: value', on one line", option);
        if (drop_framing && (slice_eq_nocase(name, SLICE("Content-Length")) ||
                             slice_eq_nocase(name, SLICE("Transfer-Encoding"))))
            continue;
        strbuf_put(out, line);
        strbuf_put(out, SLICE("\r\n"));
    }
    return true;
}

static bool is_target(const char *path)
{
    for (const char *p = path; *p; p++)
        if (!(http_byte_class[(unsigned char)*p] & HTTP_TARGET))
            return false;
    return *path != '\0';
}

static bool write_request(const struct explain_args *args, struct source *s, struct strbuf *out)
{
    const char *method = args->method ? args->method : "GET", *path = args->path ? args->path : "/";
    struct authority ignored;
    const char *problem = "";
    if (!args->host)
        return err_set(s->why, "give --host, or a file with --raw");
    if (!authority_parse(slice_str(args->host), 443, &ignored, &problem))
        return err_set(s->why, "--host: %s", problem);
    if (!http_is_token(slice_str(method)))
        return err_set(s->why, "--method: no method");
    if (!is_target(path))
        return err_set(s->why, "--path: no request target");
    strbuf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, args->host);
    if (!put_fields(&args->headers, "--header", false, s, out))
        return false;
    strbuf_put(out, SLICE("\r\n"));
    return !out->overflow || err_set(s->why, "--header: too much");
}

static bool write_response(const struct explain_args *args, struct slice body, struct source *s,
                           struct strbuf *out)
{
    uint64_t status;
    if (!num_u64(slice_str(args->status), 3, 599, &status) || status < 200)
        return err_set(s->why, "--status: 200 to 599");
    strbuf_printf(out, "HTTP/1.1 %u \r\n", (unsigned)status);
    /* Before a failure the head says how much should have come. */
    bool whole = !args->failure;
    if (!put_fields(&args->response_headers, "--response-header", whole, s, out))
        return false;
    if (whole && status != 204 && status != 304)
        strbuf_printf(out, "Content-Length: %zu\r\n", body.n);
    strbuf_put(out, SLICE("\r\n"));
    return !out->overflow || err_set(s->why, "--response-header: too much");
}

static bool parse_options(const struct explain_args *args, FILE *in, struct source *s,
                          struct strbuf *mem, struct explain_case *x)
{
    struct slice body = SLICE_NONE;
    if (!write_request(args, s, mem))
        return false;
    struct text t = {.rest = strbuf_slice(mem)};
    if (!parse_request(&t, s, &x->req))
        return false;
    if (args->body && !read_all(args->body, in, s, &body))
        return false;
    x->has_response = args->status != NULL;
    if (!x->has_response)
        return args->body || args->response_headers.n > 0
                   ? err_set(s->why, "a response needs its --status")
                   : true;
    strbuf_reset(mem);
    if (!write_response(args, body, s, mem))
        return false;
    t.rest = strbuf_slice(mem);
    if (!parse_response(&t, x->req.method_id, s, &x->resp))
        return false;
    x->body = body;
    x->body_ended = !args->failure;
    return x->resp.framing != HTTP_BODY_NONE || body.n == 0 ||
           err_set(s->why, "--body: this response has none");
}

static bool read_options(const struct explain_args *args, FILE *in, struct source *s,
                         struct explain_case *x)
{
    struct strbuf mem;
    strbuf_init(&mem, HEAD_MAX_BYTES);
    bool good = parse_options(args, in, s, &mem, x);
    strbuf_fini(&mem);
    return good;
}

static bool excludes_raw(const struct explain_args *args)
{
    return args->host || args->method || args->path || args->status || args->body ||
           args->headers.n > 0 || args->response_headers.n > 0;
}

bool explain_input(const struct explain_args *args, FILE *in, struct arena *a,
                   struct explain_case *out, struct err *why)
{
    struct source s = {a, why};
    uint64_t attempt = 1;
    *out = (struct explain_case){.attempt = 1};
    if (args->listener)
        out->listener = slice_str(args->listener);
    if (args->attempt &&
        (!num_u64(slice_str(args->attempt), 3, EXPLAIN_STEPS_MAX, &attempt) || attempt == 0))
        return err_set(why, "--attempt: 1 to %d", EXPLAIN_STEPS_MAX);
    out->attempt = (unsigned)attempt;
    if (args->raw && excludes_raw(args))
        return err_set(
            why,
            "--raw: the file says it all; only --failure, --attempt and --listener go with it");
    return (args->raw ? read_raw(args, in, &s, out) : read_options(args, in, &s, out)) &&
           find_origin(out, &s) && join_failure(args, &s, out);
}
