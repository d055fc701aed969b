/* Every state, event and action has a name of its own. */
#include "unit.h"

#include "core/exchange/exchange.h"

START_TEST(names_are_distinct)
{
    for (int i = XST_NEW; i <= XST_DONE; i++)
        for (int j = XST_NEW; j < i; j++)
            ck_assert_str_ne(xch_state_name((enum xch_state)i), xch_state_name((enum xch_state)j));
    for (int i = XEV_START; i <= XEV_CLIENT_GONE; i++)
        for (int j = XEV_START; j < i; j++)
            ck_assert_str_ne(xch_event_name((enum xch_event_kind)i),
                             xch_event_name((enum xch_event_kind)j));
    for (int i = XACT_ARM; i <= XACT_FINISH; i++)
        for (int j = XACT_ARM; j < i; j++)
            ck_assert_str_ne(xch_action_name((enum xch_action_kind)i),
                             xch_action_name((enum xch_action_kind)j));
}
END_TEST

START_TEST(names_are_the_words_of_the_design)
{
    ck_assert_str_eq(xch_state_name(XST_PENALTY), "PENALTY");
    ck_assert_str_eq(xch_event_name(XEV_CLIENT_GONE), "client_gone");
    ck_assert_str_eq(xch_action_name(XACT_RELAY), "relay");
}
END_TEST

static TCase *names(void)
{
    TCase *tc = tcase_create("names");
    tcase_add_test(tc, names_are_distinct);
    tcase_add_test(tc, names_are_the_words_of_the_design);
    return tc;
}

UNIT_MAIN("xnames", names)
