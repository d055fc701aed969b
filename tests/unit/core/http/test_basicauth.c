/* Basic credentials. */
#include "core/http/basicauth.h"
#include "unit.h"

static const struct {
    const char *value, *name, *password; /* name NULL: refused */
} cases[] = {
    {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},
    {"basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},
    {"Basic  dGVzdDoxMjPCow==  ", "test", "123\xc2\xa3"},
    {"Basic YTpi", "a", "b"},
    {"Basic YTo=", "a", ""},
    {"Basic Og==", "", ""},
    {"Basic YTpiOmM=", "a", "b:c"},
    {"Basic", NULL, NULL},
    {"Basic ", NULL, NULL},
    {"BasicYTpi", NULL, NULL},
    {"Bearer YTpi", NULL, NULL},
    {"Basic YWI=", NULL, NULL},  /* no colon */
    {"Basic YTpi=", NULL, NULL}, /* padding too much, */
    {"Basic YTo", NULL, NULL},   /* too little, */
    {"Basic YT=i", NULL, NULL},  /* in the middle, */
    {"Basic ====", NULL, NULL},  /* alone */
    {"Basic YTp=", NULL, NULL},  /* bits behind the last byte */
    {"Basic Oh==", NULL, NULL},  /* bits behind the last byte */
    {"Basic YTp-", NULL, NULL},  /* the other alphabet */
    {"Basic YT pi", NULL, NULL}, /* space inside */
    {"Basic YTpi YTpi", NULL, NULL},
    {"Basic YTpi,", NULL, NULL},
    {"Basic YToA", NULL, NULL}, /* NUL */
    {"Basic YToK", NULL, NULL}, /* LF */
    {"Basic YTp/", NULL, NULL}, /* DEL */
};

START_TEST(reads_it)
{
    char buf[BASICAUTH_MAX + 1];
    struct slice name = SLICE_NONE, password = SLICE_NONE;
    bool ok = basicauth_read(slice_str(cases[_i].value), buf, &name, &password);
    ck_assert_int_eq(ok, cases[_i].name != NULL);
    if (!ok)
        return;
    ck_assert_str_eq(name.p, cases[_i].name);
    ck_assert_str_eq(password.p, cases[_i].password);
    ck_assert_uint_eq(name.n, strlen(cases[_i].name));
    ck_assert_uint_eq(password.n, strlen(cases[_i].password));
}
END_TEST

START_TEST(is_bounded)
{
    enum { MOST = BASICAUTH_MAX / 3 * 4 };
    char value[6 + MOST + 4] = "Basic Ojpi"; /* "::b" */
    char buf[BASICAUTH_MAX + 1];
    struct slice name, password;
    for (size_t i = 10; i < sizeof value; i++)
        value[i] = "YWJj"[(i - 10) % 4];
    ck_assert(basicauth_read(slice_of(value, 6 + MOST), buf, &name, &password));
    ck_assert_uint_eq(password.n, BASICAUTH_MAX - 1);
    ck_assert(!basicauth_read(slice_of(value, 6 + MOST + 4), buf, &name, &password));
    ck_assert(!basicauth_read(SLICE_NONE, buf, &name, &password));
}
END_TEST

static TCase *tcase(void)
{
    TCase *tc = tcase_create("basicauth");
    tcase_add_loop_test(tc, reads_it, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, is_bounded);
    return tc;
}

UNIT_MAIN("basicauth", tcase)
