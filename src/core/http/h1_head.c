/* Strict head parser. One forward scan judges every byte where it stands and remembers its place;
 * once the empty line is there, the head is copied once onto the arena and cut, and the fields that
 * frame and route are judged together. */
#include "core/http/h1_head.h"
#include "core/base/attr.h"
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/http/hopbyhop.h"
#include "core/http/uri.h"

enum { METHOD_MAX = 64, BLANK_LINES_MAX = 4, LENGTH_DIGITS_MAX = 18 };

const struct h1_limits h1_request_limits = {64 * KIB, 16 * KIB, 256};
const struct h1_limits h1_response_limits = {128 * KIB, 0, 256};

static enum parse refuse(struct h1_head *st, unsigned status, const char *problem)
{
    st->status = status;
    st->problem = problem;
    return PARSE_BAD;
}

static enum parse enter(struct h1_head *st, enum h1_part part, size_t at)
{
    st->part = part;
    st->part_start = st->scanned = at;
    if (part == H1_FIELDS) {
        st->started = true;
        st->fields.scanned = st->fields.line_start = at;
    }
    return PARSE_OK;
}

/* Advances over bytes of the class, to the first other one or to the first beyond max of them. */
static char run(struct h1_head *st, const char *buf, size_t n, unsigned char class, size_t max)
{
    size_t i = st->scanned;
    size_t end = n - st->part_start > max ? st->part_start + max + 1 : n;
    while (i < end && (http_byte_class[(unsigned char)buf[i]] & class))
        i++;
    st->scanned = i;
    return i < n ? buf[i] : '\0';
}

/* Fixed text, where # stands for a digit and + for one that is not 0. */
static enum parse match(struct h1_head *st, const char *buf, size_t n, struct slice pattern)
{
    for (;;) {
        size_t j = st->scanned - st->part_start;
        if (j == pattern.n)
            return PARSE_OK;
        if (st->scanned == n)
            return PARSE_MORE;
        char c = buf[st->scanned], want = pattern.p[j];
        bool good = want == '#'   ? ascii_is_digit(c)
                    : want == '+' ? ascii_is_digit(c) && c != '0'
                                  : c == want;
        if (!good)
            return PARSE_BAD;
        st->scanned++;
    }
}

/* CRLF at st->scanned, where a CR was seen. */
static enum parse line_end(struct h1_head *st, const char *buf, size_t n)
{
    if (st->scanned + 1 == n)
        return PARSE_MORE;
    return buf[st->scanned + 1] == '\n' ? PARSE_OK : refuse(st, 400, h1_bad_byte('\r'));
}

static enum parse scan_method(struct h1_head *st, const char *buf, size_t n)
{
    char c = run(st, buf, n, HTTP_TCHAR, METHOD_MAX);
    size_t length = st->scanned - st->part_start;
    if (length > METHOD_MAX)
        return refuse(st, 400, "method too long");
    if (st->scanned == n)
        return PARSE_MORE;
    if (c == ' ' && length > 0)
        return enter(st, H1_TARGET, st->scanned + 1);
    if (c != '\r' || length > 0)
        return refuse(st, 400, length > 0 ? "bad byte in the method" : h1_bad_byte(c));
    enum parse p = line_end(st, buf, n);
    if (p != PARSE_OK)
        return p;
    if (++st->blank > BLANK_LINES_MAX)
        return refuse(st, 400, "too many empty lines before the request");
    st->head_start = st->scanned + 2;
    return enter(st, H1_METHOD, st->head_start);
}

static enum parse scan_target(struct h1_head *st, const char *buf, size_t n, size_t max)
{
    char c = run(st, buf, n, HTTP_TARGET, max);
    size_t length = st->scanned - st->part_start;
    if (length > max)
        return refuse(st, 414, "request target too long");
    if (st->scanned == n)
        return PARSE_MORE;
    if (c == ' ' && length > 0)
        return enter(st, H1_VERSION, st->scanned + 1);
    return refuse(st, 400,
                  c == '\r' ? "request line without a version" : "bad byte in the request target");
}

static enum parse scan_version(struct h1_head *st, const char *buf, size_t n)
{
    enum parse p = match(st, buf, n, SLICE("HTTP/#.#\r\n"));
    if (p == PARSE_BAD)
        return refuse(st, 400, "bad HTTP version or end of the request line");
    if (p == PARSE_MORE)
        return p;
    if (buf[st->part_start + 5] != '1')
        return refuse(st, 505, "HTTP version not supported");
    return enter(st, H1_FIELDS, st->scanned);
}

static enum parse scan_status(struct h1_head *st, const char *buf, size_t n)
{
    enum parse p = match(st, buf, n, SLICE("HTTP/1.# +##"));
    if (p == PARSE_BAD)
        return refuse(st, 400, "bad status line");
    if (p == PARSE_MORE || st->scanned == n)
        return PARSE_MORE;
    char c = buf[st->scanned];
    if (c != ' ' && c != '\r')
        return refuse(st, 400, "bad status line");
    return enter(st, H1_REASON, st->scanned + (c == ' '));
}

static enum parse scan_reason(struct h1_head *st, const char *buf, size_t n)
{
    char c = run(st, buf, n, HTTP_TEXT, n);
    if (st->scanned == n)
        return PARSE_MORE;
    if (c != '\r')
        return refuse(st, 400, h1_bad_byte(c));
    enum parse p = line_end(st, buf, n);
    return p == PARSE_OK ? enter(st, H1_FIELDS, st->scanned + 2) : p;
}

static enum parse scan_fields(struct h1_head *st, const char *buf, size_t n, size_t max)
{
    enum parse p = h1_fields_scan(&st->fields, buf, n, max);
    st->scanned = st->fields.scanned;
    if (p == PARSE_BAD)
        return refuse(st, st->fields.too_many ? 431 : 400, st->fields.problem);
    return p;
}

/* Up to the empty line that ends the head. */
static enum parse scan(struct h1_head *st, const char *buf, size_t n, const struct h1_limits *lim,
                       bool response)
{
    enum parse p = PARSE_OK;
    size_t seen = n < lim->head_bytes ? n : lim->head_bytes;
    while (p == PARSE_OK && st->part != H1_FIELDS) {
        switch (st->part) {
        case H1_METHOD:
            p = response ? scan_status(st, buf, seen) : scan_method(st, buf, seen);
            break;
        case H1_TARGET:
            p = scan_target(st, buf, seen, lim->target_bytes);
            break;
        case H1_VERSION:
            p = scan_version(st, buf, seen);
            break;
        case H1_REASON:
            p = scan_reason(st, buf, seen);
            break;
        case H1_FIELDS:
            break;
        }
    }
    if (p == PARSE_OK)
        p = scan_fields(st, buf, seen, lim->fields);
    if (p == PARSE_MORE && seen == lim->head_bytes)
        return refuse(st, 431, "head too large");
    return p;
}

/* The fields that decide framing, routing and persistence. */
enum known {
    HOST,
    EXPECT,
    CONNECTION,
    LENGTH,
    CODING,
    KNOWN_COUNT,
};

static const struct slice known_names[KNOWN_COUNT] = {
    {"Host", 4},
    {"Expect", 6},
    {"Connection", 10},
    {"Content-Length", 14},
    {"Transfer-Encoding", 17},
};

struct seen {
    size_t count;
    struct slice value; /* of the last one */
};

static void collect(const struct header_list *fields, struct seen seen[KNOWN_COUNT])
{
    for (size_t i = 0; i < fields->n; i++)
        for (size_t k = 0; k < KNOWN_COUNT; k++)
            if (slice_eq_nocase(fields->v[i].name, known_names[k])) {
                seen[k].count++;
                seen[k].value = fields->v[i].value;
            }
}

/* 501 for a well-formed list of codings that ends in chunked, 400 for anything worse. */
static unsigned coding_status(struct slice value)
{
    struct slice part;
    bool chunked = false;
    for (bool done = false; slice_next(&value, ',', &part, &done);) {
        part = slice_trim(part);
        if (chunked || !http_is_token(part))
            return 400;
        chunked = slice_eq_nocase(part, SLICE("chunked"));
    }
    return chunked ? 501 : 400;
}

/* RFC 9112 6.1-6.3, without its repairs: what is received once and well is used, all else refused.
 */
static enum parse judge_framing(struct h1_head *st, const struct seen seen[KNOWN_COUNT],
                                unsigned minor, enum http_framing *framing, uint64_t *length)
{
    if (seen[CODING].count > 1)
        return refuse(st, 400, "Transfer-Encoding more than once");
    if (seen[LENGTH].count > 1)
        return refuse(st, 400, "Content-Length more than once");
    if (seen[LENGTH].count > 0) {
        if (!num_u64(seen[LENGTH].value, LENGTH_DIGITS_MAX, UINT64_MAX, length))
            return refuse(st, 400, "bad Content-Length");
        *framing = HTTP_BODY_LENGTH;
    }
    if (seen[CODING].count > 0) {
        if (*framing == HTTP_BODY_LENGTH)
            return refuse(st, 400, "both Content-Length and Transfer-Encoding");
        if (minor == 0)
            return refuse(st, 400, "Transfer-Encoding with HTTP/1.0");
        if (!slice_eq_nocase(seen[CODING].value, SLICE("chunked")))
            return refuse(st, coding_status(seen[CODING].value), "Transfer-Encoding not supported");
        *framing = HTTP_BODY_CHUNKED;
    }
    return PARSE_OK;
}

static enum parse judge_connection(struct h1_head *st, const struct seen seen[KNOWN_COUNT],
                                   const struct header_list *fields, bool *close)
{
    if (seen[CONNECTION].count == 0)
        return PARSE_OK;
    if (hopbyhop_abused(fields))
        return refuse(st, 400, "bad Connection field");
    if (header_list_has_token(fields, known_names[CONNECTION], SLICE("close")))
        *close = true;
    return PARSE_OK;
}

static enum parse judge_host(struct h1_head *st, const struct seen *host,
                             const struct http_req *req)
{
    if (host->count > 1)
        return refuse(st, 400, "Host more than once");
    if (host->count == 0)
        return req->minor > 0 && req->method_id != HTTP_CONNECT ? refuse(st, 400, "Host missing")
                                                                : PARSE_OK;
    struct authority ignored;
    const char *why;
    return authority_parse(host->value, 80, &ignored, &why) ? PARSE_OK
                                                            : refuse(st, 400, "bad Host");
}

static enum parse judge_request(struct h1_head *st, struct http_req *req)
{
    struct seen seen[KNOWN_COUNT] = {0};
    collect(&req->fields, seen);
    req->close = req->minor == 0;
    enum parse p = judge_framing(st, seen, req->minor, &req->framing, &req->content_length);
    if (p == PARSE_OK)
        p = judge_host(st, &seen[HOST], req);
    if (p == PARSE_OK)
        p = judge_connection(st, seen, &req->fields, &req->close);
    if (p != PARSE_OK)
        return p;
    if (req->method_id == HTTP_CONNECT && req->framing != HTTP_BODY_NONE)
        return refuse(st, 400, "CONNECT with a body");
    if (seen[EXPECT].count > 0) {
        if (seen[EXPECT].count > 1 || !slice_eq_nocase(seen[EXPECT].value, SLICE("100-continue")))
            return refuse(st, 417, "unknown expectation");
        req->expect_continue = req->minor > 0;
    }
    return PARSE_OK;
}

/* Cuts what stands before sep off the front of *rest, sep dropped. */
static struct slice cut(struct slice *rest, char sep)
{
    size_t at = slice_index(*rest, sep);
    struct slice part = slice_of(rest->p, at);
    *rest = slice_of(rest->p + at + 1, rest->n - at - 1);
    return part;
}

enum parse h1_parse_request(struct h1_head *st, const char *buf, size_t n,
                            const struct h1_limits *lim, struct arena *a, struct http_req *out)
{
    enum parse p = scan(st, buf, n, lim, false);
    if (p != PARSE_OK)
        return p;
    st->consumed = st->scanned;
    struct slice rest =
        arena_copy(a, slice_of(buf + st->head_start, st->consumed - st->head_start));
    *out = (struct http_req){0};
    out->method = cut(&rest, ' ');
    out->method_id = http_method_of(out->method);
    out->target = cut(&rest, ' ');
    struct slice version = cut(&rest, '\n');
    out->minor = (unsigned)(version.p[7] - '0');
    h1_fields_split(rest, st->fields.count, a, &out->fields);
    return judge_request(st, out);
}

/* RFC 9112 6.3 items 1-2. */
static bool has_no_body(unsigned status, enum http_method request_method)
{
    return status < 200 || status == 204 || status == 304 || request_method == HTTP_HEAD ||
           (request_method == HTTP_CONNECT && status < 300);
}

static enum parse judge_response(struct h1_head *st, enum http_method request_method,
                                 struct http_resp *resp)
{
    struct seen seen[KNOWN_COUNT] = {0};
    collect(&resp->fields, seen);
    resp->close = resp->minor == 0;
    enum parse p = judge_framing(st, seen, resp->minor, &resp->framing, &resp->content_length);
    if (p == PARSE_OK)
        p = judge_connection(st, seen, &resp->fields, &resp->close);
    if (p != PARSE_OK)
        return p;
    if (has_no_body(resp->status, request_method)) {
        /* An origin that frames a body where none can be may well send one: not to be reused. */
        if ((resp->status < 200 || resp->status == 204) &&
            (resp->framing == HTTP_BODY_CHUNKED || resp->content_length > 0))
            resp->close = true;
        resp->framing = HTTP_BODY_NONE;
    } else if (resp->framing == HTTP_BODY_NONE) {
        resp->framing = HTTP_BODY_UNTIL_CLOSE;
        resp->close = true;
    }
    return PARSE_OK;
}

enum parse h1_parse_response(struct h1_head *st, const char *buf, size_t n,
                             const struct h1_limits *lim, enum http_method request_method,
                             struct arena *a, struct http_resp *out)
{
    enum parse p = scan(st, buf, n, lim, true);
    if (p != PARSE_OK)
        return p;
    st->consumed = st->scanned;
    struct slice rest = arena_copy(a, slice_of(buf, st->consumed));
    *out = (struct http_resp){0};
    struct slice line = cut(&rest, '\r');
    rest = slice_of(rest.p + 1, rest.n - 1);
    out->minor = (unsigned)(line.p[7] - '0');
    for (size_t i = 9; i < 12; i++)
        out->status = out->status * 10 + (unsigned)(line.p[i] - '0');
    out->reason = line.n > 13 ? slice_of(line.p + 13, line.n - 13) : SLICE_NONE;
    h1_fields_split(rest, st->fields.count, a, &out->fields);
    return judge_response(st, request_method, out);
}
