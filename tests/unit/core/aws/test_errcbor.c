/* The CBOR scanner: documents of an encoder of the test's own, whole, cut and damaged; the forms of
 * RFC 8949 one by one; hostile bodies (retry-semantics §3.3; security requirement E10). */
#include "core/aws/errcbor.h"
#include "core/base/attr.h"
#include "core/base/num.h"
#include "unit.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

static struct errcode read_cbor(struct slice body, bool whole)
{
    struct errcode e = {.source = ERRCODE_NONE};
    errcbor_read(body, whole, &arena, &e);
    ck_assert((e.code.n > 0) == (e.source == ERRCODE_CBOR));
    ck_assert(e.code.n == 0 || e.parsed);
    return e;
}

static struct slice from_hex(const char *hex)
{
    size_t n = 0;
    char *p = arena_alloc(&arena, strlen(hex) / 2 + 1);
    for (; *hex; hex += 2) {
        while (*hex == ' ')
            hex++;
        uint64_t byte;
        ck_assert(num_hex_u64(slice_of(hex, 2), 2, 255, &byte));
        p[n++] = (char)byte;
    }
    return slice_of(p, n);
}

#define TYPE "665f5f74797065" /* text __type */

static const struct {
    const char *hex;
    const char *whole, *prefix; /* codes; NULL: not well-formed */
} forms[] = {
    /* Maps and texts, definite and not, heads of every width. */
    {"a0", "", ""},
    {"bfff", "", ""},
    {"a1 " TYPE " 6141", "A", "A"},
    {"bf " TYPE " 6141 ff", "A", "A"},
    {"b801 " TYPE " 780141", "A", "A"},
    {"b90001 " TYPE " 79000141", "A", "A"},
    {"ba00000001 " TYPE " 7a0000000141", "A", "A"},
    {"bb0000000000000001 " TYPE " 7b000000000000000141", "A", "A"},
    {"a1 7f 625f5f 6474797065 ff 7f 6141 6142 ff", "AB", "AB"},
    {"a1 7f 60 665f5f74797065 60 ff 7f 60 6141 60 ff", "A", "A"},
    {"a1 " TYPE " 7fff", "", ""},
    /* Values before and after. */
    {"a2 616d 6178 " TYPE " 6141", "A", "A"},
    {"a2 " TYPE " 6141 616d 6178", "A", "A"},
    {"a2 616d a1 " TYPE " 6158 " TYPE " 6141", "A", "A"},
    {"a1 616d a1 " TYPE " 6158", "", ""},
    {"a2 616d 9f 01 82 02 03 bf 01 02 ff ff " TYPE " 6141", "A", "A"},
    {"a2 616d 80 " TYPE " 6141", "A", "A"},
    {"a2 616d 9fff " TYPE " 6141", "A", "A"},
    {"a2 616d 5f 4101 4102 ff " TYPE " 6141", "A", "A"},
    {"a2 616d fb3ff0000000000000 " TYPE " 6141", "A", "A"},
    {"a5 6131 f4 6132 f6 6133 f93c00 6134 fa3f800000 " TYPE " 6141", "A", "A"},
    {"a2 616d f8ff " TYPE " 6141", "A", "A"},
    {"a2 616d 3863 " TYPE " 6141", "A", "A"},
    /* Keys of other kinds. */
    {"a2 01 02 " TYPE " 6141", "A", "A"},
    {"a2 82 01 02 03 " TYPE " 6141", "A", "A"},
    {"a1 46 5f5f74797065 6141", "", ""},
    {"a1 66 5f5f54797065 6141", "", ""},
    {"a1 67 5f5f7479706500 6141", "", ""},
    /* Tags: of the document, of keys, of values. */
    {"d9d9f7 a1 " TYPE " 6141", "A", "A"},
    {"a1 c1 " TYPE " c2 c3 6141", "A", "A"},
    {"a2 616d c1 1a514b67b0 " TYPE " 6141", "A", "A"},
    /* The last value of a repeated member counts; what is no text is no code. */
    {"a2 " TYPE " 6141 " TYPE " 6142", "B", "B"},
    {"a2 " TYPE " 6141 " TYPE " 01", "", ""},
    {"a1 " TYPE " 4141", "", ""},
    {"a1 " TYPE " f6", "", ""},
    /* Cleaned as any code. */
    {"a1 " TYPE " 66 612e622343 3a", "C", "C"},
    {"a1 " TYPE " 63 41 20 42", "", ""},
    {"a1 " TYPE " 62 41 00", "", ""},
    {"a1 " TYPE " 62 41 ff", "", ""},
    /* Cut. */
    {"", NULL, ""},
    {"a1", NULL, ""},
    {"bf", NULL, ""},
    {"d9d9", NULL, ""},
    {"a1 665f5f7479", NULL, ""},
    {"a1 " TYPE, NULL, ""},
    {"a1 " TYPE " 62 41", NULL, ""},
    {"a1 " TYPE " 7f 6141", NULL, ""},
    {"bf " TYPE " 6141", NULL, "A"},
    {"a2 " TYPE " 6141", NULL, "A"},
    {"a2 " TYPE " 6141 616d", NULL, "A"},
    {"a2 " TYPE " 6141 616d 7b", NULL, "A"},
    {"a2 " TYPE " 6141 616d 82 01", NULL, "A"},
    {"a2 " TYPE " 6141 " TYPE " 6242", NULL, "A"},
    {"a2 " TYPE " 6141 " TYPE " c1", NULL, "A"},
    /* Not well-formed: reserved heads, misplaced breaks, mixed strings, odd maps, other documents.
     */
    {"a1 " TYPE " 7c", NULL, NULL},
    {"a2 " TYPE " 6141 1c", NULL, NULL},
    {"a2 " TYPE " 6141 1d", NULL, NULL},
    {"a2 " TYPE " 6141 1e", NULL, NULL},
    {"a2 " TYPE " 6141 1f", NULL, NULL},
    {"a2 " TYPE " 6141 3f", NULL, NULL},
    {"a2 " TYPE " 6141 df", NULL, NULL},
    {"a2 " TYPE " 6141 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d f81f", NULL, NULL},
    {"a2 " TYPE " 6141 616d f800", NULL, NULL},
    {"a2 " TYPE " 6141 616d c1 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 82 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d bf 01 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 9f c1 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 7f 4101 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 5f 6101 ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 7f 7f ff ff", NULL, NULL},
    {"a2 " TYPE " 6141 616d 7f c1 6161 ff", NULL, NULL},
    {"bf " TYPE " 6141 01 ff", NULL, NULL},
    {"bf " TYPE " 6141 c1 ff", NULL, NULL},
    {"a1 " TYPE " 6141 00", NULL, NULL},
    {"bf " TYPE " 6141 ff ff", NULL, NULL},
    {"80", NULL, NULL},
    {"01", NULL, NULL},
    {"ff", NULL, NULL},
    {"f6", NULL, NULL},
    {"66 5f5f74797065", NULL, NULL},
    {"82 " TYPE " 6141", NULL, NULL},
    {"c1 ff", NULL, NULL},
};

static void check_form(const char *hex, bool whole, const char *want)
{
    struct errcode e = read_cbor(from_hex(hex), whole);
    ck_assert_msg(e.parsed == (want != NULL), "%s, whole %d", hex, whole);
    ck_assert_msg(slice_eq(e.code, slice_str(want)), "%s, whole %d: %.*s", hex, whole,
                  SLICE_FMT(e.code));
}

START_TEST(forms_of_rfc_8949)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        check_form(forms[i].hex, true, forms[i].whole);
        check_form(forms[i].hex, false, forms[i].prefix);
    }
}
END_TEST

/* --- an encoder, independent of the scanner --- */

struct doc {
    uint32_t seed;
    unsigned char *p;
    size_t n;
    const char *code; /* of the last __type member; NULL: none */
};

enum { DOC_MAX = 64 * 1024 };

static uint32_t pick(struct doc *d, uint32_t below)
{
    d->seed = d->seed * 1664525 + 1013904223;
    return (d->seed >> 8) % below;
}

static void put(struct doc *d, unsigned byte)
{
    ck_assert_uint_lt(d->n, DOC_MAX);
    d->p[d->n++] = (unsigned char)byte;
}

/* The shortest form that holds n, or a longer one. */
static void put_head(struct doc *d, unsigned major, uint64_t n)
{
    unsigned width = n < 24 ? 0 : n < 256 ? 1 : n < 65536 ? 2 : 3;
    width += pick(d, 3) ? 0 : pick(d, 5 - width);
    if (width == 0) {
        put(d, major << 5 | (unsigned)n);
        return;
    }
    put(d, major << 5 | (23 + width));
    for (unsigned bytes = 1u << (width - 1); bytes-- > 0;)
        put(d, bytes < 8 ? (unsigned)(n >> (8 * bytes)) & 255 : 0);
}

static void put_chunk(struct doc *d, unsigned major, const char *bytes, size_t n)
{
    put_head(d, major, n);
    for (size_t i = 0; i < n; i++)
        put(d, (unsigned char)bytes[i]);
}

static void put_string(struct doc *d, unsigned major, const char *bytes, size_t n)
{
    if (pick(d, 3) > 0) {
        put_chunk(d, major, bytes, n);
        return;
    }
    put(d, major << 5 | 31);
    while (n > 0 || pick(d, 4) == 0) {
        size_t part = n ? pick(d, (uint32_t)n + 1) : 0;
        put_chunk(d, major, bytes, part);
        bytes += part;
        n -= part;
    }
    put(d, 0xff);
}

static void put_tags(struct doc *d)
{
    while (pick(d, 8) == 0)
        put_head(d, 6, pick(d, 100000));
}

static void put_item(struct doc *d, unsigned depth);

static void put_items(struct doc *d, unsigned major, unsigned depth)
{
    uint32_t n = pick(d, 4);
    bool indefinite = pick(d, 2);
    if (indefinite)
        put(d, major << 5 | 31);
    else
        put_head(d, major, n);
    for (uint32_t i = 0; i < (major == 5 ? 2 * n : n); i++)
        put_item(d, depth - 1);
    if (indefinite)
        put(d, 0xff);
}

static void put_item(struct doc *d, unsigned depth)
{
    static const char text[] = "__type and more that means nothing";
    put_tags(d);
    switch (pick(d, depth > 0 ? 8 : 5)) {
    case 0:
        put_head(d, pick(d, 2), pick(d, 1 << 20));
        break;
    case 1:
        put_string(d, 2, text, pick(d, sizeof text));
        break;
    case 2:
        put_string(d, 3, text, pick(d, sizeof text));
        break;
    case 3:
        put(d, 0xf4 + pick(d, 4));
        break;
    case 4:
        put(d, 0xfa);
        for (int i = 0; i < 4; i++)
            put(d, pick(d, 256));
        break;
    default:
        put_items(d, 4 + pick(d, 2), depth);
        break;
    }
}

/* A key that is not __type. */
static void put_key(struct doc *d)
{
    char key[8] = "key_";
    key[4] = (char)('a' + pick(d, 26));
    put_tags(d);
    if (pick(d, 6) == 0)
        put_head(d, pick(d, 2), pick(d, 1000));
    else
        put_string(d, 3, key, 5);
}

static void put_type(struct doc *d)
{
    static const char *const values[] = {"Throttling", "a.b#SlowDown:http://x/", "Other"};
    static const char *const codes[] = {"Throttling", "SlowDown", "Other"};
    put_tags(d);
    put_string(d, 3, "__type", 6);
    put_tags(d);
    if (pick(d, 6) == 0) {
        put_head(d, 0, 7);
        d->code = NULL;
        return;
    }
    uint32_t i = pick(d, ARRAY_LEN(values));
    put_string(d, 3, values[i], strlen(values[i]));
    d->code = codes[i];
}

/* One map; at[i], code_at[i]: where the i-th member ends, and the code so far. */
static size_t put_document(struct doc *d, size_t *at, const char **code_at)
{
    uint32_t members = pick(d, 6);
    bool indefinite = pick(d, 2);
    put_tags(d);
    if (indefinite)
        put(d, 0xbf);
    else
        put_head(d, 5, members);
    for (uint32_t i = 0; i < members; i++) {
        if (pick(d, 3) == 0) {
            put_type(d);
        } else {
            put_key(d);
            put_item(d, 4);
        }
        at[i] = d->n;
        code_at[i] = d->code;
    }
    if (indefinite)
        put(d, 0xff);
    return members;
}

START_TEST(encoded_documents)
{
    struct doc d = {.p = arena_alloc(&arena, DOC_MAX)};
    size_t at[8], cuts = 0, codes = 0;
    const char *code_at[8];
    for (uint32_t seed = 0; seed < 3000; seed++) {
        d.seed = seed * 2654435761u;
        d.n = 0;
        d.code = NULL;
        size_t members = put_document(&d, at, code_at);
        struct slice body = slice_of((const char *)d.p, d.n);
        struct errcode e = read_cbor(body, true);
        ck_assert_msg(e.parsed && slice_eq(e.code, slice_str(d.code)), "seed %u: %.*s", seed,
                      SLICE_FMT(e.code));
        codes += e.code.n > 0;
        for (size_t n = 0; n < d.n && seed % 8 == 0; n++) {
            size_t done = 0;
            while (done < members && at[done] <= n)
                done++;
            struct errcode cut = read_cbor(slice_of(body.p, n), false);
            const char *want = done ? code_at[done - 1] : NULL;
            ck_assert_msg(cut.parsed && slice_eq(cut.code, slice_str(want)), "seed %u at %zu", seed,
                          n);
            ck_assert(!read_cbor(slice_of(body.p, n), true).parsed);
            cuts++;
        }
    }
    ck_assert_uint_gt(codes, 1000);
    ck_assert_uint_gt(cuts, 10000);
}
END_TEST

/* --- hostile --- */

static struct slice nested(const char *open, size_t n_open, size_t depth)
{
    static const char start[] = "\xa2\x66__type\x61\x41\x61x";
    size_t n = sizeof start - 1;
    char *p = arena_alloc(&arena, n + depth * n_open + 1);
    memcpy(p, start, n);
    for (size_t i = 0; i < depth; i++, n += n_open)
        memcpy(p + n, open, n_open);
    p[n] = 0x01;
    return slice_of(p, n + 1);
}

START_TEST(deep)
{
    static const size_t beyond[] = {ERRCBOR_DEPTH_MAX, 1000, 100000};
    struct errcode e = read_cbor(nested("\x81", 1, ERRCBOR_DEPTH_MAX - 1), true);
    ck_assert(e.parsed && slice_eq(e.code, SLICE("A")));
    for (size_t i = 0; i < ARRAY_LEN(beyond); i++) {
        ck_assert(!read_cbor(nested("\x81", 1, beyond[i]), true).parsed);
        ck_assert(!read_cbor(nested("\x81", 1, beyond[i]), false).parsed);
        ck_assert(!read_cbor(nested("\x9f", 1, beyond[i]), false).parsed);
        ck_assert(!read_cbor(nested("\xbf\x01", 2, beyond[i]), false).parsed);
        ck_assert(!read_cbor(nested("\xa1\x01", 2, beyond[i]), true).parsed);
    }
    /* Tags nest without a level. */
    e = read_cbor(nested("\xc1", 1, 100000), true);
    ck_assert(e.parsed && slice_eq(e.code, SLICE("A")));
}
END_TEST

/* Sizes that are declared and not there: nothing is allocated for them. */
START_TEST(huge)
{
    static const char *const hex[] = {
        "bb7fffffffffffffff " TYPE " 6141",
        "bbffffffffffffffff " TYPE " 6141",
        "a2 " TYPE " 6141 616d 9bffffffffffffffff 01",
        "a2 " TYPE " 6141 616d bbffffffffffffffff 01",
        "a2 " TYPE " 6141 616d bb8000000000000000 01",
        "a2 " TYPE " 6141 616d 5bffffffffffffffff 01",
        "a2 " TYPE " 6141 616d 7f 7bffffffffffffffff 01",
        "a2 " TYPE " 6141 7bfffffffffffffff0 01",
    };
    for (size_t i = 0; i < ARRAY_LEN(hex); i++) {
        struct slice body = from_hex(hex[i]);
        size_t before = arena.total_bytes;
        ck_assert_msg(!read_cbor(body, true).parsed, "%s", hex[i]);
        struct errcode e = read_cbor(body, false);
        ck_assert_msg(e.parsed && slice_eq(e.code, SLICE("A")), "%s", hex[i]);
        ck_assert_uint_le(arena.total_bytes - before, 64);
    }
}
END_TEST

static struct slice long_type(size_t n, bool chunked)
{
    char *p = arena_alloc(&arena, 2 * n + 16), *q = p + 8;
    memcpy(p, "\xa1\x66__type", 8);
    if (chunked) {
        *q++ = 0x7f;
        for (size_t i = 0; i < n; i++) {
            *q++ = 0x61;
            *q++ = 'x';
        }
        *q++ = (char)0xff;
    } else {
        *q++ = 0x79;
        *q++ = (char)(n >> 8);
        *q++ = (char)n;
        memset(q, 'x', n);
        q += n;
    }
    return slice_of(p, (size_t)(q - p));
}

START_TEST(long_texts)
{
    for (int chunked = 0; chunked <= 1; chunked++) {
        ck_assert_uint_eq(read_cbor(long_type(ERRCODE_MAX, chunked), true).code.n, ERRCODE_MAX);
        static const size_t beyond[] = {ERRCODE_MAX + 1, 4 * ERRCODE_MAX, 4 * ERRCODE_MAX + 1,
                                        30000};
        for (size_t i = 0; i < ARRAY_LEN(beyond); i++) {
            struct errcode e = read_cbor(long_type(beyond[i], chunked), true);
            ck_assert(e.parsed && e.code.n == 0);
        }
    }
}
END_TEST

static TCase *cbor(void)
{
    TCase *tc = tcase_create("errcbor");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, forms_of_rfc_8949);
    tcase_add_test(tc, encoded_documents);
    tcase_add_test(tc, deep);
    tcase_add_test(tc, huge);
    tcase_add_test(tc, long_texts);
    return tc;
}

UNIT_MAIN("errcbor", cbor)
