/* Chunked bodies and their trailers. The first byte chooses a cut; the rest is the wire.
 *
 * Oracles: verdict, reason, consumed bytes, data and trailers are the same whole, cut once and byte
 * by byte; what was accepted is written in chunks and read back without a difference. */
#include "core/base/attr.h"
#include "core/http/h1_body.h"

#include <stdlib.h>

enum { DATA_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct run {
    struct arena arena;
    struct h1_body body;
    enum parse verdict;
    size_t consumed;
    struct strbuf data;
};

static void run_init(struct run *r)
{
    *r = (struct run){.verdict = PARSE_MORE};
    h1_body_init(&r->body, HTTP_BODY_CHUNKED, 0);
    strbuf_init(&r->data, DATA_MAX);
}

static void run_fini(struct run *r)
{
    h1_body_fini(&r->body);
    strbuf_fini(&r->data);
    arena_fini(&r->arena);
}

/* Feeds a copy of exactly n bytes, so that a read behind them is noticed. */
static void feed(struct run *r, const char *p, size_t n)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    size_t at = 0, used;
    do {
        struct slice data;
        r->verdict = h1_body_read(&r->body, copy + at, n - at, &r->arena, &used, &data);
        ASSERT(used <= n - at && data.n <= used);
        ASSERT(data.n == 0 || (data.p >= copy + at && data.p + data.n <= copy + at + used));
        strbuf_put(&r->data, data);
        at += used;
    } while (r->verdict == PARSE_MORE && at < n);
    r->consumed += at;
    free(copy);
    ASSERT(r->body.done == (r->verdict == PARSE_OK));
}

static void feed_cut(struct run *r, struct slice wire, size_t first, size_t step)
{
    size_t from = 0, to = first < wire.n ? first : wire.n;
    for (;;) {
        feed(r, wire.p + from, to - from);
        if (r->verdict != PARSE_MORE || to == wire.n)
            return;
        from = to;
        to = wire.n - to > step ? to + step : wire.n;
    }
}

static void same_content(const struct run *a, const struct run *b)
{
    ASSERT(slice_eq(strbuf_slice(&a->data), strbuf_slice(&b->data)));
    const struct header_list *x = &a->body.trailers, *y = &b->body.trailers;
    ASSERT(x->n == y->n);
    for (size_t i = 0; i < x->n; i++)
        ASSERT(slice_eq(x->v[i].name, y->v[i].name) && slice_eq(x->v[i].value, y->v[i].value));
}

static void check_cut(const struct run *whole, struct slice wire, size_t first, size_t step)
{
    struct run r;
    run_init(&r);
    feed_cut(&r, wire, first, step);
    ASSERT(r.verdict == whole->verdict && r.body.problem == whole->body.problem);
    if (r.verdict != PARSE_BAD)
        ASSERT(r.consumed == whole->consumed);
    same_content(&r, whole);
    run_fini(&r);
}

static void check_round_trip(const struct run *whole)
{
    struct strbuf out;
    strbuf_init(&out, 2 * DATA_MAX);
    struct slice data = strbuf_slice(&whole->data);
    for (size_t at = 0, n = 1; at < data.n; at += n, n = n * 3 + 1) {
        if (n > data.n - at)
            n = data.n - at;
        char head[H1_CHUNK_HEAD_MAX];
        strbuf_put(&out, slice_of(head, h1_chunk_head(head, n)));
        strbuf_put(&out, slice_of(data.p + at, n));
        strbuf_put(&out, SLICE("\r\n"));
    }
    ASSERT(h1_chunk_end(&out, &whole->body.trailers));
    struct run again;
    run_init(&again);
    feed(&again, out.p, out.n);
    /* A trailer section at its limit grows by the space behind each colon. */
    ASSERT(again.verdict == PARSE_OK || whole->body.trailer.n > 8000);
    if (again.verdict == PARSE_OK) {
        ASSERT(again.consumed == out.n);
        same_content(whole, &again);
    }
    run_fini(&again);
    strbuf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size < 1 || size > DATA_MAX)
        return 0;
    struct slice wire = slice_of((const char *)input + 1, size - 1);
    struct run whole;
    run_init(&whole);
    feed(&whole, wire.p, wire.n);
    check_cut(&whole, wire, input[0] % (wire.n + 1), wire.n + 1);
    check_cut(&whole, wire, 1, 1);
    if (whole.verdict == PARSE_OK)
        check_round_trip(&whole);
    run_fini(&whole);
    return 0;
}
