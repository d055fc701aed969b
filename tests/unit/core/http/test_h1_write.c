/* Written heads, byte for byte (security requirements C1, C2, C6, C12, D2). */
#include "unit.h"

#include "core/http/h1_head.h"
#include "core/http/h1_write.h"

static struct arena arena;
static struct strbuf out;
static struct http_req req;
static struct http_resp resp;

static void setup(void)
{
    arena_init(&arena);
    strbuf_init(&out, 4096);
}

static void teardown(void)
{
    strbuf_fini(&out);
    arena_fini(&arena);
}

static void parse_request(const char *text)
{
    struct h1_head st = {0};
    ck_assert_int_eq(h1_parse_request(&st, text, strlen(text), &h1_request_limits, &arena, &req),
                     PARSE_OK);
}

static void parse_response(enum http_method m, const char *text)
{
    struct h1_head st = {0};
    ck_assert_int_eq(
        h1_parse_response(&st, text, strlen(text), &h1_response_limits, m, &arena, &resp),
        PARSE_OK);
}

static void written(const char *text)
{
    ck_assert_msg(slice_eq(strbuf_slice(&out), slice_str(text)), "%.*s", SLICE_FMT(out));
    strbuf_reset(&out);
}

static void forward(const char *in, const char *path_query, const char *host, const char *expected)
{
    parse_request(in);
    ck_assert(h1_write_request(&out, &req, slice_str(path_query), slice_str(host), NULL, 0));
    written(expected);
}

START_TEST(a_head_without_hop_by_hop_fields_is_unchanged)
{
    static const char text[] =
        "PUT /a/../b//%2e?x=%20&&y HTTP/1.1\r\nhost: S3.test\r\n"
        "x-amz-meta-a: a   b\tC\r\nX-Empty: \r\nX-R: one\r\nEXPECT: 100-continue\r\n"
        "content-LENGTH: 5\r\nX-R: two\r\nX-Amzn-Trace-Id: Root=1\r\n"
        "X-Amz-Meta-Name: caf\xc3\xa9 \xe9\r\n\r\n";
    forward(text, "/a/../b//%2e?x=%20&&y", "", text);
}
END_TEST

START_TEST(request_is_normalised_in_place)
{
    forward("get http://o.test?a=b HTTP/1.2\r\nA:1\r\nhOST: evil\r\nConnection: close, X-I\r\n"
            "X-I: secret\r\nKeep-Alive: 5\r\nTE: gzip\r\nUpgrade: h2c\r\n"
            "Proxy-Authorization: Basic x\r\nB:\t2 \r\n\r\n",
            "?a=b", "o.test:8080",
            "get /?a=b HTTP/1.1\r\nA: 1\r\nhOST: o.test:8080\r\nB: 2\r\n\r\n");
    forward("GET http://o.test HTTP/1.0\r\nA: 1\r\n\r\n", "/", "o.test",
            "GET / HTTP/1.1\r\nHost: o.test\r\nA: 1\r\n\r\n");
    forward("OPTIONS http://o.test HTTP/1.1\r\nHost: o.test\r\n\r\n", "*", "o.test",
            "OPTIONS * HTTP/1.1\r\nHost: o.test\r\n\r\n");
    forward("GET http://o.test HTTP/1.1\r\nHost: o.test\r\n\r\n", "", "",
            "GET / HTTP/1.1\r\nHost: o.test\r\n\r\n");
}
END_TEST

START_TEST(exactly_one_framing_is_written_where_it_stood)
{
    forward("POST / HTTP/1.1\r\nHost: h\r\nCONTENT-length: 0010\r\nB: 2\r\n\r\n", "/", "",
            "POST / HTTP/1.1\r\nHost: h\r\nCONTENT-length: 10\r\nB: 2\r\n\r\n");
    forward("POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: ChUnKeD\r\nB: 2\r\n\r\n", "/", "",
            "POST / HTTP/1.1\r\nHost: h\r\nB: 2\r\nTransfer-Encoding: chunked\r\n\r\n");
    forward("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999999999999\r\n\r\n", "/", "",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999999999999\r\n\r\n");
    parse_request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nB: 2\r\n\r\n");
    req.framing = HTTP_BODY_CHUNKED;
    ck_assert(h1_write_request(&out, &req, SLICE("/"), SLICE_NONE, NULL, 0));
    written("POST / HTTP/1.1\r\nHost: h\r\nB: 2\r\nTransfer-Encoding: chunked\r\n\r\n");
    req.fields.n = 1;
    req.framing = HTTP_BODY_LENGTH;
    req.content_length = 0;
    ck_assert(h1_write_request(&out, &req, SLICE("/"), SLICE_NONE, NULL, 0));
    written("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}
END_TEST

START_TEST(fields_set_by_the_caller_and_extras_are_written)
{
    parse_request("OPTIONS / HTTP/1.1\r\nHost: h\r\nmax-forwards: 5\r\nVia: 1.0 fred\r\n\r\n");
    header_set(&req.fields, &arena, SLICE("Max-Forwards"), SLICE("4"));
    const struct h1_extra extra[] = {{SLICE("Via"), SLICE("1.1 p")}, {SLICE("X"), SLICE("y")}};
    ck_assert(h1_write_request(&out, &req, SLICE("/"), SLICE_NONE, extra, 2));
    written("OPTIONS / HTTP/1.1\r\nHost: h\r\nmax-forwards: 4\r\nVia: 1.0 fred\r\nVia: 1.1 p\r\n"
            "X: y\r\n\r\n");
}
END_TEST

START_TEST(websocket_handshakes_pass)
{
    static const char text[] = "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n";
    forward(text, "/ws", "", text);
    forward("GET /ws HTTP/1.0\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "/ws", "",
            "GET /ws HTTP/1.1\r\n\r\n");
    forward("PUT / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "/",
            "", "PUT / HTTP/1.1\r\nHost: h\r\n\r\n");
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                 "Connection: Upgrade\r\n\r\n";
    parse_response(HTTP_GET, answer);
    ck_assert(h1_write_response(&out, &resp, HTTP_BODY_NONE, false, NULL, 0));
    written(answer);
    resp.status = 426;
    ck_assert(h1_write_response(&out, &resp, HTTP_BODY_NONE, false, NULL, 0));
    written("HTTP/1.1 426 Switching Protocols\r\n\r\n");
}
END_TEST

static const struct {
    enum http_method method;
    const char *in;
    enum http_framing framing;
    bool close;
    const char *expected;
} responses[] = {
    {HTTP_GET,
     "HTTP/1.1 200 O K\r\nConnection: X-S, close\r\nX-S: s\r\nkeep-alive: 1\r\nSet-Cookie: a\r\n"
     "set-COOKIE: b\r\nProxy-Authenticate: x\r\nContent-Length: 05\r\nZ: z\r\n\r\n",
     HTTP_BODY_LENGTH, false,
     "HTTP/1.1 200 O K\r\nSet-Cookie: a\r\nset-COOKIE: b\r\nContent-Length: 5\r\nZ: z\r\n\r\n"},
    {HTTP_GET, /* whatever it says of itself: only requests are signed */
     "HTTP/1.1 200 OK\r\nConnection: close, X-S\r\nX-S: s\r\nTrailer: T\r\nAuthorization: "
     "AWS4-HMAC-SHA256 "
     "SignedHeaders=connection;trailer;x-s\r\nContent-Length: 5\r\n\r\n",
     HTTP_BODY_LENGTH, false,
     "HTTP/1.1 200 OK\r\nAuthorization: AWS4-HMAC-SHA256 SignedHeaders=connection;trailer;x-s\r\n"
     "Content-Length: 5\r\n\r\n"},
    {HTTP_GET, "HTTP/1.0 200\r\nA: b\r\n\r\n", HTTP_BODY_CHUNKED, false,
     "HTTP/1.1 200 \r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {HTTP_GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\nA: b\r\n\r\n", HTTP_BODY_CHUNKED,
     false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n"},
    {HTTP_GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n",
     HTTP_BODY_UNTIL_CLOSE, true, "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n"},
    {HTTP_HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_BODY_NONE, false,
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
    {HTTP_GET, "HTTP/1.1 304 NM\r\nContent-Length: 500\r\nETag: \"a\"\r\n\r\n", HTTP_BODY_NONE,
     false, "HTTP/1.1 304 NM\r\nContent-Length: 500\r\nETag: \"a\"\r\n\r\n"},
    {HTTP_GET, "HTTP/1.1 204 NC\r\nContent-Length: 5\r\nA: b\r\n\r\n", HTTP_BODY_NONE, false,
     "HTTP/1.1 204 NC\r\nA: b\r\n\r\n"},
    {HTTP_GET, "HTTP/1.1 103 EH\r\nContent-Length: 5\r\nLink: </a>\r\n\r\n", HTTP_BODY_NONE, false,
     "HTTP/1.1 103 EH\r\nLink: </a>\r\n\r\n"},
    {HTTP_HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY_NONE, true,
     "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"},
};

START_TEST(responses_are_normalised_in_place)
{
    for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++) {
        parse_response(responses[i].method, responses[i].in);
        ck_assert(
            h1_write_response(&out, &resp, responses[i].framing, responses[i].close, NULL, 0));
        written(responses[i].expected);
    }
}
END_TEST

START_TEST(a_full_buffer_is_reported)
{
    parse_request("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n");
    size_t whole = strlen("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n");
    for (size_t max = 0; max <= whole; max++) {
        struct strbuf small;
        strbuf_init(&small, max);
        ck_assert_int_eq(h1_write_request(&small, &req, SLICE("/"), SLICE_NONE, NULL, 0),
                         max == whole);
        strbuf_fini(&small);
    }
}
END_TEST

static TCase *writes(void)
{
    TCase *tc = tcase_create("h1_write");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_head_without_hop_by_hop_fields_is_unchanged);
    tcase_add_test(tc, request_is_normalised_in_place);
    tcase_add_test(tc, exactly_one_framing_is_written_where_it_stood);
    tcase_add_test(tc, fields_set_by_the_caller_and_extras_are_written);
    tcase_add_test(tc, websocket_handshakes_pass);
    tcase_add_test(tc, responses_are_normalised_in_place);
    tcase_add_test(tc, a_full_buffer_is_reported);
    return tc;
}

UNIT_MAIN("h1_write", writes)
