/* The byte-level cases of tests/vectors/http1_parser.tsv: every one gets its verdict, and the same
 * verdict, message count and body bytes however its bytes are cut (security requirements A1, A2).
 */
#include "unit.h"

#include "core/base/num.h"
#include "core/http/h1_body.h"
#include "core/http/h1_head.h"
#include "core/http/uri.h"

#include <stdio.h>

enum { LINE_MAX_BYTES = 64 * 1024, CASE_MAX_BYTES = 4 * 1024 * 1024, CUT_MAX_BYTES = 4096 };

/* One connection, read until its bytes end. */
struct reader {
    enum http_method answers; /* HTTP_OTHER on the side of the client */
    bool client;
    struct arena arena;
    struct h1_head head;
    struct h1_body body;
    bool in_body, last, bad;
    size_t messages, pos;
    uint64_t body_bytes, body_digest;
};

static bool read_head(struct reader *r, const char *buf, size_t n)
{
    enum http_framing framing;
    uint64_t length;
    enum parse p;
    if (r->client) {
        struct http_req req;
        struct target target;
        const char *why;
        p = h1_parse_request(&r->head, buf, n, &h1_request_limits, &r->arena, &req);
        if (p == PARSE_OK &&
            target_parse(req.target, req.method_id == HTTP_CONNECT, &target, &why) == TARGET_BAD)
            p = PARSE_BAD;
        if (p == PARSE_OK) {
            r->last = req.close || req.method_id == HTTP_CONNECT;
            framing = req.framing;
            length = req.content_length;
        }
    } else {
        struct http_resp resp;
        p = h1_parse_response(&r->head, buf, n, &h1_response_limits, r->answers, &r->arena, &resp);
        if (p == PARSE_OK) {
            r->last = resp.status >= 200;
            framing = resp.framing;
            length = resp.content_length;
        }
    }
    r->bad = p == PARSE_BAD;
    if (p != PARSE_OK)
        return false;
    r->pos += r->head.consumed;
    h1_body_init(&r->body, framing, length);
    r->in_body = true;
    return true;
}

static bool read_body(struct reader *r, const char *buf, size_t n)
{
    size_t used;
    struct slice data;
    enum parse p = h1_body_read(&r->body, buf, n, &r->arena, &used, &data);
    for (size_t i = 0; i < data.n; i++)
        r->body_digest = (r->body_digest ^ (unsigned char)data.p[i]) * UINT64_C(0x100000001b3);
    r->body_bytes += data.n;
    r->pos += used;
    r->bad = p == PARSE_BAD;
    if (p != PARSE_OK)
        return p == PARSE_MORE && used > 0 && used < n;
    r->messages += r->client || r->last;
    h1_body_fini(&r->body);
    r->head = (struct h1_head){0};
    r->in_body = false;
    return !r->last;
}

static void feed(struct reader *r, const char *bytes, size_t end)
{
    bool again = true;
    while (again && !r->bad && (r->in_body || !r->last))
        again = (r->in_body ? read_body : read_head)(r, bytes + r->pos, end - r->pos);
}

struct verdict {
    char text[32];
    uint64_t body_bytes, body_digest;
};

/* first bytes, then step at a time. */
static struct verdict judge(bool client, enum http_method answers, struct slice bytes, size_t first,
                            size_t step)
{
    struct reader r = {.client = client, .answers = answers};
    for (size_t end = first; !r.bad; end += step) {
        if (end > bytes.n)
            end = bytes.n;
        feed(&r, bytes.p, end);
        if (end == bytes.n)
            break;
    }
    if (r.in_body && !r.bad && r.pos == bytes.n && !r.client && h1_body_eof(&r.body)) {
        r.messages += r.last;
        h1_body_fini(&r.body);
        r.in_body = false;
    }
    struct verdict v = {.body_bytes = r.body_bytes, .body_digest = r.body_digest};
    bool whole = !r.in_body && (r.last || r.pos == bytes.n);
    if (r.bad)
        snprintf(v.text, sizeof v.text, "bad");
    else if (whole)
        snprintf(v.text, sizeof v.text, "ok %zu%s", r.messages, r.pos < bytes.n ? "+" : "");
    else
        snprintf(v.text, sizeof v.text, "more %zu", r.messages);
    if (r.in_body)
        h1_body_fini(&r.body);
    arena_fini(&r.arena);
    return v;
}

static unsigned base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = memchr(digits, c, sizeof digits - 1);
    ck_assert_ptr_nonnull(at);
    return (unsigned)(at - digits);
}

static size_t decode_base64(struct slice text, char *out)
{
    while (text.n > 0 && text.p[text.n - 1] == '=')
        text.n--;
    size_t n = 0;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < text.n; i++) {
        bits = bits << 6 | base64_value(text.p[i]);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[n++] = (char)(bits >> held);
        }
    }
    return n;
}

/* BASE64 or BASE64*REPEAT, separated by spaces. */
static struct slice decode_parts(struct slice text, char *out)
{
    size_t n = 0;
    struct slice part;
    for (bool done = false; slice_next(&text, ' ', &part, &done);) {
        size_t star = slice_index(part, '*');
        uint64_t times = 1;
        if (star < part.n)
            ck_assert(
                num_u64(slice_of(part.p + star + 1, part.n - star - 1), 9, CASE_MAX_BYTES, &times));
        size_t once = decode_base64(slice_of(part.p, star), out + n);
        ck_assert_uint_le(n + once * times, CASE_MAX_BYTES);
        for (uint64_t i = 1; i < times; i++)
            memcpy(out + n + i * once, out + n, once);
        n += once * times;
    }
    return slice_of(out, n);
}

struct row {
    char id[16];
    bool client;
    enum http_method answers;
    struct slice expect, bytes;
};

static void check_cut(const struct row *row, const struct verdict *whole, size_t first, size_t step)
{
    struct verdict cut = judge(row->client, row->answers, row->bytes, first, step);
    ck_assert_msg(strcmp(cut.text, whole->text) == 0 && cut.body_bytes == whole->body_bytes &&
                      cut.body_digest == whole->body_digest,
                  "%s: whole \"%s\", %zu bytes then by %zu \"%s\"", row->id, whole->text, first,
                  step, cut.text);
}

static void check_row(const struct row *row)
{
    struct verdict whole = judge(row->client, row->answers, row->bytes, row->bytes.n, 1);
    ck_assert_msg(slice_eq(slice_str(whole.text), row->expect), "%s: \"%s\", not \"%.*s\"", row->id,
                  whole.text, SLICE_FMT(row->expect));
    static const size_t steps[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        check_cut(row, &whole, steps[i], steps[i]);
    for (size_t at = 1; row->bytes.n <= CUT_MAX_BYTES && at < row->bytes.n; at++)
        check_cut(row, &whole, at, row->bytes.n);
}

START_TEST(corpus_verdicts_hold_however_cut)
{
    FILE *f = fopen(TEST_DATA_DIR "/vectors/http1_parser.tsv", "r");
    ck_assert_ptr_nonnull(f);
    char *line = malloc(LINE_MAX_BYTES), *bytes = malloc(CASE_MAX_BYTES);
    size_t rows = 0;
    while (fgets(line, LINE_MAX_BYTES, f)) {
        struct slice rest = slice_str(line), column[5];
        ck_assert(rest.p[rest.n - 1] == '\n');
        rest.n--;
        bool done = false;
        for (size_t i = 0; i < 5; i++)
            ck_assert(slice_next(&rest, '\t', &column[i], &done));
        ck_assert(done);
        struct row row = {
            .client = slice_eq(column[1], SLICE("client")),
            .answers = http_method_of(column[2]),
            .expect = column[3],
            .bytes = decode_parts(column[4], bytes),
        };
        snprintf(row.id, sizeof row.id, "%.*s", SLICE_FMT(column[0]));
        check_row(&row);
        rows++;
    }
    ck_assert_uint_ge(rows, 280);
    free(bytes);
    free(line);
    fclose(f);
}
END_TEST

static TCase *corpus(void)
{
    TCase *tc = tcase_create("corpus");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, corpus_verdicts_hold_however_cut);
    return tc;
}

UNIT_MAIN("http corpus", corpus)
