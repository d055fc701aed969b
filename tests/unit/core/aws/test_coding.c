/* Content codings: names, the three stream formats, what only says that it is coded, cut and broken
 * streams, and bombs (retry-semantics §3.1; security requirement E10). */
#include "core/aws/coding.h"
#include "core/aws/errcode.h"
#include "core/base/attr.h"
#include "unit.h"

#define ZLIB_CONST
#include <zlib.h>

enum { ZLIB = 15, GZIP = 31, RAW = -15 };

static struct arena arena;
static struct strbuf mem;

static void setup(void)
{
    arena_init(&arena);
    strbuf_init(&mem, CODING_OUT_MAX);
}

static void teardown(void)
{
    strbuf_fini(&mem);
    arena_fini(&arena);
}

static struct slice packed(int window, struct slice text)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t size = deflateBound(&z, text.n);
    char *out = arena_alloc(&arena, size);
    z.next_in = (const unsigned char *)text.p;
    z.avail_in = (uInt)text.n;
    z.next_out = (unsigned char *)out;
    z.avail_out = (uInt)size;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    struct slice result = slice_of(out, z.total_out);
    deflateEnd(&z);
    return result;
}

static struct slice joined(struct slice a, struct slice b)
{
    char *p = arena_alloc(&arena, a.n + b.n + 1);
    memcpy(p, a.p, a.n);
    memcpy(p + a.n, b.p, b.n);
    return slice_of(p, a.n + b.n);
}

static void reads(enum coding c, struct slice body, bool whole, struct slice text, bool all)
{
    struct coding_text t = coding_undo(c, body, whole, &mem);
    ck_assert_msg(slice_eq(t.text, text), "%zu bytes: %.60s", t.text.n, t.text.n ? t.text.p : "");
    ck_assert_int_eq(t.whole, all);
}

START_TEST(names)
{
    static const struct {
        const char *first, *second;
        enum coding coding;
    } cases[] = {
        {NULL, NULL, CODING_IDENTITY},        {"", NULL, CODING_IDENTITY},
        {"identity", NULL, CODING_IDENTITY},  {"gzip", NULL, CODING_GZIP},
        {"GZip", NULL, CODING_GZIP},          {" x-gzip\t", NULL, CODING_GZIP},
        {"deflate", NULL, CODING_DEFLATE},    {"identity, gzip", NULL, CODING_GZIP},
        {"gzip,", NULL, CODING_GZIP},         {"gzip", "identity", CODING_GZIP},
        {"br", NULL, CODING_UNKNOWN},         {"zstd", NULL, CODING_UNKNOWN},
        {"gzip, gzip", NULL, CODING_UNKNOWN}, {"gzip", "deflate", CODING_UNKNOWN},
        {"gzip;q=1", NULL, CODING_UNKNOWN},   {"compress", NULL, CODING_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct header_list fields = {0};
        header_add(&fields, &arena, SLICE("content-type"), SLICE("deflate"));
        if (cases[i].first)
            header_add(&fields, &arena, SLICE("Content-Encoding"), slice_str(cases[i].first));
        if (cases[i].second)
            header_add(&fields, &arena, SLICE("content-encoding"), slice_str(cases[i].second));
        ck_assert_msg(coding_of(&fields) == cases[i].coding, "%zu", i);
    }
}
END_TEST

START_TEST(streams)
{
    struct slice text =
        SLICE("{\"__type\":\"ThrottlingException\",\"message\":\"slow, slow, slow\"}");
    reads(CODING_GZIP, packed(GZIP, text), true, text, true);
    reads(CODING_DEFLATE, packed(ZLIB, text), true, text, true);
    reads(CODING_DEFLATE, packed(RAW, text), true, text, true);
    reads(CODING_IDENTITY, text, true, text, true);
    reads(CODING_IDENTITY, text, false, text, false);
    reads(CODING_GZIP, packed(GZIP, SLICE("")), true, SLICE_NONE, true);
    reads(CODING_GZIP, SLICE_NONE, true, SLICE_NONE, true);
    reads(CODING_UNKNOWN, text, true, SLICE_NONE, false);
    /* A complete stream of a body that is not. */
    reads(CODING_GZIP, packed(GZIP, text), false, text, false);
}
END_TEST

START_TEST(members)
{
    struct slice two = joined(packed(GZIP, SLICE("{\"a\":")), packed(GZIP, SLICE("1}")));
    reads(CODING_GZIP, two, true, SLICE("{\"a\":1}"), true);
    reads(CODING_GZIP, joined(two, SLICE("\0\0")), true, SLICE("{\"a\":1}"), false);
    reads(CODING_DEFLATE, joined(packed(ZLIB, SLICE("a")), SLICE("b")), true, SLICE("a"), false);
}
END_TEST

START_TEST(what_only_says_so)
{
    static const char *const texts[] = {
        "{\"__type\":\"Throttling\"}",
        "<Error><Code>SlowDown</Code></Error>",
        "\n  {\"code\":1}",
        "Service Unavailable",
        "x",
        "\xa1\x66__type\x61x",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct slice text = slice_str(texts[i]);
        reads(CODING_GZIP, text, true, text, true);
        reads(CODING_DEFLATE, text, true, text, true);
        if (text.n > 1) /* one byte is no header yet */
            reads(CODING_GZIP, text, false, text, false);
    }
    /* Another format than the name says. */
    struct slice zlib = packed(ZLIB, SLICE("{\"a\":1}"));
    reads(CODING_GZIP, zlib, true, zlib, true);
    struct slice gzip = packed(GZIP, SLICE("{\"a\":1}"));
    reads(CODING_DEFLATE, gzip, true, gzip, true);
}
END_TEST

static struct slice noise(size_t n)
{
    char *p = arena_alloc(&arena, n);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (char)('a' + (x >> 24) % 26);
    }
    return slice_of(p, n);
}

/* Whatever is cut off, what comes out is a prefix, and never called whole. */
START_TEST(cut_streams)
{
    static const int windows[] = {GZIP, ZLIB, RAW};
    struct slice text = noise(3000);
    for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
        struct slice body = packed(windows[w], text);
        enum coding c = windows[w] == GZIP ? CODING_GZIP : CODING_DEFLATE;
        for (size_t n = 16; n < body.n; n += 7) {
            struct coding_text t = coding_undo(c, slice_of(body.p, n), false, &mem);
            ck_assert(!t.whole);
            ck_assert_msg(slice_starts(text, t.text), "%d at %zu", windows[w], n);
        }
        struct coding_text most = coding_undo(c, slice_of(body.p, body.n - 1), false, &mem);
        ck_assert_uint_gt(most.text.n, text.n / 2);
    }
    /* Whole and yet without its end: what is there counts, and not as whole. */
    struct slice body = packed(GZIP, text);
    struct coding_text t = coding_undo(CODING_GZIP, slice_of(body.p, body.n - 4), true, &mem);
    ck_assert(slice_eq(t.text, text) && !t.whole);
}
END_TEST

START_TEST(broken_streams)
{
    struct slice text = noise(3000), body = packed(GZIP, text);
    char *bytes = arena_alloc(&arena, body.n);
    for (size_t at = 0; at < body.n; at += 11) {
        memcpy(bytes, body.p, body.n);
        bytes[at] ^= 0x55;
        struct coding_text t = coding_undo(CODING_GZIP, slice_of(bytes, body.n), true, &mem);
        ck_assert_uint_le(t.text.n, CODING_OUT_MAX);
        /* Only the few header fields that mean nothing here may change unnoticed. */
        ck_assert(!t.whole || at < 10 || slice_eq(t.text, slice_of(bytes, body.n)));
    }
}
END_TEST

/* 2 GiB of blanks: a stream whose blocks stand alone, one of them repeated. */
static struct slice bomb(void)
{
    enum { STEP = 1 << 20, TIMES = 2048, BLOCK_MAX = 4096, SIZE = TIMES * BLOCK_MAX };
    unsigned char *blanks = arena_alloc(&arena, STEP), *out = arena_alloc(&arena, SIZE);
    z_stream z = {.next_out = out, .avail_out = SIZE};
    memset(blanks, ' ', STEP);
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t start = 0;
    for (int i = 0; i < 2; i++) {
        start = z.total_out;
        z.next_in = blanks;
        z.avail_in = STEP;
        ck_assert_int_eq(deflate(&z, Z_FULL_FLUSH), Z_OK);
    }
    size_t end = z.total_out, block = end - start;
    ck_assert_uint_le(block, BLOCK_MAX);
    deflateEnd(&z);
    for (int i = 2; i < TIMES; i++, end += block)
        memcpy(out + end, out + start, block);
    return slice_of((const char *)out, end);
}

START_TEST(bombs)
{
    struct slice body = bomb();
    ck_assert_uint_gt(body.n, 2 << 20);
    struct coding_text t = coding_undo(CODING_GZIP, body, true, &mem);
    ck_assert_uint_eq(t.text.n, CODING_OUT_MAX);
    ck_assert(!t.whole);
    ck_assert_uint_le(mem.cap, CODING_OUT_MAX);

    struct http_resp resp = {.status = 400};
    struct errcode e;
    header_add(&resp.fields, &arena, SLICE("content-encoding"), SLICE("gzip"));
    header_add(&resp.fields, &arena, SLICE("content-type"), SLICE("application/json"));
    size_t before = arena.total_bytes;
    errcode_read(&resp, body, true, true, &arena, &e);
    ck_assert(e.code.n == 0 && !e.parsed);
    ck_assert_uint_eq(arena.total_bytes, before);
}
END_TEST

/* Many members of nothing: the input is all that can be gone through. */
START_TEST(empty_members)
{
    struct slice one = packed(GZIP, SLICE(""));
    char *p = arena_alloc(&arena, 3000 * one.n);
    for (size_t i = 0; i < 3000; i++)
        memcpy(p + i * one.n, one.p, one.n);
    reads(CODING_GZIP, slice_of(p, 3000 * one.n), true, SLICE_NONE, true);
}
END_TEST

static struct errcode read_coded(const char *coding, const char *type, struct slice body,
                                 bool whole)
{
    struct http_resp resp = {.status = 400};
    struct errcode e;
    header_add(&resp.fields, &arena, SLICE("content-encoding"), slice_str(coding));
    header_add(&resp.fields, &arena, SLICE("content-type"), slice_str(type));
    errcode_read(&resp, body, whole, true, &arena, &e);
    return e;
}

START_TEST(codes)
{
    struct slice json = SLICE("{\"__type\":\"com.amazonaws.dynamodb.v20120810#Throttling\"}");
    struct slice xml = SLICE("<Error><Code>Throttling</Code></Error>");
    struct slice cbor = SLICE("\xa1\x66__type\x6aThrottling");
    struct slice want = SLICE("Throttling");
    const char *j = "application/x-amz-json-1.0", *x = "text/xml", *c = "application/cbor";
    ck_assert(slice_eq(read_coded("gzip", j, packed(GZIP, json), true).code, want));
    ck_assert(slice_eq(read_coded("deflate", j, packed(ZLIB, json), true).code, want));
    ck_assert(slice_eq(read_coded("deflate", j, packed(RAW, json), true).code, want));
    ck_assert(slice_eq(read_coded("gzip", x, packed(GZIP, xml), true).code, want));
    ck_assert(slice_eq(read_coded("gzip", "", packed(GZIP, xml), true).code, want));
    ck_assert(slice_eq(read_coded("gzip", c, packed(GZIP, cbor), true).code, want));
    ck_assert(slice_eq(read_coded("gzip", j, json, true).code, want));
    ck_assert(slice_eq(read_coded("deflate", j, json, true).code, want));
    ck_assert_uint_eq(read_coded("br", j, json, true).code.n, 0);
    ck_assert_uint_eq(read_coded("gzip", j, SLICE("\x1f\x8b\x08\0"), true).code.n, 0);

    /* The code behind more than a document of jansson may cost, and beyond what is decoded. */
    struct slice start = SLICE("{\"m\":\""), end = SLICE("\",\"__type\":\"Throttling\"}");
    struct slice large = joined(joined(start, noise(200000)), end);
    struct slice body = packed(GZIP, large);
    ck_assert_uint_gt(body.n, ERRCODE_BODY_MAX);
    ck_assert_uint_eq(read_coded("gzip", j, body, true).code.n, 0);
    char *blanks = arena_alloc(&arena, 300000);
    memset(blanks, ' ', 300000);
    large = joined(joined(start, slice_of(blanks, 200000)), end);
    ck_assert(slice_eq(read_coded("gzip", j, packed(GZIP, large), true).code, want));
    large = joined(joined(start, slice_of(blanks, 300000)), end);
    ck_assert_uint_eq(read_coded("gzip", j, packed(GZIP, large), true).code.n, 0);
}
END_TEST

static TCase *codings(void)
{
    TCase *tc = tcase_create("coding");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, names);
    tcase_add_test(tc, streams);
    tcase_add_test(tc, members);
    tcase_add_test(tc, what_only_says_so);
    tcase_add_test(tc, cut_streams);
    tcase_add_test(tc, broken_streams);
    tcase_add_test(tc, bombs);
    tcase_add_test(tc, empty_members);
    tcase_add_test(tc, codes);
    return tc;
}

UNIT_MAIN("coding", codings)
