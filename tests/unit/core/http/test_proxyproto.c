/* PROXY protocol headers: both versions, their bounds, and the same verdict however they are cut.
 */
#include "core/http/proxyproto.h"
#include "unit.h"

#include <stdio.h>

#define SIG "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(lit) (lit), sizeof(lit) - 1

static const struct {
    const char *bytes;
    size_t n;
    enum proxyproto_result result;
    const char *who; /* "" : not named */
    size_t consumed;
} cases[] = {
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\nGET"), PROXYPROTO_OK, "192.0.2.7:56324",
     45},
    {BYTES("PROXY TCP6 2001:db8::7 ::1 1 65535\r\n"), PROXYPROTO_OK,
     "20010db8000000000000000000000007:1", 36},
    {BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), PROXYPROTO_OK,
     "255.255.255.255:65535", 56},
    {BYTES("PROXY UNKNOWN\r\nx"), PROXYPROTO_OK, "", 15},
    {BYTES("PROXY UNKNOWN ffff::1 whatever 1 2 3\r\n"), PROXYPROTO_OK, "", 38},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 0 0\r\n"), PROXYPROTO_OK, "192.0.2.7:0", 39},
    /* not as they must be */
    {BYTES("GET / HTTP/1.1\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("proxy TCP4 192.0.2.7 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY  TCP4 192.0.2.7 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 1 2 \r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 1\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 01 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 -1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.07 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 2001:db8::7 ::1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP6 192.0.2.7 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY UNKNOWN \t\r\n"), PROXYPROTO_BAD, "", 0},
    {BYTES("PROXY \r\n"), PROXYPROTO_BAD, "", 0},
    /* version 2 */
    {BYTES(SIG "\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbbGET"), PROXYPROTO_OK,
     "192.0.2.7:56324", 28},
    {BYTES(SIG "\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01\x01\xbb"),
     PROXYPROTO_OK, "20010db8000000000000000000000007:1", 52},
    {BYTES(SIG "\x21\x11\0\x10\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb\x04\0\x01x"),
     PROXYPROTO_OK, "192.0.2.7:56324", 32},
    {BYTES(SIG "\x20\0\0\0"), PROXYPROTO_OK, "", 16},
    {BYTES(SIG "\x20\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb"), PROXYPROTO_OK, "",
     28},
    {BYTES(SIG "\x21\0\0\0"), PROXYPROTO_OK, "", 16},
    {BYTES(SIG "\x21\x12\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb"), PROXYPROTO_BAD, "",
     0},
    {BYTES(SIG "\x21\x11\0\x0b\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01"), PROXYPROTO_BAD, "", 0},
    {BYTES(SIG "\x21\x41\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb"), PROXYPROTO_BAD, "",
     0},
    {BYTES(SIG "\x11\x11\0\x0c"), PROXYPROTO_BAD, "", 0},
    {BYTES(SIG "\x22\x11\0\x0c"), PROXYPROTO_BAD, "", 0},
    {BYTES(SIG "\x20\0\x02\x09"), PROXYPROTO_BAD, "", 0}, /* 537 in all */
    {BYTES(SIG "\x21\x11\xff\xff"), PROXYPROTO_BAD, "", 0},
    {BYTES("\r\n\r\nGET"), PROXYPROTO_BAD, "", 0},
};

static enum proxyproto_result read_copy(const char *bytes, size_t n, struct proxyproto *out)
{
    char *copy = malloc(n ? n : 1); /* so that a read behind it is noticed */
    memcpy(copy, bytes, n);
    enum proxyproto_result r = proxyproto_read(slice_of(copy, n), out);
    free(copy);
    return r;
}

static void check(const struct proxyproto *p, int i)
{
    char who[64] = "";
    if (p->named && !p->ipv6) {
        snprintf(who, sizeof who, "%u.%u.%u.%u:%u", p->address[0], p->address[1], p->address[2],
                 p->address[3], p->port);
    } else if (p->named) {
        for (int k = 0; k < 16; k++)
            snprintf(who + 2 * k, 3, "%02x", p->address[k]);
        snprintf(who + 32, 8, ":%u", p->port);
    }
    ck_assert_str_eq(who, cases[i].who);
    ck_assert_uint_eq(p->consumed, cases[i].consumed);
}

START_TEST(reads_it)
{
    struct proxyproto p;
    enum proxyproto_result r = read_copy(cases[_i].bytes, cases[_i].n, &p);
    ck_assert_int_eq(r, cases[_i].result);
    check(&p, _i);
    ck_assert((p.problem != NULL) == (r == PROXYPROTO_BAD));
}
END_TEST

START_TEST(cuts_change_nothing)
{
    struct proxyproto p;
    enum proxyproto_result r = PROXYPROTO_MORE;
    size_t n = 0;
    for (; r == PROXYPROTO_MORE && n <= cases[_i].n; n++)
        r = read_copy(cases[_i].bytes, n, &p);
    ck_assert_int_eq(r, cases[_i].result);
    check(&p, _i);
    if (r == PROXYPROTO_OK)
        ck_assert_uint_eq(n - 1, p.consumed); /* not a byte later than it could be */
}
END_TEST

START_TEST(is_bounded)
{
    char line[200] = "PROXY UNKNOWN ";
    struct proxyproto p;
    memset(line + 14, 'x', sizeof line - 14);
    ck_assert_int_eq(read_copy(line, PROXYPROTO_V1_MAX - 2, &p), PROXYPROTO_MORE);
    ck_assert_int_eq(read_copy(line, PROXYPROTO_V1_MAX - 1, &p), PROXYPROTO_BAD);
    line[PROXYPROTO_V1_MAX - 2] = '\r';
    line[PROXYPROTO_V1_MAX - 1] = '\n';
    ck_assert_int_eq(read_copy(line, PROXYPROTO_V1_MAX, &p), PROXYPROTO_OK);
    ck_assert_uint_eq(p.consumed, PROXYPROTO_V1_MAX);

    char v2[PROXYPROTO_V2_MAX] = SIG "\x20\0\x02\x08";
    ck_assert_int_eq(read_copy(v2, sizeof v2 - 1, &p), PROXYPROTO_MORE);
    ck_assert_int_eq(read_copy(v2, sizeof v2, &p), PROXYPROTO_OK);
    ck_assert_uint_eq(p.consumed, PROXYPROTO_V2_MAX);
    ck_assert_int_eq(proxyproto_read(SLICE_NONE, &p), PROXYPROTO_MORE);
}
END_TEST

static TCase *tcase(void)
{
    TCase *tc = tcase_create("proxyproto");
    const int n = (int)(sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(tc, reads_it, 0, n);
    tcase_add_loop_test(tc, cuts_change_nothing, 0, n);
    tcase_add_test(tc, is_bounded);
    return tc;
}

UNIT_MAIN("proxyproto", tcase)
