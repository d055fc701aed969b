/* Error lines and the allocator. */
#include "unit.h"

#include "core/base/err.h"
#include "core/base/xalloc.h"

#include <string.h>

START_TEST(set_returns_false_and_cuts_the_line)
{
    struct err err;
    ck_assert(!err_set(&err, "%s:%d: no such option", "retryd.yaml", 7));
    ck_assert_str_eq(err.text, "retryd.yaml:7: no such option");
    ck_assert(!err_set(&err, "%600d", 1));
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert(!err_set(NULL, "nobody asked"));
}
END_TEST

START_TEST(copies_and_zeroed_memory)
{
    char *s = xstrndup("abcdef", 3), *t = xstrdup("xyz"), *e = xstrndup(NULL, 0);
    ck_assert_str_eq(s, "abc");
    ck_assert_str_eq(t, "xyz");
    ck_assert_str_eq(e, "");
    unsigned char *z = xcalloc(10, 10);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(z[i], 0);
    char *m = xmalloc(0);
    ck_assert_ptr_nonnull(m);
    m = xrealloc(m, 0);
    ck_assert_ptr_nonnull(m);
    free(m);
    free(z);
    free(e);
    free(t);
    free(s);
}
END_TEST

static TCase *errs(void)
{
    TCase *tc = tcase_create("err");
    tcase_add_test(tc, set_returns_false_and_cuts_the_line);
    tcase_add_test(tc, copies_and_zeroed_memory);
    return tc;
}

UNIT_MAIN("err", errs)
