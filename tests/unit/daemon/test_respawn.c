/* When the place of a dead worker is filled again. */
#include "daemon/respawn.h"
#include "unit.h"

static int64_t die(struct respawn *r, int64_t started_ns, int64_t lived_ns)
{
    respawn_started(r, started_ns);
    respawn_died(r, started_ns + lived_ns);
    return respawn_at(r, false) - r->died_ns;
}

START_TEST(first_start_is_at_once)
{
    struct respawn r = {0};
    ck_assert_int_eq(respawn_at(&r, false), 0);
}
END_TEST

START_TEST(waits_double_up_to_a_limit)
{
    const int64_t expected_ms[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct respawn r = {0};
    int64_t now_ns = NS_PER_S;
    for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
        ck_assert_int_eq(die(&r, now_ns, 50 * NS_PER_MS), expected_ms[i] * NS_PER_MS);
        now_ns = respawn_at(&r, false);
    }
}
END_TEST

START_TEST(a_long_life_forgives)
{
    struct respawn r = {0};
    die(&r, 0, 1);
    die(&r, 0, 1);
    ck_assert_int_eq(die(&r, 0, RESPAWN_STABLE_NS - 1), 400 * NS_PER_MS);
    ck_assert_int_eq(die(&r, 0, RESPAWN_STABLE_NS), 100 * NS_PER_MS);
    ck_assert_int_eq(die(&r, 0, 1), 200 * NS_PER_MS);
}
END_TEST

START_TEST(scarcity_shortens)
{
    struct respawn r = {0};
    ck_assert_int_eq(respawn_at(&r, true), 0);
    for (int i = 0; i < 5; i++)
        die(&r, NS_PER_S, 0);
    ck_assert_int_eq(respawn_at(&r, true), NS_PER_S + 100 * NS_PER_MS);
    ck_assert_int_eq(respawn_at(&r, false), NS_PER_S + 1600 * NS_PER_MS);
}
END_TEST

static TCase *tcase_respawn(void)
{
    TCase *tc = tcase_create("respawn");
    tcase_add_test(tc, first_start_is_at_once);
    tcase_add_test(tc, waits_double_up_to_a_limit);
    tcase_add_test(tc, a_long_life_forgives);
    tcase_add_test(tc, scarcity_shortens);
    return tc;
}

UNIT_MAIN("respawn", tcase_respawn)
