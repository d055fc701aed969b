/* When the end of the authority is told. */
#include "daemon/cawatch.h"
#include "unit.h"

#define DAY 86400

/* H5: 30 days ahead, at the end, and when the clock is wrong. */
START_TEST(states)
{
    static const struct {
        time_t now;
        enum cawatch_state state;
        int days;
    } cases[] = {
        {99, CAWATCH_EARLY, 0},        {100, CAWATCH_WELL, 0},
        {70 * DAY, CAWATCH_WELL, 0},   {70 * DAY + 1, CAWATCH_ENDING, 29},
        {99 * DAY, CAWATCH_ENDING, 1}, {100 * DAY - 1, CAWATCH_ENDING, 0},
        {100 * DAY, CAWATCH_OVER, 0},  {1000 * DAY, CAWATCH_OVER, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int days = -1;
        ck_assert_int_eq(cawatch_look(100, 100 * DAY, cases[i].now, &days), cases[i].state);
        ck_assert_int_eq(days, cases[i].days);
    }
}
END_TEST

static TCase *watching(void)
{
    TCase *tc = tcase_create("cawatch");
    tcase_add_test(tc, states);
    return tc;
}

UNIT_MAIN("cawatch", watching)
