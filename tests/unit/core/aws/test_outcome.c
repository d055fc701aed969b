/* The reading of a response: codes, S3 errors inside a 200, checksums, what legacy strategies look
 * at, and waits that servers ask for (retry-semantics §3, §6, §13.4; legacy-modes §9). */
#include "core/aws/outcome.h"
#include "core/base/attr.h"
#include "core/base/units.h"
#include "unit.h"

#define ZLIB_CONST
#include <stdio.h>
#include <zlib.h>

static struct arena arena;

static const struct aws_options all_on = {true, true, true, true}, all_off = {false};

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

struct seen {
    struct http_resp head;
    struct aws_response r;
    struct aws_target target;
};

static struct seen seen(unsigned status, struct slice held, bool whole)
{
    return (struct seen){.head = {.status = status,
                                  .framing = HTTP_BODY_LENGTH,
                                  .content_length = held.n + (whole ? 0 : 1)},
                         .r = {.held = held, .whole = whole}};
}

static void add(struct seen *s, const char *name, const char *value)
{
    header_add(&s->head.fields, &arena, slice_str(name), slice_str(value));
}

static struct aws_reading read_seen(struct seen *s, const struct aws_options *o)
{
    struct aws_reading out;
    s->r.head = &s->head;
    aws_outcome(&s->r, &s->target, o, &arena, &out);
    ck_assert_uint_eq(out.outcome.status, s->head.status);
    ck_assert(slice_eq(out.outcome.code, out.error.code));
    return out;
}

START_TEST(errors_have_codes)
{
    static const unsigned statuses[] = {300, 301, 400, 403, 429, 500, 503, 599};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct seen s = seen(statuses[i], SLICE("{\"__type\":\"A\"}"), true);
        struct aws_reading r = read_seen(&s, &all_off);
        ck_assert(slice_eq(r.outcome.code, SLICE("A")));
        ck_assert_int_eq(r.error.source, ERRCODE_JSON_TYPE);
        ck_assert_int_eq(r.error.format, ERRCODE_FORMAT_JSON);
    }
    /* Nothing held: the headers speak. */
    struct seen s = seen(503, SLICE_NONE, false);
    add(&s, "x-amzn-errortype", "A");
    ck_assert_int_eq(read_seen(&s, &all_off).error.source, ERRCODE_HEADER);
    /* A success has no code, whatever it carries. */
    s = seen(200, SLICE("{\"__type\":\"A\"}"), true);
    add(&s, "x-amzn-errortype", "A");
    ck_assert_uint_eq(read_seen(&s, &all_on).outcome.code.n, 0);
}
END_TEST

static struct slice padded(size_t blanks, const char *text)
{
    struct slice tail = slice_str(text);
    char *p = arena_alloc(&arena, blanks + tail.n);
    memset(p, ' ', blanks);
    memcpy(p + blanks, tail.p, tail.n);
    return slice_of(p, blanks + tail.n);
}

#define SLOW_DOWN "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code></Error>"

START_TEST(s3_200)
{
    static const struct {
        const char *body;
        bool whole, error;
        const char *code;
    } cases[] = {
        {SLOW_DOWN, true, true, "SlowDown"},
        {SLOW_DOWN, false, true, "SlowDown"},
        {"<Error/>", true, true, ""},
        {"<R><Error><Code>A</Code></Error></R>", true, false, ""},
        {"<R>cut", true, true, ""},
        {"<R>cut", false, false, ""},
        {"   ", true, true, ""},
        {"   ", false, false, ""},
        {"text", true, true, ""},
        {"", true, false, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen s = seen(200, slice_str(cases[i].body), cases[i].whole);
        s.target.error_in_200 = true;
        struct aws_reading r = read_seen(&s, &all_off);
        ck_assert_msg(r.outcome.error_in_200 == cases[i].error, "%s", cases[i].body);
        ck_assert_msg(slice_eq(r.outcome.code, slice_str(cases[i].code)), "%s", cases[i].body);
        /* Another operation, another status. */
        s.target.error_in_200 = false;
        ck_assert(!read_seen(&s, &all_on).outcome.error_in_200);
        s.target.error_in_200 = true;
        s.head.status = 201;
        ck_assert(!read_seen(&s, &all_on).outcome.error_in_200);
        /* With the option. */
        s.head.status = 200;
        s.target.error_in_200 = false;
        s.target.xml_in_200 = true;
        ck_assert(read_seen(&s, &all_on).outcome.error_in_200 == cases[i].error);
        ck_assert(!read_seen(&s, &all_off).outcome.error_in_200);
    }
    struct seen s = seen(200, padded(ERRCODE_BODY_MAX + 100, SLOW_DOWN), true);
    s.target.error_in_200 = true;
    ck_assert(slice_eq(read_seen(&s, &all_off).outcome.code, SLICE("SlowDown")));
}
END_TEST

static struct slice gzip(struct slice text)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
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

START_TEST(s3_200_coded)
{
    struct seen s = seen(200, gzip(SLICE(SLOW_DOWN)), true);
    s.target.error_in_200 = true;
    add(&s, "content-encoding", "gzip");
    struct aws_reading r = read_seen(&s, &all_off);
    ck_assert(r.outcome.error_in_200 && slice_eq(r.outcome.code, SLICE("SlowDown")));
    s.r.held = gzip(SLICE("<R/>"));
    ck_assert(!read_seen(&s, &all_off).outcome.error_in_200);
    s.r.held = gzip(SLICE("<R>more than fits</R>"));
    s.r.held.n -= 16;
    ck_assert(read_seen(&s, &all_off).outcome.error_in_200);
    /* More than is decoded: the benefit of the doubt. */
    s.r.held = gzip(padded(300000, SLOW_DOWN));
    ck_assert(!read_seen(&s, &all_off).outcome.error_in_200);
    /* What cannot be read proves nothing. */
    s.head.fields.n = 0;
    add(&s, "content-encoding", "br");
    ck_assert(!read_seen(&s, &all_off).outcome.error_in_200);
}
END_TEST

START_TEST(checksums)
{
    static const unsigned statuses[] = {200, 201, 400, 500};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct seen s = seen(statuses[i], SLICE("foo"), true);
        add(&s, "x-amz-crc32", "2356372768");
        s.target.service = aws_service_by_name(SLICE("dynamodb"));
        ck_assert(aws_checksummed(&s.head, &s.target, &all_on));
        ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_CHECKSUM);
        ck_assert_int_eq(read_seen(&s, &all_off).outcome.failure, RETRY_FAIL_NONE);
        s.r.whole = false;
        ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
        s.r.whole = true;
        s.r.held = SLICE_NONE;
        ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
        s.r.held = SLICE("foo");
        s.target.service = aws_service_by_name(SLICE("dynamodb-streams"));
        ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
        s.target.service = NULL;
        ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
    }
    struct seen s = seen(200, SLICE("foo"), true);
    s.target.service = aws_service_by_name(SLICE("dynamodb"));
    ck_assert(!aws_checksummed(&s.head, &s.target, &all_on));
    add(&s, "x-amz-crc32", "2356372769");
    ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
}
END_TEST

/* The checksum is of the bytes as transferred. */
START_TEST(checksum_of_a_coded_body)
{
    struct slice body = gzip(SLICE("{}"));
    char text[16];
    snprintf(text, sizeof text, "%lu", crc32(0, (const unsigned char *)body.p, (uInt)body.n));
    struct seen s = seen(200, body, true);
    s.target.service = aws_service_by_name(SLICE("dynamodb"));
    add(&s, "content-encoding", "gzip");
    add(&s, "x-amz-crc32", text);
    ck_assert_int_eq(read_seen(&s, &all_on).outcome.failure, RETRY_FAIL_NONE);
}
END_TEST

START_TEST(kinds_of_bodies)
{
    static const struct {
        const char *type, *body;
        enum retry_body kind;
    } cases[] = {
        {"application/json", "", RETRY_BODY_EMPTY},
        {"application/json", "{}", RETRY_BODY_JSON},
        {"application/x-amz-json-1.1", "{\"message\":\"m\"}", RETRY_BODY_JSON},
        {"application/json", "{\"__type\":\"A\"}", RETRY_BODY_JSON},
        {"application/json", "{", RETRY_BODY_OTHER},
        {"application/json", "<html/>", RETRY_BODY_OTHER},
        {"text/html", "<html/>", RETRY_BODY_OTHER},
        {"text/xml", "<Error><Code>A</Code></Error>", RETRY_BODY_OTHER},
        {"text/plain", "x", RETRY_BODY_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen s = seen(503, slice_str(cases[i].body), true);
        add(&s, "content-type", cases[i].type);
        ck_assert_msg(read_seen(&s, &all_off).outcome.body == cases[i].kind, "%s", cases[i].body);
    }
    struct seen s = seen(503, SLICE_NONE, false);
    ck_assert_int_eq(read_seen(&s, &all_off).outcome.body, RETRY_BODY_OTHER);
    s.head.content_length = 0;
    ck_assert_int_eq(read_seen(&s, &all_off).outcome.body, RETRY_BODY_EMPTY);
    s.head.framing = HTTP_BODY_CHUNKED;
    ck_assert_int_eq(read_seen(&s, &all_off).outcome.body, RETRY_BODY_OTHER);
    s.head.framing = HTTP_BODY_NONE;
    ck_assert_int_eq(read_seen(&s, &all_off).outcome.body, RETRY_BODY_EMPTY);
}
END_TEST

START_TEST(socket_message)
{
    struct slice body = SLICE("<Error><Code>RequestTimeout</Code><Message>" RETRY_SOCKET_MESSAGE
                              " was not read from</Message></Error>");
    struct seen s = seen(400, body, true);
    ck_assert(read_seen(&s, &all_on).outcome.socket_message);
    ck_assert(!read_seen(&s, &all_off).outcome.socket_message);
    s.head.status = 307;
    ck_assert(!read_seen(&s, &all_on).outcome.socket_message);
    s = seen(400, SLICE("<Error/>"), true);
    ck_assert(!read_seen(&s, &all_on).outcome.socket_message);
    s = seen(400, SLICE_NONE, true);
    ck_assert(!read_seen(&s, &all_on).outcome.socket_message);
    s = seen(400, gzip(body), true);
    add(&s, "content-encoding", "gzip");
    ck_assert(read_seen(&s, &all_on).outcome.socket_message);
}
END_TEST

START_TEST(amz_retry_after)
{
    struct seen s = seen(503, SLICE_NONE, true);
    ck_assert(!read_seen(&s, &all_off).outcome.has_retry_after);
    add(&s, "X-Amz-Retry-After", "1500");
    struct aws_reading r = read_seen(&s, &all_off);
    ck_assert(r.outcome.has_retry_after);
    ck_assert_int_eq(r.outcome.retry_after_ns, 1500 * NS_PER_MS);
    ck_assert_int_eq(r.outcome.http_after, RETRY_HTTP_AFTER_NONE);
    add(&s, "x-amz-retry-after", "1500");
    ck_assert(!read_seen(&s, &all_off).outcome.has_retry_after);
    s = seen(503, SLICE_NONE, true);
    add(&s, "x-amz-retry-after", "1.5");
    ck_assert(!read_seen(&s, &all_off).outcome.has_retry_after);
}
END_TEST

START_TEST(http_retry_after)
{
    static const char noon[] = "Sun, 06 Nov 1994 12:00:00 GMT",
                      epoch[] = "Thu, 01 Jan 1970 00:00:00 GMT";
    enum { NOON_S = 784123200 };
    static const struct {
        const char *after, *date;
        int64_t now_s;
        enum retry_http_after kind;
        int64_t ns;
    } cases[] = {
        {"3", NULL, 0, RETRY_HTTP_AFTER_SECONDS, 3 * NS_PER_S},
        {"0", NULL, 0, RETRY_HTTP_AFTER_SECONDS, 0},
        {"-3", NULL, NOON_S, RETRY_HTTP_AFTER_NONE, 0},
        {"3.5", NULL, NOON_S, RETRY_HTTP_AFTER_NONE, 0},
        {"soon", NULL, NOON_S, RETRY_HTTP_AFTER_NONE, 0},
        {noon, "Sun, 06 Nov 1994 11:59:30 GMT", 0, RETRY_HTTP_AFTER_DATE, 30 * NS_PER_S},
        {noon, "Sun, 06 Nov 1994 11:59:30 GMT", 5, RETRY_HTTP_AFTER_DATE, 30 * NS_PER_S},
        {noon, NULL, NOON_S - 7, RETRY_HTTP_AFTER_DATE, 7 * NS_PER_S},
        {noon, NULL, NOON_S + 7, RETRY_HTTP_AFTER_DATE, 0},
        {noon, NULL, 0, RETRY_HTTP_AFTER_NONE, 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", epoch, 5, RETRY_HTTP_AFTER_NONE, 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", noon, 5, RETRY_HTTP_AFTER_DATE, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen s = seen(503, SLICE_NONE, true);
        add(&s, "Retry-After", cases[i].after);
        if (cases[i].date)
            add(&s, "Date", cases[i].date);
        s.r.now_s = cases[i].now_s;
        struct retry_outcome o = read_seen(&s, &all_off).outcome;
        ck_assert_msg(o.http_after == cases[i].kind && o.http_after_ns == cases[i].ns, "%zu", i);
        ck_assert(!o.has_retry_after);
        add(&s, "retry-after", cases[i].after);
        ck_assert_int_eq(read_seen(&s, &all_off).outcome.http_after, RETRY_HTTP_AFTER_NONE);
    }
}
END_TEST

START_TEST(clock_skew)
{
    static const struct {
        const char *date;
        int64_t now_s, skew_ns;
    } cases[] = {
        {"Thu, 01 Jan 1970 00:10:00 GMT", 900, 300 * NS_PER_S},
        {"Thu, 01 Jan 1970 00:10:00 GMT", 300, 300 * NS_PER_S},
        {"Thu, 01 Jan 1970 00:10:00 GMT", 600, 0},
        {"Thu, 01 Jan 1970 00:10:00 GMT", 0, 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 1, INT64_MAX},
        {"yesterday", 900, 0},
        {NULL, 900, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen s = seen(403, SLICE_NONE, true);
        if (cases[i].date)
            add(&s, "date", cases[i].date);
        s.r.now_s = cases[i].now_s;
        ck_assert_int_eq(read_seen(&s, &all_off).outcome.date_skew_ns, cases[i].skew_ns);
    }
}
END_TEST

static TCase *outcomes(void)
{
    TCase *tc = tcase_create("outcome");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, errors_have_codes);
    tcase_add_test(tc, s3_200);
    tcase_add_test(tc, s3_200_coded);
    tcase_add_test(tc, checksums);
    tcase_add_test(tc, checksum_of_a_coded_body);
    tcase_add_test(tc, kinds_of_bodies);
    tcase_add_test(tc, socket_message);
    tcase_add_test(tc, amz_retry_after);
    tcase_add_test(tc, http_retry_after);
    tcase_add_test(tc, clock_skew);
    return tc;
}

UNIT_MAIN("outcome", outcomes)
