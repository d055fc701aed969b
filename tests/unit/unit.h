/* The frame of a Check program: UNIT_MAIN("h1_head", tcase_a, tcase_b) runs the listed cases. */
#ifndef RETRYD_TESTS_UNIT_H
#define RETRYD_TESTS_UNIT_H

#include <check.h>
#include <stdlib.h>

#define UNIT_MAIN(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        TCase *(*const unit_cases_[])(void) = {__VA_ARGS__};                                       \
        Suite *suite = suite_create(name);                                                         \
        for (size_t i = 0; i < sizeof unit_cases_ / sizeof unit_cases_[0]; i++)                    \
            suite_add_tcase(suite, unit_cases_[i]());                                              \
        SRunner *runner = srunner_create(suite);                                                   \
        srunner_run_all(runner, CK_ENV);                                                           \
        int failed = srunner_ntests_failed(runner);                                                \
        int ran = srunner_ntests_run(runner);                                                      \
        srunner_free(runner);                                                                      \
        return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;                               \
    }

#endif
