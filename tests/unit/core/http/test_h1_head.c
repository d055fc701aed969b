/* Heads: what a good one yields, what each bad one is answered with, and that limits and verdicts
 * depend on the bytes alone (security requirements B1-B8, B12, B14, D1, D2). */
#include "unit.h"

#include "core/http/h1_head.h"

#include <stdio.h>

static struct arena arena;
static struct h1_head st;
static struct http_req req;
static struct http_resp resp;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

static enum parse request(const char *text)
{
    st = (struct h1_head){0};
    return h1_parse_request(&st, text, strlen(text), &h1_request_limits, &arena, &req);
}

static enum parse response_to(enum http_method m, const char *text)
{
    st = (struct h1_head){0};
    return h1_parse_response(&st, text, strlen(text), &h1_response_limits, m, &arena, &resp);
}

#define REQ "POST / HTTP/1.1\r\nHost: h\r\n"

START_TEST(request_parts_are_the_bytes_received)
{
    static const char text[] = "\r\n\r\nX-M!1 http://h/%2e?q HTTP/1.1\r\nhOsT: h\r\nB:  x  y \r\n"
                               "b:\r\n\r\nGET";
    ck_assert_int_eq(request(text), PARSE_OK);
    ck_assert_uint_eq(st.consumed, sizeof text - 1 - 3);
    ck_assert(st.started);
    ck_assert_uint_eq(st.blank, 2);
    ck_assert_uint_eq(st.head_start, 4);
    ck_assert(slice_eq(req.method, SLICE("X-M!1")));
    ck_assert_int_eq(req.method_id, HTTP_OTHER);
    ck_assert(slice_eq(req.target, SLICE("http://h/%2e?q")));
    ck_assert_uint_eq(req.minor, 1);
    ck_assert_uint_eq(req.fields.n, 3);
    ck_assert(slice_eq(req.fields.v[0].name, SLICE("hOsT")));
    ck_assert(slice_eq(req.fields.v[1].value, SLICE("x  y")));
    ck_assert(slice_eq(req.fields.v[2].name, SLICE("b")));
    ck_assert_int_eq(req.framing, HTTP_BODY_NONE);
    ck_assert(!req.close && !req.expect_continue);
}
END_TEST

START_TEST(request_framing_and_flags)
{
    ck_assert_int_eq(request(REQ "Content-Length: 010\r\nExpect: 100-Continue\r\n\r\n"), PARSE_OK);
    ck_assert_int_eq(req.framing, HTTP_BODY_LENGTH);
    ck_assert_uint_eq(req.content_length, 10);
    ck_assert(req.expect_continue);
    ck_assert_int_eq(request(REQ "Content-Length: 999999999999999999\r\n\r\n"), PARSE_OK);
    ck_assert_uint_eq(req.content_length, UINT64_C(999999999999999999));
    ck_assert_int_eq(request(REQ "Transfer-Encoding: CHUNKED\r\nConnection: x, CLOSE\r\n\r\n"),
                     PARSE_OK);
    ck_assert_int_eq(req.framing, HTTP_BODY_CHUNKED);
    ck_assert(req.close);
    ck_assert_int_eq(
        request("GET / HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive\r\n\r\n"),
        PARSE_OK);
    ck_assert(req.close && !req.expect_continue && req.minor == 0);
    ck_assert_int_eq(request("GET / HTTP/1.7\r\nHost: h\r\n\r\n"), PARSE_OK);
    ck_assert_uint_eq(req.minor, 7);
    ck_assert_int_eq(request("CONNECT h:1 HTTP/1.1\r\n\r\n"), PARSE_OK);
    ck_assert_int_eq(request("CONNECT h:1 HTTP/1.0\r\n\r\n"), PARSE_OK);
    ck_assert_int_eq(req.method_id, HTTP_CONNECT);
}
END_TEST

static const struct {
    const char *text;
    unsigned status;
} bad_requests[] = {
    {" ", 400},
    {"\n", 400},
    {"\rG", 400},
    {"GE(", 400},
    {"GET\t", 400},
    {"GET  ", 400},
    {"GET /a#", 400},
    {"GET /a\\", 400},
    {"GET /\xc3", 400},
    {"GET / \r", 400},
    {"GET /\r", 400},
    {"GET / HTTP/1.1 ", 400},
    {"GET / HTTP/1.1\n", 400},
    {"GET / HTTP/1.\r", 400},
    {"GET / HTTP/11", 400},
    {"GET / h", 400},
    {"GET / HTTP/2.0\r\n", 505},
    {"GET / HTTP/0.9\r\n", 505},
    {"\r\n\r\n\r\n\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", 400},
    {REQ "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {REQ "Content-Length: 1, 1\r\n\r\n", 400},
    {REQ "Content-Length:\r\n\r\n", 400},
    {REQ "Content-Length: +1\r\n\r\n", 400},
    {REQ "Content-Length: 1000000000000000000\r\n\r\n", 400},
    {REQ "Content-Length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400},
    {REQ "Transfer-Encoding: chunked\r\ncontent-length: 1\r\n\r\n", 400},
    {REQ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {REQ "Transfer-Encoding: gzip\r\n\r\n", 400},
    {REQ "Transfer-Encoding:\r\n\r\n", 400},
    {REQ "Transfer-Encoding: ,chunked\r\n\r\n", 400},
    {REQ "Transfer-Encoding: chunked,\r\n\r\n", 400},
    {REQ "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
    {REQ "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"CONNECT h:1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400},
    {"CONNECT h:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {REQ "Connection: Content-Length\r\n\r\n", 400},
    {REQ "Connection: (x)\r\n\r\n", 400},
    {REQ "Expect: the-inquisition\r\n\r\n", 417},
    {REQ "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", 417},
    {REQ "Expect:\r\n\r\n", 417},
    {REQ "A: b\r\n ", 400},
};

START_TEST(bad_requests_are_refused_at_the_byte_with_their_status)
{
    for (size_t i = 0; i < sizeof bad_requests / sizeof bad_requests[0]; i++) {
        const char *text = bad_requests[i].text;
        ck_assert_msg(request(text) == PARSE_BAD, "%s", text);
        ck_assert_msg(st.status == bad_requests[i].status, "%s: %u", text, st.status);
        ck_assert_ptr_nonnull(st.problem);
        const char *problem = st.problem;
        st = (struct h1_head){0};
        for (size_t n = 0; n < strlen(text); n++)
            ck_assert_msg(h1_parse_request(&st, text, n, &h1_request_limits, &arena, &req) ==
                              PARSE_MORE,
                          "%s at %zu", text, n);
        ck_assert_int_eq(
            h1_parse_request(&st, text, strlen(text), &h1_request_limits, &arena, &req), PARSE_BAD);
        ck_assert_str_eq(st.problem, problem);
        ck_assert_uint_eq(st.status, bad_requests[i].status);
    }
}
END_TEST

/* prefix, n times fill, suffix; parsed whole and byte by byte with the same result. */
static enum parse request_of(const char *prefix, const char *fill, size_t n, const char *suffix,
                             const struct h1_limits *lim)
{
    size_t total = strlen(prefix) + n * strlen(fill) + strlen(suffix);
    char *text = malloc(total + 1);
    char *end = stpcpy(text, prefix);
    for (size_t i = 0; i < n; i++)
        end = stpcpy(end, fill);
    stpcpy(end, suffix);
    struct h1_head slow = {0};
    enum parse by_byte = PARSE_MORE;
    for (size_t i = 0; i <= total && by_byte == PARSE_MORE; i++)
        by_byte = h1_parse_request(&slow, text, i, lim, &arena, &req);
    st = (struct h1_head){0};
    enum parse whole = h1_parse_request(&st, text, total, lim, &arena, &req);
    ck_assert_int_eq(by_byte, whole);
    ck_assert_uint_eq(slow.status, st.status);
    ck_assert_uint_eq(slow.consumed, st.consumed);
    free(text);
    return whole;
}

START_TEST(limits_are_exact)
{
    const struct h1_limits *lim = &h1_request_limits;
    static const char rest[] = " HTTP/1.1\r\nHost: h\r\n\r\n",
                      get[] = "GET / HTTP/1.1\r\nHost: h\r\n";
    ck_assert_int_eq(request_of("", "M", 64, " / HTTP/1.0\r\n\r\n", lim), PARSE_OK);
    ck_assert_int_eq(request_of("", "M", 65, " / HTTP/1.0\r\n\r\n", lim), PARSE_BAD);
    ck_assert_uint_eq(st.status, 400);
    ck_assert_int_eq(request_of("GET /", "a", 16 * 1024 - 1, rest, lim), PARSE_OK);
    ck_assert_int_eq(request_of("GET /", "a", 16 * 1024, rest, lim), PARSE_BAD);
    ck_assert_uint_eq(st.status, 414);
    ck_assert_int_eq(request_of(get, "A: b\r\n", 255, "\r\n", lim), PARSE_OK);
    ck_assert_int_eq(request_of(get, "A: b\r\n", 256, "\r\n", lim), PARSE_BAD);
    ck_assert_uint_eq(st.status, 431);
    size_t frame = sizeof get - 1 + strlen("A:") + 4;
    ck_assert_int_eq(
        request_of("GET / HTTP/1.1\r\nHost: h\r\nA:", "b", 64 * 1024 - frame, "\r\n\r\n", lim),
        PARSE_OK);
    ck_assert_uint_eq(st.consumed, 64 * 1024);
    ck_assert_int_eq(
        request_of("GET / HTTP/1.1\r\nHost: h\r\nA:", "b", 64 * 1024 - frame + 1, "\r\n\r\n", lim),
        PARSE_BAD);
    ck_assert_uint_eq(st.status, 431);
}
END_TEST

START_TEST(response_parts)
{
    static const char text[] = "HTTP/1.1 200 O K\xe9\r\nContent-Length: 5\r\nX: y\r\n\r\nhello";
    ck_assert_int_eq(response_to(HTTP_GET, text), PARSE_OK);
    ck_assert_uint_eq(st.consumed, sizeof text - 1 - 5);
    ck_assert_uint_eq(resp.status, 200);
    ck_assert_uint_eq(resp.minor, 1);
    ck_assert(slice_eq(resp.reason, SLICE("O K\xe9")));
    ck_assert_uint_eq(resp.fields.n, 2);
    ck_assert_int_eq(resp.framing, HTTP_BODY_LENGTH);
    ck_assert_uint_eq(resp.content_length, 5);
    ck_assert(!resp.close);
    ck_assert_int_eq(response_to(HTTP_GET, "HTTP/1.1 999\r\n\r\n"), PARSE_OK);
    ck_assert_uint_eq(resp.status, 999);
    ck_assert_uint_eq(resp.reason.n, 0);
    ck_assert_int_eq(response_to(HTTP_GET, "HTTP/1.1 200 \r\n\r\n"), PARSE_OK);
    ck_assert_uint_eq(resp.reason.n, 0);
}
END_TEST

static const struct {
    enum http_method method;
    const char *text;
    enum http_framing framing;
    bool close;
    uint64_t length;
} framings[] = {
    {HTTP_GET, "HTTP/1.1 200 K\r\n\r\n", HTTP_BODY_UNTIL_CLOSE, true, 0},
    {HTTP_GET, "HTTP/1.1 200 K\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY_CHUNKED, false, 0},
    {HTTP_GET, "HTTP/1.1 200 K\r\nContent-Length: 0\r\n\r\n", HTTP_BODY_LENGTH, false, 0},
    {HTTP_GET, "HTTP/1.1 200 K\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", HTTP_BODY_LENGTH,
     true, 0},
    {HTTP_GET, "HTTP/1.0 200 K\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n",
     HTTP_BODY_LENGTH, true, 3},
    {HTTP_HEAD, "HTTP/1.1 200 K\r\nContent-Length: 5\r\n\r\n", HTTP_BODY_NONE, false, 5},
    {HTTP_HEAD, "HTTP/1.1 200 K\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY_NONE, false, 0},
    {HTTP_HEAD, "HTTP/1.1 200 K\r\n\r\n", HTTP_BODY_NONE, false, 0},
    {HTTP_GET, "HTTP/1.1 304 K\r\nContent-Length: 500\r\n\r\n", HTTP_BODY_NONE, false, 500},
    {HTTP_GET, "HTTP/1.1 204 K\r\n\r\n", HTTP_BODY_NONE, false, 0},
    {HTTP_GET, "HTTP/1.1 204 K\r\nContent-Length: 0\r\n\r\n", HTTP_BODY_NONE, false, 0},
    {HTTP_GET, "HTTP/1.1 204 K\r\nContent-Length: 5\r\n\r\n", HTTP_BODY_NONE, true, 5},
    {HTTP_GET, "HTTP/1.1 204 K\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY_NONE, true, 0},
    {HTTP_GET, "HTTP/1.1 100 K\r\n\r\n", HTTP_BODY_NONE, false, 0},
    {HTTP_GET, "HTTP/1.1 102 K\r\nContent-Length: 40\r\n\r\n", HTTP_BODY_NONE, true, 40},
    {HTTP_CONNECT, "HTTP/1.1 200 K\r\nContent-Length: 5\r\n\r\n", HTTP_BODY_NONE, false, 5},
    {HTTP_CONNECT, "HTTP/1.1 403 K\r\nContent-Length: 5\r\n\r\n", HTTP_BODY_LENGTH, false, 5},
};

START_TEST(response_framing)
{
    for (size_t i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        ck_assert_int_eq(response_to(framings[i].method, framings[i].text), PARSE_OK);
        ck_assert_msg(resp.framing == framings[i].framing && resp.close == framings[i].close &&
                          resp.content_length == framings[i].length,
                      "%s: %d %d", framings[i].text, resp.framing, resp.close);
    }
}
END_TEST

START_TEST(bad_responses_are_refused_at_the_byte)
{
    static const char *const texts[] = {
        "\r",
        "<",
        "I",
        "h",
        "HTTP/2",
        "HTTP/1.1\t",
        "HTTP/1.1  ",
        "HTTP/1.1 0",
        "HTTP/1.1 +",
        "HTTP/1.1 20 ",
        "HTTP/1.1 2000",
        "HTTP/1.1 200\n",
        "HTTP/1.1 200\rX",
        "HTTP/1.1 200 O\x01",
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 OK\rX",
        "HTTP/1.1 200 OK\r\nA ",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5;\r\n\r\n",
        "HTTP/1.1 204 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: x-amz-id-2\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t n = strlen(texts[i]);
        st = (struct h1_head){0};
        for (size_t k = 0; k < n; k++)
            ck_assert_int_eq(
                h1_parse_response(&st, texts[i], k, &h1_response_limits, HTTP_GET, &arena, &resp),
                PARSE_MORE);
        ck_assert_msg(response_to(HTTP_GET, texts[i]) == PARSE_BAD, "%s", texts[i]);
        ck_assert_ptr_nonnull(st.problem);
    }
}
END_TEST

START_TEST(one_byte_reads_look_at_each_byte_once)
{
    size_t n = 60 * 1024;
    char *text = malloc(n);
    memset(text, 'a', n);
    memcpy(text, REQ "A: ", strlen(REQ "A: "));
    st = (struct h1_head){0};
    for (size_t i = 1; i <= n; i++) {
        ck_assert_int_eq(h1_parse_request(&st, text, i, &h1_request_limits, &arena, &req),
                         PARSE_MORE);
        ck_assert_uint_ge(st.scanned + 1, i);
    }
    ck_assert_uint_eq(arena.total_bytes, 0);
    free(text);
}
END_TEST

static TCase *heads(void)
{
    TCase *tc = tcase_create("h1_head");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, request_parts_are_the_bytes_received);
    tcase_add_test(tc, request_framing_and_flags);
    tcase_add_test(tc, bad_requests_are_refused_at_the_byte_with_their_status);
    tcase_add_test(tc, limits_are_exact);
    tcase_add_test(tc, response_parts);
    tcase_add_test(tc, response_framing);
    tcase_add_test(tc, bad_responses_are_refused_at_the_byte);
    tcase_add_test(tc, one_byte_reads_look_at_each_byte_once);
    return tc;
}

UNIT_MAIN("h1_head", heads)
