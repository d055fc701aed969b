/* How single values are written: good and bad of every type. */
#include "unit.h"

#include "core/base/units.h"
#include "core/config/value.h"

START_TEST(durations)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0s", 0},
        {"1ms", NS_PER_MS},
        {"250ms", 250 * NS_PER_MS},
        {"5s", 5 * NS_PER_S},
        {"10m", 600 * NS_PER_S},
        {"1h", 3600 * NS_PER_S},
        {"007s", 7 * NS_PER_S},
        {"2562047h", INT64_C(2562047) * 3600 * NS_PER_S}, /* the most hours that fit */
    };
    static const char *const bad[] = {
        "",
        "5",
        "s",
        "ms",
        "-5s",
        "+5s",
        "5 s",
        " 5s",
        "5s ",
        "1.5s",
        "5S",
        "5sec",
        "1h30m",
        "1d",
        "0x5s",
        "2562048h",
        "99999999999999999999s",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t ns = -1;
        ck_assert_msg(value_duration(slice_str(good[i].text), &ns), "%s", good[i].text);
        ck_assert_int_eq(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ns = -1;
        ck_assert_msg(!value_duration(slice_str(bad[i]), &ns), "%s", bad[i]);
        ck_assert_int_eq(ns, -1);
    }
    int64_t ns;
    ck_assert(!value_duration(SLICE("5\0s"), &ns) && !value_duration(SLICE("5s\0"), &ns));
}
END_TEST

START_TEST(sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},      {"1", 1},          {"65536", 65536},     {"64KiB", 64 * KIB},
        {"1MiB", MIB}, {"3GiB", 3 * GIB}, {"1TiB", 1024 * GIB}, {"9223372036854775807", INT64_MAX},
    };
    static const char *const bad[] = {
        "",           "KiB", "64KB", "64kib", "64K", "1.5MiB", "-1", "1 MiB", "9223372036854775808",
        "9999999TiB",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 42;
        ck_assert_msg(value_size(slice_str(good[i].text), &bytes), "%s", good[i].text);
        ck_assert_uint_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 42;
        ck_assert_msg(!value_size(slice_str(bad[i]), &bytes), "%s", bad[i]);
        ck_assert_uint_eq(bytes, 42);
    }
}
END_TEST

START_TEST(words)
{
    bool b = false;
    int choice = -1;
    ck_assert(value_bool(SLICE("true"), &b) && b);
    ck_assert(value_bool(SLICE("false"), &b) && !b);
    ck_assert(!value_bool(SLICE("True"), &b) && !value_bool(SLICE("yes"), &b));
    ck_assert(!value_bool(SLICE("1"), &b) && !value_bool(SLICE(""), &b));
    ck_assert(value_choice(SLICE("off"), SLICE("off|standard"), &choice) && choice == 0);
    ck_assert(value_choice(SLICE("standard"), SLICE("off|standard"), &choice) && choice == 1);
    ck_assert(!value_choice(SLICE("of"), SLICE("off|standard"), &choice));
    ck_assert(!value_choice(SLICE("off|standard"), SLICE("off|standard"), &choice));
}
END_TEST

START_TEST(ports)
{
    uint16_t port = 0;
    ck_assert(value_port(SLICE("1"), &port) && port == 1);
    ck_assert(value_port(SLICE("65535"), &port) && port == 65535);
    static const char *const bad[] = {"", "0", "65536", "99999", "100000", "-1", "http", "80 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!value_port(slice_str(bad[i]), &port), "%s", bad[i]);
}
END_TEST

START_TEST(paths_and_services)
{
    char longest[4097];
    memset(longest, '/', sizeof longest);
    ck_assert(value_path(SLICE("/")) && value_path(SLICE("/a b/\xc3\xa9")));
    ck_assert(value_path(slice_of(longest, 4095)) && !value_path(slice_of(longest, 4096)));
    ck_assert(!value_path(SLICE("")) && !value_path(SLICE("a/b")) && !value_path(SLICE("~/x")));
    ck_assert(!value_path(SLICE("/a\nb")) && !value_path(SLICE("/a\0b")) &&
              !value_path(SLICE("/\x7f")));
    ck_assert(value_service(SLICE("s3")) && value_service(SLICE("dynamodb-streams")));
    ck_assert(!value_service(SLICE("")) && !value_service(SLICE("S3")) &&
              !value_service(SLICE("a.b")));
    memset(longest, 'a', 64);
    ck_assert(value_service(slice_of(longest, 63)) && !value_service(slice_of(longest, 64)));
}
END_TEST

START_TEST(listen_addresses)
{
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {
        {"127.0.0.1:8199", "127.0.0.1", 8199},
        {"127.8.9.10:1", "127.8.9.10", 1},
        {"127.0.0.1:0", "127.0.0.1", 0},
        {"[::1]:65535", "::1", 65535},
        {"[::1]:0", "::1", 0},
    };
    static const char *const bad[] = {
        "",
        "127.0.0.1",
        "8199",
        "127.0.0.1:",
        ":8199",
        "127.0.0.1:65536",
        "0.0.0.0:80",
        "10.0.0.1:80",
        "[::]:80",
        "[::2]:80",
        "localhost:8199",
        "[::ffff:7f00:1]:80",
        "128.0.0.1:1",
        "127.1:80",
        "127.0.0.1:00",
        "::1:80",
        "[::1]",
        "[fe80::1]:0",
        "127.0.0.1:x",
        "127.0.0.1:5:0",
        "127.0.0.1:5:6",
        "[::1]:1:2",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct authority a;
        const char *why = NULL;
        ck_assert_msg(value_listen(slice_str(good[i].text), &a, &why), "%s: %s", good[i].text, why);
        ck_assert_str_eq(a.host, good[i].host);
        ck_assert_uint_eq(a.port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct authority a;
        const char *why = NULL;
        ck_assert_msg(!value_listen(slice_str(bad[i]), &a, &why), "%s", bad[i]);
        ck_assert_ptr_nonnull(why);
    }
}
END_TEST

START_TEST(ranges)
{
    static const struct {
        const char *text;
        unsigned prefix;
        unsigned char first, at12;
    } good[] = {
        {"10.0.0.0/8", 104, 0, 10}, {"1.2.3.4", 128, 0, 1},
        {"0.0.0.0/0", 96, 0, 0},    {"192.168.1.0/24", 120, 0, 192},
        {"fd00::/8", 8, 0xfd, 0},   {"[fd00::]/8", 8, 0xfd, 0},
        {"::1", 128, 0, 0},         {"2001:db8::/32", 32, 0x20, 0},
        {"::/0", 0, 0, 0},
    };
    static const char *const bad[] = {
        "",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "fd00::/129",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10.0.0/8",
        "fd00::1/8",
        "a.example",
        "/8",
        "1.2.3.4:80",
        "[::1]:80",
        "10.0.0.0/8/8",
        "fe80::1%eth0",
        "[::1]:1",
        "1.2.3.4:1",
        "::1:1]",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct cidr c;
        const char *why = NULL;
        ck_assert_msg(value_cidr(slice_str(good[i].text), &c, &why), "%s: %s", good[i].text, why);
        ck_assert_uint_eq(c.prefix, good[i].prefix);
        ck_assert_uint_eq(c.addr[0], good[i].first);
        ck_assert_uint_eq(c.addr[12], good[i].at12);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cidr c;
        const char *why = NULL;
        ck_assert_msg(!value_cidr(slice_str(bad[i]), &c, &why), "%s", bad[i]);
        ck_assert_ptr_nonnull(why);
    }
}
END_TEST

START_TEST(hosts)
{
    static const struct {
        const char *text, *host;
        bool suffix;
        unsigned port;
    } good[] = {
        {"a.example", "a.example", false, 0},
        {"A.Example.", "a.example", false, 0},
        {"*.Example", "example", true, 0},
        {".example", "example", true, 0},
        {"a.example:443", "a.example", false, 443},
        {"*.b.c:1", "b.c", true, 1},
        {"localhost", "localhost", false, 0},
        {"10.0.0.1:80", "10.0.0.1", false, 80},
        {"[::1]", "::1", false, 0},
        {"[::1]:80", "::1", false, 80},
    };
    static const char *const bad[] = {
        "",    "*",          "*.",          ".",           "a.*.b", "**.a",      "a..b",
        "a b", "*.10.0.0.1", "a.example:0", "a.example:x", "a:1:2", "[::1]:1:2", "a/b",
    };
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct host_pattern p;
        uint16_t port = 7;
        const char *why = NULL;
        ck_assert_msg(value_host(slice_str(good[i].text), &arena, &p, &port, &why), "%s: %s",
                      good[i].text, why);
        ck_assert_str_eq(p.text, good[i].host);
        ck_assert_int_eq(p.suffix, good[i].suffix);
        ck_assert_uint_eq(port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct host_pattern p;
        uint16_t port;
        const char *why = NULL;
        ck_assert_msg(!value_host(slice_str(bad[i]), &arena, &p, &port, &why), "%s", bad[i]);
        ck_assert_ptr_nonnull(why);
    }
    struct host_pattern p;
    const char *why = NULL;
    ck_assert(!value_host(SLICE("a.example:443"), &arena, &p, NULL, &why));
    ck_assert_str_eq(why, "a port does not belong here");
    arena_fini(&arena);
}
END_TEST

START_TEST(modes)
{
    static const struct {
        const char *text;
        enum retry_mode mode;
    } good[] = {
        {"off", RETRY_MODE_OFF}, {"standard", RETRY_MODE_STANDARD}, {"legacy", RETRY_MODE_LEGACY}};
    static const char *const bad[] = {"", "Off", "adaptive ", "off|standard", "legac"};
    enum retry_mode mode = RETRY_MODE_ADAPTIVE;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!value_mode(slice_str(bad[i]), &mode), "%s", bad[i]);
    ck_assert_int_eq(mode, RETRY_MODE_ADAPTIVE);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert(value_mode(slice_str(good[i].text), &mode));
        ck_assert_int_eq(mode, good[i].mode);
    }
}
END_TEST

START_TEST(words_and_keys)
{
    static const char *const names[] = {"a", "GetItem", "us-east-1", "a_b.c", "0"};
    static const char *const no_names[] = {"", " a", "a b", "a,b", "*a", "a/b", "a\n", "\xc3\xa4"};
    static const char *const keys[] = {"AKIA", "*AKIA", "AKIAIOSFODNN7EXAMPLE", "*7890"};
    static const char *const no_keys[] = {"", "*", "ABC", "*ABC", "**ABCD", "ABCD*", "A-BCD"};
    char longest[130];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(value_word(slice_str(names[i])), "%s", names[i]);
    for (size_t i = 0; i < sizeof no_names / sizeof no_names[0]; i++)
        ck_assert_msg(!value_word(slice_str(no_names[i])), "%s", no_names[i]);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(value_key(slice_str(keys[i])), "%s", keys[i]);
    for (size_t i = 0; i < sizeof no_keys / sizeof no_keys[0]; i++)
        ck_assert_msg(!value_key(slice_str(no_keys[i])), "%s", no_keys[i]);
    memset(longest, 'x', sizeof longest);
    ck_assert(value_word(slice_of(longest, 128)) && !value_word(slice_of(longest, 129)));
    ck_assert(value_key(slice_of(longest, 128)) && !value_key(slice_of(longest, 129)));
}
END_TEST

START_TEST(statuses)
{
    static const char *const bad[] = {"", "299", "600", "1000", "5xx", "-1", " 500", "0x1f"};
    uint16_t status = 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!value_status(slice_str(bad[i]), &status), "%s", bad[i]);
    ck_assert_uint_eq(status, 1);
    ck_assert(value_status(SLICE("300"), &status) && status == 300);
    ck_assert(value_status(SLICE("599"), &status) && status == 599);
}
END_TEST

static TCase *tcase_values(void)
{
    TCase *t = tcase_create("values");
    tcase_add_test(t, durations);
    tcase_add_test(t, sizes);
    tcase_add_test(t, words);
    tcase_add_test(t, ports);
    tcase_add_test(t, paths_and_services);
    tcase_add_test(t, listen_addresses);
    tcase_add_test(t, ranges);
    tcase_add_test(t, hosts);
    tcase_add_test(t, modes);
    tcase_add_test(t, words_and_keys);
    tcase_add_test(t, statuses);
    return t;
}

UNIT_MAIN("value", tcase_values)
