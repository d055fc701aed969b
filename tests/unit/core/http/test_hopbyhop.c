/* Hop-by-hop fields: what goes, what stays, and whom Connection may name (security requirements C6,
 * C7, C8, C12). */
#include "unit.h"

#include "core/base/attr.h"
#include "core/http/hopbyhop.h"

static struct arena arena;
static struct header_list list;

static void setup(void)
{
    arena_init(&arena);
    list = (struct header_list){0};
}

static void teardown(void)
{
    arena_fini(&arena);
}

static void add(const char *name, const char *value)
{
    header_add(&list, &arena, slice_str(name), slice_str(value));
}

static bool keeps(const struct hopbyhop *h, const char *name)
{
    return hopbyhop_keeps(h, &(struct header_field){slice_str(name), SLICE("v")});
}

static const char *const hop_by_hop[] = {
    "Connection",
    "keep-alive",
    "Proxy-Connection",
    "TE",
    "trailer",
    "TRANSFER-ENCODING",
    "Upgrade",
    "HTTP2-Settings",
    "Proxy-Authenticate",
    "proxy-authorization",
    "Proxy-Authentication-Info",
};

static const char *const end_to_end[] = {
    "Host",
    "Content-Length",
    "Authorization",
    "Expect",
    "X-Amzn-Trace-Id",
    "User-Agent",
    "Via",
    "X-Amz-Security-Token",
    "amz-sdk-request",
    "Set-Cookie",
    "X-Keep",
    "Max-Forwards",
    "Proxy-Status",
    "Trailers",
    "Forwarded",
};

START_TEST(fixed_names)
{
    struct hopbyhop h;
    add("Connection", "keep-alive, Upgrade, close");
    hopbyhop_init(&h, &list, SLICE_NONE);
    ck_assert(!h.lists_names);
    for (size_t i = 0; i < ARRAY_LEN(hop_by_hop); i++)
        ck_assert_msg(!keeps(&h, hop_by_hop[i]), "%s", hop_by_hop[i]);
    for (size_t i = 0; i < ARRAY_LEN(end_to_end); i++)
        ck_assert_msg(keeps(&h, end_to_end[i]), "%s", end_to_end[i]);
}
END_TEST

START_TEST(named_fields_go_unless_essential)
{
    struct hopbyhop h;
    add("connection", "close, X-Internal");
    add("Connection", "X-Two,, Host, X-Amz-Date");
    hopbyhop_init(&h, &list, SLICE("/"));
    ck_assert(!keeps(&h, "x-internal") && !keeps(&h, "X-Two"));
    ck_assert(keeps(&h, "X-Three") && keeps(&h, "Host") && keeps(&h, "x-amz-date"));
}
END_TEST

static void check_signed(const struct hopbyhop *h)
{
    ck_assert(keeps(h, "X-Signed") && keeps(h, "Cache-Control"));
    ck_assert(!keeps(h, "X-Unsigned") && !keeps(h, "X-Sign") && !keeps(h, "signed"));
    ck_assert(keeps(h, "TE") && !keeps(h, "Upgrade") && !keeps(h, "Trailer"));
    ck_assert(!keeps(h, "Proxy-Foo") && !keeps(h, "Transfer-Encoding"));
}

static const char named[] = "X-Signed, Cache-Control, X-Unsigned, X-Sign, signed, TE, Proxy-Foo";

/* C2, C6: whatever hop-by-hop fields a signature covers arrive. */
START_TEST(signed_fields_stay)
{
    struct hopbyhop h;
    add("Connection", named);
    add("Authorization",
        "AWS4-HMAC-SHA256 Credential=AK/20240101/us-east-1/s3/aws4_request, "
        "SignedHeaders=cache-control;connection;host;keep-alive;proxy-foo;te;transfer-encoding;"
        "upgrade;x-signed, Signature=00");
    hopbyhop_init(&h, &list, SLICE("/?X-Amz-SignedHeaders=x-unsigned"));
    check_signed(&h);
    ck_assert(keeps(&h, "Connection") && keeps(&h, "Keep-Alive"));
}
END_TEST

/* C12: a signature is no way to smuggle a switch of protocols past us. */
START_TEST(signed_offers_to_switch_do_not_stay)
{
    static const char *const offers[] = {"Upgrade", "X-Signed, upgrade",
                                         "keep-alive, HTTP2-Settings"};
    struct hopbyhop h;
    add("Connection", offers[_i]);
    add("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20240101/us-east-1/s3/aws4_request, "
                         "SignedHeaders=connection;http2-settings;upgrade;x-signed, Signature=00");
    hopbyhop_init(&h, &list, SLICE("/"));
    ck_assert(!keeps(&h, "Connection") && !keeps(&h, "Upgrade") && !keeps(&h, "HTTP2-Settings"));
    ck_assert(keeps(&h, "X-Signed"));
}
END_TEST

START_TEST(signed_fields_of_a_presigned_url_stay)
{
    struct hopbyhop h;
    add("Connection", named);
    hopbyhop_init(
        &h, &list,
        SLICE("/k?X-Amz-SignedHeaders=cache-control%3Bhost%3bx-signed;te&X-Amz-Expires=1"));
    check_signed(&h);
    ck_assert(!keeps(&h, "Connection") && !keeps(&h, "Keep-Alive"));
    hopbyhop_init(&h, &list, SLICE("/k?X-Amz-SignedHeaders=host%3"));
    ck_assert(!keeps(&h, "X-Signed"));
    hopbyhop_init(&h, &list, SLICE("/k?X-Amz-SignedHeaders="));
    ck_assert(!keeps(&h, "X-Signed"));
}
END_TEST

START_TEST(other_authorization_signs_nothing)
{
    struct hopbyhop h;
    add("Connection", "X-Signed");
    add("Authorization", "Bearer SignedHeaders=x-signed");
    hopbyhop_init(&h, &list, SLICE("/"));
    ck_assert(!keeps(&h, "X-Signed"));
    list.v[1].value = SLICE("AWS4-HMAC-SHA256");
    hopbyhop_init(&h, &list, SLICE("/"));
    ck_assert(!keeps(&h, "X-Signed"));
}
END_TEST

START_TEST(abused_connection_lists)
{
    static const struct {
        const char *value;
        bool abused;
    } rows[] = {
        {"close", false},
        {"", false},
        {"keep-alive, , X-Foo", false},
        {"TE, close", false},
        {"Upgrade", false},
        {"Proxy-Connection", false},
        {"Host", true},
        {"Content-Length", true},
        {"x, transfer-encoding", true},
        {"authorization", true},
        {"Cookie", true},
        {"Content-Type", true},
        {"Date", true},
        {"Expect", true},
        {"Via", true},
        {"X-Amz-Date", true},
        {"x-amzn-trace-id", true},
        {"AMZ-SDK-Request", true},
        {"(x)", true},
        {"a b", true},
        {"close;x", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        list.n = 0;
        add("X-Other", "Host");
        add("connection", "close");
        add("Connection", rows[i].value);
        ck_assert_msg(hopbyhop_abused(&list) == rows[i].abused, "%s", rows[i].value);
    }
}
END_TEST

START_TEST(members_of_connection_lists_are_bounded)
{
    char value[2 * HOPBYHOP_NAMES_MAX + 2];
    for (size_t i = 0; i < sizeof value - 1; i++)
        value[i] = i % 2 ? ',' : 'a';
    value[2 * HOPBYHOP_NAMES_MAX - 1] = '\0';
    add("Connection", value);
    ck_assert(!hopbyhop_abused(&list));
    add("Connection", "b");
    ck_assert(hopbyhop_abused(&list));
}
END_TEST

START_TEST(websocket_handshake)
{
    add("Upgrade", "WebSocket");
    ck_assert(!hopbyhop_websocket(&list));
    add("Connection", "keep-alive, upgrade");
    ck_assert(hopbyhop_websocket(&list));
    struct hopbyhop h;
    hopbyhop_init(&h, &list, SLICE("/"));
    ck_assert(!keeps(&h, "Upgrade"));
    h.keep_upgrade = true;
    ck_assert(keeps(&h, "Upgrade") && keeps(&h, "Connection") && !keeps(&h, "Keep-Alive"));
    list.v[0].value = SLICE("h2c, websocket");
    ck_assert(!hopbyhop_websocket(&list));
    list.v[0].value = SLICE("websocket");
    add("Upgrade", "h2c");
    ck_assert(!hopbyhop_websocket(&list));
}
END_TEST

START_TEST(trailer_names)
{
    static const char *const no[] = {"Content-MD5",   "host",    "Transfer-Encoding",
                                     "Authorization", "proxy-x", "Set-Cookie",
                                     "if-none-match", "TE"};
    static const char *const yes[] = {"X-Amz-Checksum-Sha256", "ETag", "Server-Timing",
                                      "grpc-status"};
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        ck_assert_msg(!hopbyhop_trailer_allowed(slice_str(no[i])), "%s", no[i]);
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        ck_assert_msg(hopbyhop_trailer_allowed(slice_str(yes[i])), "%s", yes[i]);
}
END_TEST

static TCase *hops(void)
{
    TCase *tc = tcase_create("hopbyhop");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, fixed_names);
    tcase_add_test(tc, named_fields_go_unless_essential);
    tcase_add_test(tc, signed_fields_stay);
    tcase_add_loop_test(tc, signed_offers_to_switch_do_not_stay, 0, 3);
    tcase_add_test(tc, signed_fields_of_a_presigned_url_stay);
    tcase_add_test(tc, other_authorization_signs_nothing);
    tcase_add_test(tc, abused_connection_lists);
    tcase_add_test(tc, members_of_connection_lists_are_bounded);
    tcase_add_test(tc, websocket_handshake);
    tcase_add_test(tc, trailer_names);
    return tc;
}

UNIT_MAIN("hopbyhop", hops)
