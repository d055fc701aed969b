/* The dialect of AWS configuration files (retry-semantics §11): sections, names, comments, nested
 * settings, and what is refused. */
#include "unit.h"

#include "core/config/ini.h"

#include <stdio.h>

/* "key=value@line" of each property, in order, or "line: problem" at the end; "-": no profile. */
static const char *reading(const char *profile, struct slice text)
{
    static char out[1024];
    struct ini in;
    struct ini_property p;
    size_t n = 0;
    bool open = ini_open(&in, text, slice_str(profile));
    out[0] = '\0';
    if (!open && !in.problem)
        n += (size_t)snprintf(out + n, sizeof out - n, "-");
    while (ini_next(&in, &p))
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s=%.*s@%u", n ? " " : "",
                              SLICE_FMT(p.key), SLICE_FMT(p.value), p.line);
    if (in.problem)
        snprintf(out + n, sizeof out - n, "%s%u: %s", n ? " " : "", in.line, in.problem);
    return out;
}

static const struct {
    const char *profile, *text, *want;
} cases[] = {
    /* which sections */
    {"default", "", "-"},
    {"default", "[default]", ""},
    {"default", "[default]\na = 1", "a=1@2"},
    {"default", "[profile default]\na = 1", "a=1@2"},
    {"default", "[default]\na = 1\n[profile default]\nb = 2\n[default]\nc = 3\n", "b=2@4"},
    {"default", "[profile default]\n[default]\na = 1\n", ""},
    {"default", "[default]\na = 1\n[x]\na = 2\n[default]\nb = 3", "a=1@2 b=3@6"},
    {"default", "[Default]\na = 1", "-"},
    {"dev", "[dev]\na = 1", "-"},
    {"dev", "[profile dev]\na = 1\n[default]\na = 2", "a=1@2"},
    {"dev", "[profile dev2]\n[profile Dev]\n[Profile dev]\n[profiledev]\n", "-"},
    {"dev", "[sso-session dev]\na = 1\n[services dev]\na = 2", "-"},
    {"dev", "[profile\tdev]\na = 1", "a=1@2"},
    {"dev", "[ profile  dev ]\na = 1", "a=1@2"},
    {"dev", "[profile dev] # comment\na = 1", "a=1@2"},
    {"dev", "[profile dev]; comment\na = 1", "a=1@2"},
    {"dev", "[profile dev]\na = 1\n[profile dev]\nb = 2", "a=1@2 b=2@4"},
    {"dev", "[x]\n [profile dev]\na = 1", "-"},
    /* names */
    {"my dev", "[profile \"my dev\"]\na = 1", "a=1@2"},
    {"my dev", "[profile 'my dev']\na = 1", "a=1@2"},
    {"my dev", "[profile my dev]\na = 1", "-"},
    {"dev", "[profile \"dev\"]\na = 1", "a=1@2"},
    {"default", "[default]\na = 1\n[profile \"default\"]\nb = 2", "b=2@4"},
    {"a]b", "[profile \"a]b\"]\na = 1", "a=1@2"},
    {"a#b", "[profile a#b]\na = 1", "a=1@2"},
    {"o'b", "[profile o'b]\na = 1", "a=1@2"},
    {"dev", "[profile \"dev\"x]\na = 1", "-"},
    {"a-b_c/d.e%f@g:h+i", "[profile a-b_c/d.e%f@g:h+i]\na = 1", "a=1@2"},
    /* values */
    {"default", "[default]\n  \t\na\t=\t1 \t", "a=1@3"},
    {"default", "[default]\na=1\nA = 2\na=", "a=1@2 A=2@3 a=@4"},
    {"default", "[default]\r\na = 1\r\n\r\nb = 2\r\n", "a=1@2 b=2@4"},
    {"default", "[default]\na = b=c", "a=b=c@2"},
    {"default", "[default]\na = 1 # c\nb = 2\t; c\nc = 3#c\nd = 4;c\ne = # c\nf =#c\ng = 1 ; c # d",
     "a=1@2 b=2@3 c=3#c@4 d=4;c@5 e=@6 f=#c@7 g=1@8"},
    {"default", "# c\n;c\n[default]\n#a = 1\n; b = 2\na = 3", "a=3@6"},
    {"default", "[default]\ns3 =\n  retry_mode = legacy\n\tmax_attempts = 9\n\n  x\na = 1",
     "s3=@2 a=1@7"},
    {"default", "[default]\n  a = 1\nb = 2", "b=2@3"},
    /* refused */
    {"default", "a = 1\n[default]", "1: a setting before the first section"},
    {"default", "\n\n[default\na = 1", "3: a section without its closing bracket"},
    {"default", "[default]\na = 1\n[profile \"x]\nb = 2",
     "3: a section without its closing bracket"},
    {"dev", "[profile dev", "1: a section without its closing bracket"},
    {"default", "[default]\na = 1\nb\n", "a=1@2 3: not a setting; give NAME = VALUE"},
    {"default", "[default]\n= 1", "2: not a setting; give NAME = VALUE"},
    {"default", "[default]\na: 1", "2: not a setting; give NAME = VALUE"},
    /* another's are none of our business */
    {"default", "[x]\nnonsense\n= 1\n[default]\na = 1", "a=1@5"},
};

START_TEST(dialect)
{
    ck_assert_str_eq(reading(cases[_i].profile, slice_str(cases[_i].text)), cases[_i].want);
}
END_TEST

/* Nothing is read beyond the slice, and no byte is special. */
START_TEST(bytes)
{
    static const char text[] = "[default]\na = \0b\nc = 1";
    ck_assert_str_eq(reading("default", slice_of(text, 10)), "");
    ck_assert_str_eq(reading("default", slice_of(text, 13)), "a=@2");
    ck_assert_str_eq(reading("default", slice_of(text, 1)),
                     "1: a section without its closing bracket");
    struct ini in;
    struct ini_property p;
    ck_assert(ini_open(&in, slice_of(text, sizeof text - 1), SLICE("default")));
    ck_assert(ini_next(&in, &p));
    ck_assert(p.value.n == 2 && memcmp(p.value.p, "\0b", 2) == 0);
    ck_assert(ini_next(&in, &p) && p.line == 3);
    ck_assert(!ini_next(&in, &p) && !ini_next(&in, &p) && !in.problem);
}
END_TEST

START_TEST(a_problem_stays)
{
    struct ini in;
    struct ini_property p;
    ck_assert(ini_open(&in, SLICE("[default]\nx\na = 1"), SLICE("default")));
    ck_assert(!ini_next(&in, &p) && in.problem && in.line == 2);
    ck_assert(!ini_next(&in, &p) && in.problem && in.line == 2);
}
END_TEST

static TCase *tcase_ini(void)
{
    TCase *t = tcase_create("ini");
    tcase_add_loop_test(t, dialect, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(t, bytes);
    tcase_add_test(t, a_problem_stays);
    return t;
}

UNIT_MAIN("ini", tcase_ini)
