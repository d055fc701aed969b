/* Names: every value has its own, and they are the words of the vector files. */
#include "unit.h"

#include "core/retry/retry.h"

START_TEST(class_names)
{
    ck_assert_str_eq(retry_class_name(RETRY_SUCCESS), "success");
    ck_assert_str_eq(retry_class_name(RETRY_FINAL), "none");
    ck_assert_str_eq(retry_class_name(RETRY_TRANSIENT), "transient");
    ck_assert_str_eq(retry_class_name(RETRY_THROTTLING), "throttling");
}
END_TEST

START_TEST(failure_names_are_distinct)
{
    ck_assert_str_eq(retry_failure_name(RETRY_FAIL_NONE), "");
    ck_assert_str_eq(retry_failure_name(RETRY_FAIL_DNS), "dns_failure");
    ck_assert_str_eq(retry_failure_name(RETRY_FAIL_TRUNCATED), "truncated_body");
    for (int i = 0; i < RETRY_FAIL_COUNT; i++) {
        ck_assert_ptr_nonnull(retry_failure_name((enum retry_failure)i));
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(retry_failure_name((enum retry_failure)i),
                             retry_failure_name((enum retry_failure)j));
    }
}
END_TEST

START_TEST(rule_names_are_distinct)
{
    for (int i = RETRY_RULE_NONE; i <= RETRY_RULE_CLOCK_SKEW; i++)
        for (int j = RETRY_RULE_NONE; j < i; j++)
            ck_assert_str_ne(retry_rule_name((enum retry_rule)i),
                             retry_rule_name((enum retry_rule)j));
}
END_TEST

static TCase *names(void)
{
    TCase *tc = tcase_create("names");
    tcase_add_test(tc, class_names);
    tcase_add_test(tc, failure_names_are_distinct);
    tcase_add_test(tc, rule_names_are_distinct);
    return tc;
}

UNIT_MAIN("retry", names)
