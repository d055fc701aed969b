/* Text in a fixed buffer: put together, cut, always terminated. */
#include "core/base/fixtext.h"
#include "unit.h"

START_TEST(puts_together)
{
    char buf[32];
    struct fixtext t = fixtext_in(buf, sizeof buf);
    ck_assert_str_eq(buf, "");
    fixtext_put(&t, SLICE("s|"));
    fixtext_put(&t, SLICE_NONE);
    fixtext_number(&t, 0);
    fixtext_put(&t, SLICE(":"));
    fixtext_number(&t, 18446744073709551615UL);
    ck_assert_str_eq(buf, "s|0:18446744073709551615");
    ck_assert_uint_eq(fixtext_slice(&t).n, 24);
}
END_TEST

START_TEST(cuts_at_the_end)
{
    char buf[5];
    struct fixtext t = fixtext_in(buf, sizeof buf);
    fixtext_put(&t, SLICE("abc"));
    fixtext_put(&t, SLICE("defg"));
    fixtext_number(&t, 7);
    ck_assert_str_eq(buf, "abcd");
    struct fixtext none = fixtext_in(buf, 1);
    fixtext_put(&none, SLICE("x"));
    ck_assert_str_eq(buf, "");
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("fixtext");
    tcase_add_test(tc, puts_together);
    tcase_add_test(tc, cuts_at_the_end);
    return tc;
}

UNIT_MAIN("fixtext", cases)
