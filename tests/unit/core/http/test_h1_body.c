/* Bodies: framing by length, chunks and close; limits of the chunk lines; trailers (security
 * requirements B9, B10, B13). */
#include "unit.h"

#include "core/http/h1_body.h"

#include <stdio.h>

static struct arena arena;
static struct h1_body body;
static char got[4096];
static size_t got_n, consumed;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    h1_body_fini(&body);
    arena_fini(&arena);
}

/* Feeds text in pieces of step bytes. */
static enum parse feed(const char *text, size_t n, size_t step)
{
    enum parse p = PARSE_MORE;
    got_n = consumed = 0;
    for (size_t end = step < n ? step : n; p == PARSE_MORE; end = end + step < n ? end + step : n) {
        size_t used;
        do {
            struct slice data;
            p = h1_body_read(&body, text + consumed, end - consumed, &arena, &used, &data);
            consumed += used;
            if (got_n + data.n <= sizeof got && data.n)
                memcpy(got + got_n, data.p, data.n);
            got_n += data.n;
        } while (p == PARSE_MORE && consumed < end);
        if (end == n)
            break;
    }
    return p;
}

static void start(enum http_framing framing, uint64_t length)
{
    h1_body_fini(&body);
    h1_body_init(&body, framing, length);
}

static enum parse chunked(const char *text, size_t step)
{
    start(HTTP_BODY_CHUNKED, 0);
    return feed(text, strlen(text), step);
}

START_TEST(length_ends_exactly)
{
    for (size_t step = 1; step < 9; step++) {
        start(HTTP_BODY_LENGTH, 5);
        ck_assert_int_eq(feed("helloGET", 8, step), PARSE_OK);
        ck_assert(body.done && consumed == 5 && body.total == 5);
        ck_assert(slice_eq(slice_of(got, got_n), SLICE("hello")));
        ck_assert(h1_body_eof(&body));
    }
    start(HTTP_BODY_LENGTH, 5);
    ck_assert_int_eq(feed("hell", 4, 4), PARSE_MORE);
    ck_assert(!h1_body_eof(&body));
    start(HTTP_BODY_LENGTH, 0);
    ck_assert(body.done);
    ck_assert_int_eq(feed("GET", 3, 3), PARSE_OK);
    ck_assert_uint_eq(consumed, 0);
    start(HTTP_BODY_NONE, 7);
    ck_assert_int_eq(feed("GET", 3, 3), PARSE_OK);
    ck_assert(body.done && consumed == 0 && got_n == 0);
}
END_TEST

START_TEST(until_close_ends_with_the_stream_only)
{
    start(HTTP_BODY_UNTIL_CLOSE, 0);
    ck_assert_int_eq(feed("hello", 5, 2), PARSE_MORE);
    ck_assert(got_n == 5 && !body.done);
    ck_assert(h1_body_eof(&body));
    ck_assert(body.done);
}
END_TEST

static const char *const good_chunks[] = {
    "5\r\nhello\r\n0\r\n\r\n",
    "2\r\nhe\r\n003\r\nllo\r\n0000\r\n\r\n",
    "5;a=b;c=\"d e\\\"\xe9\"\r\nhello\r\n0;x\r\n\r\n",
    "0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n",
    "1\r\nh\r\n4\r\nello\r\n0\r\nX-Sum: abc\r\n\r\n",
};

START_TEST(chunks_are_decoded_however_cut)
{
    for (size_t i = 0; i < sizeof good_chunks / sizeof good_chunks[0]; i++) {
        char text[128];
        int n = snprintf(text, sizeof text, "%sGET /", good_chunks[i]);
        for (size_t step = 1; step <= (size_t)n; step++) {
            ck_assert_msg(chunked(text, step) == PARSE_OK, "%s by %zu: %s", text, step,
                          body.problem);
            ck_assert(body.done && body.total == 5);
            ck_assert_uint_eq(consumed, (size_t)n - 5);
            ck_assert(slice_eq(slice_of(got, got_n), SLICE("hello")));
        }
        ck_assert_int_eq(chunked(text, 1), PARSE_OK);
        start(HTTP_BODY_CHUNKED, 0);
        ck_assert_int_eq(feed(text, (size_t)n - 6, 3), PARSE_MORE);
        ck_assert(!h1_body_eof(&body));
    }
}
END_TEST

START_TEST(data_is_a_run_of_the_callers_buffer)
{
    static const char text[] = "5\r\nhello\r\n0\r\n\r\n";
    start(HTTP_BODY_CHUNKED, 0);
    size_t used;
    struct slice data;
    ck_assert_int_eq(h1_body_read(&body, text, sizeof text - 1, &arena, &used, &data), PARSE_MORE);
    ck_assert_ptr_eq(data.p, text + 3);
    ck_assert(data.n == 5 && used == 8);
    ck_assert_int_eq(h1_body_read(&body, text + 8, sizeof text - 9, &arena, &used, &data),
                     PARSE_OK);
    ck_assert(data.n == 0 && used == 7);
    ck_assert_uint_eq(arena.total_bytes, 0);
    ck_assert_ptr_null(body.trailer.p);
}
END_TEST

static const char *const bad_chunks[] = {
    "\r",
    "g",
    "0x",
    "+",
    "-",
    " ",
    "5 ",
    "5\t",
    "0_",
    "5\n",
    "5\rX",
    ";",
    "5;\r",
    "5;;",
    "5; ",
    "5;a ",
    "5;a=\r",
    "5;a=;",
    "5;a\n",
    "5;a=b\rX",
    "5;a=\"b\r",
    "5;a=\"b\\\r",
    "5;a=\"b\"c",
    "5;a=\"b\x01",
    "5;a=b\"",
    "00000000000000000",
    "4000000000000000",
    "8000000000000000",
    "ffffffffffffffff",
    "5\r\nhello\n",
    "5\r\nhelloX",
    "5\r\nhello\rX",
    "0\r\n\rX",
    "0\r\n\n",
    "0\r\nXX\r",
    "0\r\nX: y\n",
    "0\r\nX: y\r\n ",
    "0\r\nX ",
    "0\r\n:",
};

START_TEST(bad_chunks_are_refused_at_the_byte)
{
    for (size_t i = 0; i < sizeof bad_chunks / sizeof bad_chunks[0]; i++) {
        const char *text = bad_chunks[i];
        size_t n = strlen(text);
        start(HTTP_BODY_CHUNKED, 0);
        ck_assert_msg(feed(text, n - 1, 1) == PARSE_MORE, "%s", text);
        for (size_t step = 1; step <= n; step++) {
            ck_assert_msg(chunked(text, step) == PARSE_BAD, "%s by %zu", text, step);
            ck_assert_ptr_nonnull(body.problem);
        }
        size_t used;
        struct slice data;
        ck_assert_int_eq(h1_body_read(&body, "0", 1, &arena, &used, &data), PARSE_BAD);
    }
    start(HTTP_BODY_CHUNKED, 0);
    ck_assert_int_eq(feed("5\0", 2, 2), PARSE_BAD);
}
END_TEST

START_TEST(largest_chunk_size)
{
    ck_assert_int_eq(chunked("3fffffffffffffff\r\nx", 1), PARSE_MORE);
    ck_assert_uint_eq(body.left, (UINT64_C(1) << 62) - 2);
    ck_assert(!h1_body_eof(&body));
}
END_TEST

START_TEST(extension_length_is_bounded)
{
    char text[600];
    for (int ext = 255; ext <= 256; ext++) {
        int n = snprintf(text, sizeof text, "5;%0*d\r\nhello\r\n0\r\n\r\n", ext, 0);
        start(HTTP_BODY_CHUNKED, 0);
        ck_assert_int_eq(feed(text, (size_t)n, (size_t)n), ext == 255 ? PARSE_OK : PARSE_BAD);
    }
}
END_TEST

/* chunks of one byte, each with an extension of ext bytes: how many pass. */
static unsigned chunks_until_refused(int ext)
{
    char text[300];
    int n = snprintf(text, sizeof text, "1;%0*d\r\nx\r\n", ext - 1, 0);
    start(HTTP_BODY_CHUNKED, 0);
    unsigned count = 0;
    while (count < 100000 && feed(text, (size_t)n, (size_t)n) == PARSE_MORE)
        count++;
    return count;
}

START_TEST(chunk_lines_stay_in_proportion_to_data)
{
    ck_assert_uint_eq(chunks_until_refused(8), 100000);
    unsigned passed = chunks_until_refused(200);
    ck_assert(passed > 300 && passed < 400);
}
END_TEST

START_TEST(trailers_are_filtered_and_kept)
{
    ck_assert_int_eq(chunked("0\r\nX-Amz-Checksum-Crc32: a\r\nContent-Length: 0\r\nHOST: evil\r\n"
                             "Authorization: x\r\nProxy-Foo: y\r\nContent-Type: z\r\nTE: t\r\n"
                             "Set-Cookie: c\r\nX-B:  b \r\n\r\n",
                             5),
                     PARSE_OK);
    ck_assert_uint_eq(body.trailers.n, 2);
    ck_assert(slice_eq(body.trailers.v[0].name, SLICE("X-Amz-Checksum-Crc32")));
    ck_assert(slice_eq(body.trailers.v[1].value, SLICE("b")));
}
END_TEST

/* A trailer section of count fields "X: vvv…", len bytes each. */
static enum parse trailer_of(size_t count, size_t len, size_t step)
{
    static char text[20000];
    size_t n = 3;
    memcpy(text, "0\r\n", 3);
    for (size_t i = 0; i < count; i++) {
        memset(text + n, 'v', len);
        memcpy(text + n, "X:", 2);
        memcpy(text + n + len - 2, "\r\n", 2);
        n += len;
    }
    memcpy(text + n, "\r\n", 2);
    start(HTTP_BODY_CHUNKED, 0);
    return feed(text, n + 2, step);
}

START_TEST(trailer_section_is_bounded)
{
    static const size_t steps[] = {1, 7, 20000};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(trailer_of(64, 10, steps[i]), PARSE_OK);
        ck_assert_uint_eq(body.trailers.n, 64);
        ck_assert_int_eq(trailer_of(65, 10, steps[i]), PARSE_BAD);
        ck_assert_int_eq(trailer_of(1, 8190, steps[i]), PARSE_OK);
        ck_assert_int_eq(trailer_of(1, 8191, steps[i]), PARSE_BAD);
        ck_assert_int_eq(trailer_of(10, 1000, steps[i]), PARSE_BAD);
    }
}
END_TEST

START_TEST(chunks_that_are_written_can_be_read)
{
    static const struct {
        uint64_t n;
        const char *text;
    } heads[] = {
        {1, "1\r\n"}, {255, "ff\r\n"}, {4096, "1000\r\n"}, {UINT64_MAX, "ffffffffffffffff\r\n"}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char out[H1_CHUNK_HEAD_MAX];
        size_t n = h1_chunk_head(out, heads[i].n);
        ck_assert(slice_eq(slice_of(out, n), slice_str(heads[i].text)));
    }
    struct strbuf sb;
    strbuf_init(&sb, 64);
    ck_assert(h1_chunk_end(&sb, NULL));
    ck_assert(slice_eq(strbuf_slice(&sb), SLICE("0\r\n\r\n")));
    strbuf_reset(&sb);
    struct header_field v[] = {{SLICE("X-A"), SLICE("1")}, {SLICE("X-B"), SLICE("")}};
    struct header_list l = {v, 2, 2};
    ck_assert(h1_chunk_end(&sb, &l));
    ck_assert(slice_eq(strbuf_slice(&sb), SLICE("0\r\nX-A: 1\r\nX-B: \r\n\r\n")));
    strbuf_fini(&sb);
    strbuf_init(&sb, 4);
    ck_assert(!h1_chunk_end(&sb, NULL));
    strbuf_fini(&sb);
}
END_TEST

static TCase *bodies(void)
{
    TCase *tc = tcase_create("h1_body");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, length_ends_exactly);
    tcase_add_test(tc, until_close_ends_with_the_stream_only);
    tcase_add_test(tc, chunks_are_decoded_however_cut);
    tcase_add_test(tc, data_is_a_run_of_the_callers_buffer);
    tcase_add_test(tc, bad_chunks_are_refused_at_the_byte);
    tcase_add_test(tc, largest_chunk_size);
    tcase_add_test(tc, extension_length_is_bounded);
    tcase_add_test(tc, chunk_lines_stay_in_proportion_to_data);
    tcase_add_test(tc, trailers_are_filtered_and_kept);
    tcase_add_test(tc, trailer_section_is_bounded);
    tcase_add_test(tc, chunks_that_are_written_can_be_read);
    return tc;
}

UNIT_MAIN("h1_body", bodies)
