/* The memory of clients that refused our certificate: who is meant, how long, how many. */
#include "unit.h"

#include "core/base/units.h"
#include "proxy/refusals.h"

#include <stdio.h>

static struct refusals *r;

static void setup(void)
{
    r = refusals_new((struct hash_key){1, 2}, 10 * NS_PER_S);
}

static void teardown(void)
{
    refusals_free(r);
}

START_TEST(by_address_and_host)
{
    refusals_add(r, "192.0.2.1:5000", "a.example", NS_PER_S);
    ck_assert(refusals_has(r, "192.0.2.1:5001", "a.example", NS_PER_S));
    ck_assert(!refusals_has(r, "192.0.2.2:5000", "a.example", NS_PER_S));
    ck_assert(!refusals_has(r, "192.0.2.1:5000", "b.example", NS_PER_S));
    refusals_add(r, "[2001:db8::1]:5000", "a.example", NS_PER_S);
    ck_assert(refusals_has(r, "[2001:db8::1]:7", "a.example", NS_PER_S));
    ck_assert(!refusals_has(r, "[2001:db8::2]:7", "a.example", NS_PER_S));
    refusals_add(r, "uid=1000", "a.example", NS_PER_S);
    ck_assert(refusals_has(r, "uid=1000", "a.example", NS_PER_S));
    ck_assert(!refusals_has(r, "uid=100", "a.example", NS_PER_S));
}
END_TEST

START_TEST(for_a_while)
{
    refusals_add(r, "uid=1", "a.example", 0);
    ck_assert(refusals_has(r, "uid=1", "a.example", 10 * NS_PER_S - 1));
    ck_assert(!refusals_has(r, "uid=1", "a.example", 10 * NS_PER_S));
    refusals_add(r, "uid=1", "a.example", 11 * NS_PER_S);
    ck_assert(refusals_has(r, "uid=1", "a.example", 20 * NS_PER_S));
}
END_TEST

/* J14: bounded; the one refused longest ago goes first. */
START_TEST(bounded)
{
    char host[32];
    for (int i = 0; i < REFUSALS_MAX; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        refusals_add(r, "uid=1", host, i);
    }
    refusals_add(r, "uid=1", "h0.example", REFUSALS_MAX); /* anew: no more the oldest */
    refusals_add(r, "uid=1", "one-more.example", REFUSALS_MAX);
    ck_assert(refusals_has(r, "uid=1", "h0.example", REFUSALS_MAX));
    ck_assert(!refusals_has(r, "uid=1", "h1.example", REFUSALS_MAX));
    ck_assert(refusals_has(r, "uid=1", "h2.example", REFUSALS_MAX));
    for (int i = 0; i < 100000; i++) {
        snprintf(host, sizeof host, "x%d.example", i);
        refusals_add(r, "uid=1", host, REFUSALS_MAX);
    }
    ck_assert(!refusals_has(r, "uid=1", "h2.example", REFUSALS_MAX));
    ck_assert(refusals_has(r, "uid=1", "x99999.example", REFUSALS_MAX));
    ck_assert(!refusals_has(r, "uid=1", "x98975.example", REFUSALS_MAX));
    ck_assert(refusals_has(r, "uid=1", "x98976.example", REFUSALS_MAX));
}
END_TEST

static TCase *remembering(void)
{
    TCase *tc = tcase_create("refusals");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, by_address_and_host);
    tcase_add_test(tc, for_a_while);
    tcase_add_test(tc, bounded);
    return tc;
}

UNIT_MAIN("refusals", remembering)
