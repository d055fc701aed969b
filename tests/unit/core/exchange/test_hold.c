/* Which responses are held: one row a case, over statuses, framings, content types and permissions.
 */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/exchange/hold.h"

static const struct hold_limits limits = {
    .error_bytes = 64 * KIB, .small_bytes = 1000, .root_bytes = 256 * KIB, .root_ns = 7};

enum { AWS = 1, IN200 = 2, RETRY = 4, ALL = 7, SUM = 8 };

static const struct {
    unsigned status;
    enum http_method method;
    enum http_framing framing;
    uint64_t length;
    const char *type;
    unsigned flags;
    enum hold_kind kind;
    uint64_t bytes;
} rows[] = {
    /* Errors are read for their code, also when nothing can be retried; those of hosts that are not
       ours to understand pass through. */
    {503, HTTP_POST, HTTP_BODY_LENGTH, 10, "", AWS | RETRY, HOLD_ERROR, 64 * KIB},
    {400, HTTP_POST, HTTP_BODY_CHUNKED, 0, "", AWS | RETRY, HOLD_ERROR, 64 * KIB},
    {403, HTTP_GET, HTTP_BODY_UNTIL_CLOSE, 0, "", AWS, HOLD_ERROR, 64 * KIB},
    {404, HTTP_GET, HTTP_BODY_LENGTH, 1 << 30, "", AWS, HOLD_ERROR, 64 * KIB},
    {404, HTTP_GET, HTTP_BODY_LENGTH, 1 << 30, "", 0, HOLD_NONE, 0},
    {503, HTTP_GET, HTTP_BODY_CHUNKED, 0, "", 0, HOLD_NONE, 0},
    {301, HTTP_GET, HTTP_BODY_LENGTH, 10, "", AWS | RETRY, HOLD_ERROR, 64 * KIB},
    {307, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "", AWS | RETRY, HOLD_ERROR, 64 * KIB},
    {600, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "", AWS | RETRY, HOLD_ERROR, 64 * KIB},
    /* Without a body there is nothing to hold. */
    {503, HTTP_HEAD, HTTP_BODY_LENGTH, 10, "", ALL, HOLD_NONE, 0},
    {503, HTTP_GET, HTTP_BODY_LENGTH, 0, "", ALL, HOLD_NONE, 0},
    {503, HTTP_GET, HTTP_BODY_NONE, 0, "", ALL, HOLD_NONE, 0},
    {304, HTTP_GET, HTTP_BODY_LENGTH, 10, "", ALL, HOLD_NONE, 0},
    {204, HTTP_GET, HTTP_BODY_LENGTH, 10, "", ALL, HOLD_NONE, 0},
    {100, HTTP_GET, HTTP_BODY_LENGTH, 10, "", ALL, HOLD_NONE, 0},
    {101, HTTP_GET, HTTP_BODY_UNTIL_CLOSE, 0, "", ALL, HOLD_NONE, 0},
    /* Event streams flow. */
    {200, HTTP_POST, HTTP_BODY_LENGTH, 10, "application/vnd.amazon.eventstream", ALL, HOLD_NONE, 0},
    {200, HTTP_POST, HTTP_BODY_CHUNKED, 0, "Application/vnd.Amazon.EventStream ;v=1", ALL,
     HOLD_NONE, 0},
    {200, HTTP_POST, HTTP_BODY_LENGTH, 10, "application/vnd.amazon.eventstreams", AWS | RETRY,
     HOLD_SMALL, 10},
    /* Small successes of AWS, whole. */
    {200, HTTP_GET, HTTP_BODY_LENGTH, 1, "", AWS | RETRY, HOLD_SMALL, 1},
    {200, HTTP_GET, HTTP_BODY_LENGTH, 1000, "", AWS | RETRY, HOLD_SMALL, 1000},
    {206, HTTP_GET, HTTP_BODY_LENGTH, 7, "", AWS | RETRY, HOLD_SMALL, 7},
    {200, HTTP_GET, HTTP_BODY_LENGTH, 1001, "", AWS | RETRY, HOLD_NONE, 0},
    {200, HTTP_GET, HTTP_BODY_LENGTH, 0, "", AWS | RETRY, HOLD_NONE, 0},
    {200, HTTP_GET, HTTP_BODY_CHUNKED, 0, "", AWS | RETRY, HOLD_NONE, 0},
    {200, HTTP_GET, HTTP_BODY_UNTIL_CLOSE, 0, "", AWS | RETRY, HOLD_NONE, 0},
    {200, HTTP_GET, HTTP_BODY_LENGTH, 10, "", RETRY, HOLD_NONE, 0},
    {200, HTTP_GET, HTTP_BODY_LENGTH, 10, "", AWS, HOLD_NONE, 0},
    /* The S3 operations that can fail inside a 200. */
    {200, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "application/xml", ALL, HOLD_ROOT, 256 * KIB},
    {200, HTTP_POST, HTTP_BODY_LENGTH, 50, "application/xml", ALL, HOLD_ROOT, 256 * KIB},
    {200, HTTP_POST, HTTP_BODY_LENGTH, 0, "", ALL, HOLD_NONE, 0},
    {201, HTTP_POST, HTTP_BODY_CHUNKED, 0, "", ALL, HOLD_NONE, 0},
    {200, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "", AWS | IN200, HOLD_NONE, 0},
    {503, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "", ALL, HOLD_ERROR, 64 * KIB},
    /* A checksum needs the whole of a small success, whoever it is from and however it ends. */
    {200, HTTP_POST, HTTP_BODY_LENGTH, 1000, "", SUM | AWS | RETRY, HOLD_SMALL, 1000},
    {200, HTTP_POST, HTTP_BODY_LENGTH, 1000, "", SUM | RETRY, HOLD_SMALL, 1000},
    {200, HTTP_POST, HTTP_BODY_LENGTH, 1001, "", SUM | AWS | RETRY, HOLD_NONE, 0},
    {200, HTTP_POST, HTTP_BODY_CHUNKED, 0, "", SUM | AWS | RETRY, HOLD_SMALL, 1000},
    {200, HTTP_POST, HTTP_BODY_UNTIL_CLOSE, 0, "", SUM | RETRY, HOLD_SMALL, 1000},
    {200, HTTP_POST, HTTP_BODY_CHUNKED, 0, "", SUM | AWS, HOLD_NONE, 0},
    {200, HTTP_HEAD, HTTP_BODY_CHUNKED, 0, "", SUM | AWS | RETRY, HOLD_NONE, 0},
    {400, HTTP_POST, HTTP_BODY_LENGTH, 9, "", SUM | AWS | RETRY, HOLD_ERROR, 64 * KIB},
    {200, HTTP_PUT, HTTP_BODY_CHUNKED, 0, "", SUM | ALL, HOLD_ROOT, 256 * KIB},
};

START_TEST(row)
{
    struct header_field type = {SLICE("Content-Type"), slice_str(rows[_i].type)};
    struct http_resp resp = {
        .status = rows[_i].status,
        .framing = rows[_i].framing,
        .content_length = rows[_i].length,
        .fields = {&type, type.value.n > 0 ? 1 : 0, 1},
    };
    unsigned flags = rows[_i].flags;
    unsigned doubts =
        (flags & IN200 ? HOLD_DOUBT_ROOT : 0) | (flags & SUM ? HOLD_DOUBT_CHECKSUM : 0);
    struct hold h =
        hold_decide(&resp, rows[_i].method, flags & AWS, doubts, flags & RETRY, &limits);
    ck_assert_int_eq(h.kind, rows[_i].kind);
    ck_assert_uint_eq(h.bytes, rows[_i].bytes);
    ck_assert_int_eq(h.time_ns, h.kind == HOLD_ROOT ? 7 : 0);
}
END_TEST

/* A bound of 0 turns a kind of holding off. */
START_TEST(bounds_of_zero)
{
    static const struct hold_limits none = {0};
    struct http_resp resp = {.status = 200, .framing = HTTP_BODY_LENGTH, .content_length = 10};
    ck_assert_int_eq(hold_decide(&resp, HTTP_GET, true, 0, true, &none).kind, HOLD_NONE);
    ck_assert_int_eq(hold_decide(&resp, HTTP_GET, true, HOLD_DOUBT_ROOT, true, &none).kind,
                     HOLD_NONE);
    resp.framing = HTTP_BODY_CHUNKED;
    ck_assert_int_eq(hold_decide(&resp, HTTP_GET, true, HOLD_DOUBT_CHECKSUM, true, &none).kind,
                     HOLD_NONE);
    resp.status = 503;
    ck_assert_int_eq(hold_decide(&resp, HTTP_GET, true, 0, true, &none).kind, HOLD_NONE);
}
END_TEST

static TCase *holds(void)
{
    TCase *tc = tcase_create("hold");
    tcase_add_loop_test(tc, row, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, bounds_of_zero);
    return tc;
}

UNIT_MAIN("hold", holds)
