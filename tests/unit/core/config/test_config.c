/* Matching hosts and addresses. */
#include "unit.h"

#include "core/config/config.h"

START_TEST(suffix_is_cut_at_labels)
{
    char suffix[] = "example.com";
    struct host_pattern p = {suffix, true};
    ck_assert(host_pattern_match(&p, SLICE("a.example.com")));
    ck_assert(host_pattern_match(&p, SLICE("a.b.EXAMPLE.com")));
    ck_assert(!host_pattern_match(&p, SLICE("example.com")));
    ck_assert(!host_pattern_match(&p, SLICE(".example.com")));
    ck_assert(!host_pattern_match(&p, SLICE("evilexample.com")));
    ck_assert(!host_pattern_match(&p, SLICE("a.example.com.evil")));
    ck_assert(!host_pattern_match(&p, SLICE("")));
}
END_TEST

START_TEST(name_is_whole)
{
    char name[] = "example.com";
    struct host_pattern p = {name, false};
    ck_assert(host_pattern_match(&p, SLICE("example.com")));
    ck_assert(host_pattern_match(&p, SLICE("Example.COM")));
    ck_assert(!host_pattern_match(&p, SLICE("a.example.com")));
    ck_assert(!host_pattern_match(&p, SLICE("example.co")));
}
END_TEST

START_TEST(range_holds_its_prefix)
{
    struct cidr ten = {{[10] = 0xff, [11] = 0xff, [12] = 10}, 96 + 8};
    unsigned char a[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 255, [15] = 1};
    ck_assert(cidr_contains(&ten, a));
    a[12] = 11;
    ck_assert(!cidr_contains(&ten, a));
    ten.prefix = 96 + 7; /* 10.0.0.0/7 holds 11.x too */
    ck_assert(cidr_contains(&ten, a));
    a[12] = 12;
    ck_assert(!cidr_contains(&ten, a));
    ten.prefix = 0;
    ck_assert(cidr_contains(&ten, a));
    struct cidr one = {{[15] = 1}, 128};
    unsigned char loopback[16] = {[15] = 1};
    ck_assert(cidr_contains(&one, loopback));
    loopback[15] = 0;
    ck_assert(!cidr_contains(&one, loopback));
}
END_TEST

static TCase *tcase_match(void)
{
    TCase *t = tcase_create("match");
    tcase_add_test(t, suffix_is_cut_at_labels);
    tcase_add_test(t, name_is_whole);
    tcase_add_test(t, range_holds_its_prefix);
    return t;
}

UNIT_MAIN("config", tcase_match)
