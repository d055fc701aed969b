/* Collecting settings and problems. */
#include "unit.h"

#include "core/config/settings.h"

START_TEST(settings_are_copies)
{
    struct settings s;
    char path[] = "a", value[] = "b", origin[] = "c";
    settings_init(&s);
    for (int i = 0; i < 1000; i++)
        settings_add(&s, slice_str(path), slice_str(value), SETTING_ENV, origin, 3);
    path[0] = value[0] = origin[0] = 'x';
    ck_assert_uint_eq(s.n, 1000);
    for (size_t i = 0; i < s.n; i++) {
        ck_assert(slice_eq(s.v[i].path, SLICE("a")) && slice_eq(s.v[i].value, SLICE("b")));
        ck_assert(slice_eq(s.v[i].origin, SLICE("c")));
        ck_assert_int_eq(s.v[i].rank, SETTING_ENV);
        ck_assert_uint_eq(s.v[i].line, 3);
    }
    settings_fini(&s);
    ck_assert_uint_eq(s.n, 0);
}
END_TEST

START_TEST(problems_are_lines)
{
    struct problems p = {0};
    char longer[1000];
    memset(longer, 'y', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    problems_add(&p, "a\nb\tc\x7f %d", 7);
    problems_add(&p, "%s", longer);
    ck_assert_str_eq(p.v[0].text, "a?b?c? 7");
    ck_assert_uint_eq(strlen(p.v[1].text), sizeof p.v[1].text - 1);
    problems_fini(&p);
}
END_TEST

START_TEST(problems_are_bounded)
{
    struct problems p = {0};
    for (int i = 0; i < 1000; i++)
        problems_add(&p, "number %d", i);
    ck_assert_uint_eq(p.n, 64);
    ck_assert_str_eq(p.v[62].text, "number 62");
    ck_assert_str_eq(p.v[63].text, "more problems than are shown here");
    problems_fini(&p);
}
END_TEST

static TCase *tcase_collect(void)
{
    TCase *t = tcase_create("collect");
    tcase_add_test(t, settings_are_copies);
    tcase_add_test(t, problems_are_lines);
    tcase_add_test(t, problems_are_bounded);
    return t;
}

UNIT_MAIN("settings", tcase_collect)
