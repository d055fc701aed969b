/* Heads. The first two bytes choose the side, the request method and a cut; the rest is the wire.
 *
 * Oracles: the verdict, its reason and the parts are the same whole, cut once and byte by byte;
 * what was accepted is written, read back with every end-to-end field as it was and in its place,
 * and written again without a difference. */
#include "core/base/attr.h"
#include "core/http/h1_head.h"
#include "core/http/h1_write.h"
#include "core/http/hopbyhop.h"

#include <stdlib.h>

enum { BY_BYTE_MAX = 512, OUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct run {
    bool response;
    enum http_method answers;
    struct arena arena;
    struct h1_head st;
    enum parse verdict;
    struct http_req req;
    struct http_resp resp;
};

/* Parses a copy of exactly n bytes, so that a read behind them is noticed. */
static void parse(struct run *r, struct slice wire, size_t n)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, wire.p, n);
    if (r->response)
        r->verdict = h1_parse_response(&r->st, copy, n, &h1_response_limits, r->answers, &r->arena,
                                       &r->resp);
    else
        r->verdict = h1_parse_request(&r->st, copy, n, &h1_request_limits, &r->arena, &r->req);
    free(copy);
}

static void same_fields(const struct header_list *a, const struct header_list *b)
{
    ASSERT(a->n == b->n);
    for (size_t i = 0; i < a->n; i++)
        ASSERT(slice_eq(a->v[i].name, b->v[i].name) && slice_eq(a->v[i].value, b->v[i].value));
}

static void same(const struct run *a, const struct run *b)
{
    ASSERT(a->verdict == b->verdict);
    if (a->verdict == PARSE_BAD)
        ASSERT(a->st.status == b->st.status && a->st.problem == b->st.problem);
    if (a->verdict != PARSE_OK)
        return;
    ASSERT(a->st.consumed == b->st.consumed);
    if (a->response) {
        ASSERT(a->resp.status == b->resp.status && a->resp.framing == b->resp.framing);
        same_fields(&a->resp.fields, &b->resp.fields);
    } else {
        ASSERT(slice_eq(a->req.target, b->req.target) && a->req.framing == b->req.framing);
        same_fields(&a->req.fields, &b->req.fields);
    }
}

static void check_cut(const struct run *whole, struct slice wire, size_t first, size_t step)
{
    struct run r = {.response = whole->response, .answers = whole->answers};
    for (size_t n = first;; n += step) {
        if (n > wire.n)
            n = wire.n;
        parse(&r, wire, n);
        if (r.verdict != PARSE_MORE || n == wire.n)
            break;
    }
    same(whole, &r);
    arena_fini(&r.arena);
}

static struct slice path_query(const struct run *r)
{
    struct target target;
    const char *why;
    if (r->response)
        return SLICE_NONE;
    bool bad = target_parse(r->req.target, false, &target, &why) == TARGET_BAD;
    return bad ? SLICE("/") : target.path_query;
}

static void write_out(const struct run *r, struct strbuf *out)
{
    bool ok = r->response ? h1_write_response(out, &r->resp, r->resp.framing, false, NULL, 0)
                          : h1_write_request(out, &r->req, path_query(r), SLICE("h"), NULL, 0);
    ASSERT(ok);
}

/* The next field from *i on that is the message's own: not of this hop, its framing or routing. */
static const struct header_field *next_kept(const struct hopbyhop *hop, size_t *i)
{
    static const struct slice others[] = {
        {"Content-Length", 14}, {"Host", 4}, {"Connection", 10}, {"Upgrade", 7}};
    while (*i < hop->fields->n) {
        const struct header_field *f = &hop->fields->v[(*i)++];
        bool kept = hopbyhop_keeps(hop, f);
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            kept = kept && !slice_eq_nocase(f->name, others[k]);
        if (kept)
            return f;
    }
    return NULL;
}

static void same_kept(const struct run *before, const struct run *after)
{
    struct hopbyhop a, b;
    hopbyhop_init(&a, before->response ? &before->resp.fields : &before->req.fields,
                  path_query(before));
    hopbyhop_init(&b, after->response ? &after->resp.fields : &after->req.fields,
                  path_query(after));
    const struct header_field *x, *y;
    size_t i = 0, j = 0;
    do {
        x = next_kept(&a, &i);
        y = next_kept(&b, &j);
        ASSERT((x == NULL) == (y == NULL));
        ASSERT(x == NULL || (slice_eq(x->name, y->name) && slice_eq(x->value, y->value)));
    } while (x != NULL);
}

static void check_round_trip(const struct run *r)
{
    struct strbuf first, second;
    strbuf_init(&first, OUT_MAX);
    strbuf_init(&second, OUT_MAX);
    write_out(r, &first);
    struct run again = {.response = r->response, .answers = r->answers};
    parse(&again, strbuf_slice(&first), first.n);
    if (again.verdict == PARSE_OK) {
        ASSERT(again.st.consumed == first.n);
        same_kept(r, &again);
        if (r->response) {
            ASSERT(again.resp.status == r->resp.status && again.resp.framing == r->resp.framing);
            ASSERT(slice_eq(again.resp.reason, r->resp.reason));
        } else {
            ASSERT(slice_eq(again.req.method, r->req.method));
            ASSERT(again.req.framing == r->req.framing);
            ASSERT(again.req.content_length == r->req.content_length);
        }
        write_out(&again, &second);
        ASSERT(slice_eq(strbuf_slice(&first), strbuf_slice(&second)));
    } else {
        /* Only the space behind each colon can have made it too large. */
        ASSERT(again.verdict == PARSE_BAD && again.st.status == 431);
    }
    arena_fini(&again.arena);
    strbuf_fini(&first);
    strbuf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static const enum http_method methods[] = {HTTP_GET, HTTP_HEAD, HTTP_CONNECT, HTTP_POST};
    if (size < 2)
        return 0;
    struct slice wire = slice_of((const char *)input + 2, size - 2);
    struct run whole = {.response = input[0] & 1, .answers = methods[input[0] >> 1 & 3]};
    parse(&whole, wire, wire.n);
    check_cut(&whole, wire, input[1] % (wire.n + 1), wire.n + 1);
    if (wire.n <= BY_BYTE_MAX)
        check_cut(&whole, wire, 0, 1);
    if (whole.verdict == PARSE_OK && (whole.response || whole.req.method_id != HTTP_CONNECT))
        check_round_trip(&whole);
    arena_fini(&whole.arena);
    return 0;
}
