/* J4, J5: who is too slow. */
#include "core/base/units.h"
#include "proxy/pace.h"
#include "unit.h"

enum { RATE = 256 };

/* One look a second, each after `step` bytes; the second at which it was too slow, or 0. */
static int slow_after(struct pace *p, int from_s, int seconds, uint64_t *bytes, uint64_t step)
{
    for (int s = from_s + 1; s <= from_s + seconds; s++) {
        *bytes += step;
        if (pace_too_slow(p, s * NS_PER_S, *bytes, true, RATE))
            return s;
    }
    return 0;
}

START_TEST(test_grace_and_rate)
{
    struct pace p;
    uint64_t bytes = 0;
    pace_start(&p, 0, 0);
    ck_assert_int_eq(slow_after(&p, 0, 3600, &bytes, RATE), 0);
    bytes = 0;
    pace_start(&p, 0, 0);
    ck_assert_int_eq(slow_after(&p, 0, 3600, &bytes, RATE - 1), 11);
    bytes = 0;
    pace_start(&p, 0, 0);
    ck_assert_int_eq(slow_after(&p, 0, 10, &bytes, 0), 0); /* the grace */
    ck_assert_int_eq(slow_after(&p, 10, 1, &bytes, 0), 11);
}
END_TEST

/* Pauses that the timeouts allow do not make a fast sender slow; a drip after a fast beginning is
 * found out. */
START_TEST(test_forgets)
{
    struct pace p;
    uint64_t bytes = 0;
    pace_start(&p, 0, 0);
    int now = 0;
    for (int i = 0; i < 20; i++, now += 60) {
        bytes += MIB;
        ck_assert_int_eq(slow_after(&p, now, 60, &bytes, 0), 0);
    }
    int s = slow_after(&p, now, 3600, &bytes, 1);
    ck_assert_int_gt(s, now);
    ck_assert_int_lt(s, now + 600);
}
END_TEST

/* Only the time in which it kept us waiting counts. */
START_TEST(test_not_waiting)
{
    struct pace p;
    pace_start(&p, 5 * NS_PER_S, 100);
    for (int s = 6; s < 1000; s++)
        ck_assert(!pace_too_slow(&p, s * NS_PER_S, 100, false, RATE));
    ck_assert(!pace_too_slow(&p, 1005 * NS_PER_S, 100, true, RATE));
    ck_assert(pace_too_slow(&p, 1011 * NS_PER_S, 100, true, RATE));
}
END_TEST

START_TEST(test_off_and_far)
{
    struct pace p;
    pace_start(&p, 0, 0);
    ck_assert(!pace_too_slow(&p, INT64_MAX / 2, 0, true, 0));
    pace_start(&p, 0, 0);
    ck_assert(!pace_too_slow(&p, 3600 * NS_PER_S, 3600 * GIB, true, GIB));
    ck_assert(pace_too_slow(&p, 7200 * NS_PER_S, 3600 * GIB, true, GIB));
}
END_TEST

static TCase *tcase_pace(void)
{
    TCase *tc = tcase_create("pace");
    tcase_add_test(tc, test_grace_and_rate);
    tcase_add_test(tc, test_forgets);
    tcase_add_test(tc, test_not_waiting);
    tcase_add_test(tc, test_off_and_far);
    return tc;
}

UNIT_MAIN("pace", tcase_pace)
