/* Authorities and targets: one reading or none (security requirements C5, I4). */
#include "unit.h"

#include "core/http/uri.h"

#include <stdio.h>

static const struct {
    const char *text;
    enum authority_kind kind;
    const char *host;
    unsigned port;
    const char *canonical;
} good[] = {
    {"origin.test", AUTHORITY_NAME, "origin.test", 80, "origin.test:80"},
    {"ORIGIN.Test.:8080", AUTHORITY_NAME, "origin.test", 8080, "origin.test:8080"},
    {"my_bucket.s3.amazonaws.com:443", AUTHORITY_NAME, "my_bucket.s3.amazonaws.com", 443,
     "my_bucket.s3.amazonaws.com:443"},
    {"localhost:65535", AUTHORITY_NAME, "localhost", 65535, "localhost:65535"},
    {"1.2.3.4.example", AUTHORITY_NAME, "1.2.3.4.example", 80, "1.2.3.4.example:80"},
    {"x0x7f", AUTHORITY_NAME, "x0x7f", 80, "x0x7f:80"},
    {"127.0.0.1", AUTHORITY_IPV4, "127.0.0.1", 80, "127.0.0.1:80"},
    {"255.255.255.255:1", AUTHORITY_IPV4, "255.255.255.255", 1, "255.255.255.255:1"},
    {"0.0.0.0", AUTHORITY_IPV4, "0.0.0.0", 80, "0.0.0.0:80"},
    {"[::1]", AUTHORITY_IPV6, "::1", 80, "[::1]:80"},
    {"[FD00:EC2:0:0:0:0:0:254]:8080", AUTHORITY_IPV6, "fd00:ec2::254", 8080,
     "[fd00:ec2::254]:8080"},
    {"[::ffff:a9fe:a9fe]", AUTHORITY_IPV6, "::ffff:169.254.169.254", 80,
     "[::ffff:169.254.169.254]:80"},
};

START_TEST(authorities_with_one_reading)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct authority a;
        const char *why = "";
        ck_assert_msg(authority_parse(slice_str(good[i].text), 80, &a, &why), "%s: %s",
                      good[i].text, why);
        ck_assert_int_eq(a.kind, good[i].kind);
        ck_assert_str_eq(a.host, good[i].host);
        ck_assert_uint_eq(a.port, good[i].port);
        char text[AUTHORITY_TEXT_MAX];
        authority_text(&a, text);
        ck_assert_str_eq(text, good[i].canonical);
        struct authority again;
        ck_assert(authority_parse(slice_str(text), 0, &again, &why));
        ck_assert(authority_eq(&a, &again));
    }
}
END_TEST

static const char *const bad[] = {
    "",
    ":80",
    ".",
    "..",
    "a..b",
    ".a",
    "a:",
    "a:0",
    "a:65536",
    "a:+80",
    "a:-1",
    "a: 80",
    "a:80a",
    "a:8%30",
    "a:4294967376",
    "a:080000",
    "a:80:80",
    "u@a",
    "u:p@a",
    "a@b@c",
    "a b",
    "a/b",
    "a,b",
    "a\\b",
    "%61.test",
    "caf\xc3\xa9.test",
    "a\x02",
    "::1",
    "::1:80",
    "[::1",
    "[::1]x",
    "[::1]:",
    "[]",
    "[::1%25lo]",
    "[fe80::1%lo]",
    "[v1.x]",
    "[1.2.3.4]",
    "[::1.2.3]",
    "[::01.2.3.4]",
    "[1:2:3:4:5:6:7:8:9]",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "0177.1",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "127.0.0.01",
    "127.0.0.1.",
    "foo.123",
    "foo.0x1f",
    "1.2.3.0x4",
    "0xa9fea9fe",
    "169.254.43518",
};

START_TEST(authorities_that_could_be_read_in_two_ways_are_refused)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct authority a;
        const char *why = NULL;
        ck_assert_msg(!authority_parse(slice_str(bad[i]), 80, &a, &why), "\"%s\"", bad[i]);
        ck_assert_ptr_nonnull(why);
    }
    struct authority a;
    const char *why;
    ck_assert(!authority_parse(SLICE("a\0b"), 80, &a, &why));
    ck_assert(!authority_parse(SLICE("[::1\0]"), 80, &a, &why));
    ck_assert(!authority_parse(SLICE("a"), 0, &a, &why));
    ck_assert(!authority_parse(SLICE("[::1]"), 0, &a, &why));
    ck_assert(authority_parse(SLICE("a:1"), 0, &a, &why));
}
END_TEST

/* count labels of the letter x, label bytes each, and a tail. */
static struct slice name_of(char *buf, size_t count, size_t label, const char *tail)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        memset(buf + n, 'x', label);
        n += label;
        buf[n++] = '.';
    }
    memcpy(buf + n, tail, strlen(tail));
    return slice_of(buf, n + strlen(tail));
}

START_TEST(name_lengths_are_exact)
{
    char buf[600];
    struct authority a;
    const char *why;
    ck_assert(authority_parse(name_of(buf, 1, 63, "x"), 80, &a, &why));
    ck_assert(!authority_parse(name_of(buf, 1, 64, "x"), 80, &a, &why));
    struct slice longest = name_of(buf, 126, 1, "x");
    ck_assert_uint_eq(longest.n, HTTP_HOST_MAX);
    ck_assert(authority_parse(longest, 80, &a, &why));
    ck_assert_uint_eq(strlen(a.host), HTTP_HOST_MAX);
    ck_assert(authority_parse(name_of(buf, 126, 1, "x."), 80, &a, &why));
    ck_assert(!authority_parse(name_of(buf, 126, 1, "xx"), 80, &a, &why));
}
END_TEST

START_TEST(equality_is_host_and_port)
{
    struct authority a, b, c;
    const char *why;
    ck_assert(authority_parse(SLICE("A.test."), 443, &a, &why));
    ck_assert(authority_parse(SLICE("a.test:443"), 80, &b, &why));
    ck_assert(authority_parse(SLICE("a.test"), 80, &c, &why));
    ck_assert(authority_eq(&a, &b));
    ck_assert(!authority_eq(&a, &c));
    ck_assert(authority_parse(SLICE("b.test"), 443, &c, &why));
    ck_assert(!authority_eq(&a, &c));
}
END_TEST

static const struct {
    const char *text;
    enum target_form form;
    const char *path_query, *path, *query;
    bool https, no_path;
    unsigned port;
} targets[] = {
    {"/a?b=c", TARGET_ORIGIN, "/a?b=c", "/a", "b=c", false, false, 0},
    {"//h/x", TARGET_ORIGIN, "//h/x", "//h/x", "", false, false, 0},
    {"*", TARGET_ASTERISK, "*", "*", "", false, false, 0},
    {"http://h/", TARGET_ABSOLUTE, "/", "/", "", false, false, 80},
    {"HTTPS://h:8443/a/../b//c/%2e%2e?x=%20&&y", TARGET_ABSOLUTE, "/a/../b//c/%2e%2e?x=%20&&y",
     "/a/../b//c/%2e%2e", "x=%20&&y", true, false, 8443},
    {"https://h", TARGET_ABSOLUTE, "/", "/", "", true, true, 443},
    {"http://h?a=b", TARGET_ABSOLUTE, "?a=b", "/", "a=b", false, false, 80},
    {"http://h/a?b?c", TARGET_ABSOLUTE, "/a?b?c", "/a", "b?c", false, false, 80},
};

START_TEST(forms_of_a_target)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct target t;
        const char *why = "";
        enum target_form form = target_parse(slice_str(targets[i].text), false, &t, &why);
        ck_assert_msg(form == targets[i].form, "%s: %s", targets[i].text, why);
        ck_assert_int_eq(t.form, form);
        ck_assert(slice_eq(t.path_query, slice_str(targets[i].path_query)));
        ck_assert(slice_eq(target_path(t.path_query), slice_str(targets[i].path)));
        ck_assert(slice_eq(target_query(t.path_query), slice_str(targets[i].query)));
        ck_assert_int_eq(t.https, targets[i].https);
        ck_assert_int_eq(t.no_path, targets[i].no_path);
        ck_assert_uint_eq(t.authority.port, targets[i].port);
    }
}
END_TEST

START_TEST(targets_that_are_refused)
{
    static const char *const texts[] = {
        "",
        "obj/1",
        "h:80",
        "ftp://h/",
        "file:///etc/passwd",
        "http:/h/x",
        "http:",
        "http://",
        "http:///x",
        "http://:80/",
        "http://u@h/",
        "http://u:p@h/",
        "httpx://h/",
        "unix:/run/x.sock:/obj",
        "javascript:1",
        "http://h:0/",
        "http://[::1/x",
        "http://2130706433/",
        "http://%6fr/",
        "https//h/",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct target t;
        const char *why = NULL;
        ck_assert_msg(target_parse(slice_str(texts[i]), false, &t, &why) == TARGET_BAD, "%s",
                      texts[i]);
        ck_assert_int_eq(t.form, TARGET_BAD);
        ck_assert_ptr_nonnull(why);
    }
}
END_TEST

START_TEST(connect_takes_authority_form_with_a_port_only)
{
    struct target t;
    const char *why;
    ck_assert_int_eq(target_parse(SLICE("S3.test:443"), true, &t, &why), TARGET_AUTHORITY);
    ck_assert_str_eq(t.authority.host, "s3.test");
    ck_assert_uint_eq(t.authority.port, 443);
    ck_assert_uint_eq(t.path_query.n, 0);
    static const char *const texts[] = {"s3.test", "s3.test:443/x", "http://s3.test:443", "*",
                                        "/",       "u:p@s3.test:1", "s3.test:0"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_int_eq(target_parse(slice_str(texts[i]), true, &t, &why), TARGET_BAD);
}
END_TEST

START_TEST(query_parameters_are_raw_and_exact)
{
    struct slice q = SLICE("a=1&X-Amz-Date=2&b&X-Amz-Date=3&c=&x=%41=z");
    ck_assert(slice_eq(query_param(q, SLICE("X-Amz-Date")), SLICE("2")));
    ck_assert(slice_eq(query_param(q, SLICE("x")), SLICE("%41=z")));
    ck_assert(query_param(q, SLICE("b")).p != NULL && query_param(q, SLICE("b")).n == 0);
    ck_assert(query_param(q, SLICE("c")).p != NULL && query_param(q, SLICE("c")).n == 0);
    ck_assert_ptr_null(query_param(q, SLICE("x-amz-date")).p);
    ck_assert_ptr_null(query_param(q, SLICE("A")).p);
    ck_assert_ptr_null(query_param(SLICE_NONE, SLICE("a")).p);
}
END_TEST

static TCase *uris(void)
{
    TCase *tc = tcase_create("uri");
    tcase_add_test(tc, authorities_with_one_reading);
    tcase_add_test(tc, authorities_that_could_be_read_in_two_ways_are_refused);
    tcase_add_test(tc, name_lengths_are_exact);
    tcase_add_test(tc, equality_is_host_and_port);
    tcase_add_test(tc, forms_of_a_target);
    tcase_add_test(tc, targets_that_are_refused);
    tcase_add_test(tc, connect_takes_authority_form_with_a_port_only);
    tcase_add_test(tc, query_parameters_are_raw_and_exact);
    return tc;
}

UNIT_MAIN("uri", uris)
