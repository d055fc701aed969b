/* Field sections: what passes, what each refusal says, and that the place of the verdict is the
 * byte. */
#include "unit.h"

#include "core/http/h1_fields.h"

static enum parse scan(struct h1_fields *st, const char *text, size_t n)
{
    *st = (struct h1_fields){0};
    return h1_fields_scan(st, text, n, 3);
}

START_TEST(a_section_is_cut_into_fields)
{
    static const char text[] = "Host: a\r\nX-Empty:\r\nX-V:\t a  b\xe9 \t\r\n\r\nrest";
    struct h1_fields st;
    ck_assert_int_eq(scan(&st, text, sizeof text - 1), PARSE_OK);
    ck_assert_uint_eq(st.count, 3);
    ck_assert_uint_eq(st.scanned, sizeof text - 1 - 4);
    struct arena a;
    arena_init(&a);
    struct header_list l = {0};
    h1_fields_split(slice_of(text, st.scanned), st.count, &a, &l);
    ck_assert_uint_eq(l.n, 3);
    ck_assert(slice_eq(l.v[0].name, SLICE("Host")) && slice_eq(l.v[0].value, SLICE("a")));
    ck_assert(slice_eq(l.v[1].name, SLICE("X-Empty")) && l.v[1].value.n == 0);
    ck_assert(slice_eq(l.v[2].value, SLICE("a  b\xe9")));
    header_add(&l, &a, SLICE("More"), SLICE("1"));
    ck_assert(slice_eq(l.v[0].name, SLICE("Host")) && l.n == 4);
    arena_fini(&a);
}
END_TEST

static const struct {
    const char *text, *problem;
    size_t at;
} refusals[] = {
    {"A: b\nC", "line feed without carriage return", 4},
    {"A: b\rC", "carriage return without line feed", 4},
    {"A: b\r\r\n", "carriage return without line feed", 4},
    {"\rX", "carriage return without line feed", 0},
    {"\n", "line feed without carriage return", 0},
    {"A: b\x01", "control byte", 4},
    {"A: b\x7f", "control byte", 4},
    {"A : b", "white space in or after a field name", 1},
    {"A\t: b", "white space in or after a field name", 1},
    {"A: b\r\n c", "folded field line", 6},
    {"A: b\r\n\tc", "folded field line", 6},
    {": v", "empty field name", 0},
    {"Nonsense\r", "field line without a colon", 8},
    {"X(: v", "bad byte in a field name", 1},
    {"X\xad: v", "bad byte in a field name", 1},
    {"A:\r\nB:\r\nC:\r\nD:", "too many fields", 13},
};

START_TEST(refusals_name_the_byte)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct h1_fields st;
        ck_assert_int_eq(scan(&st, refusals[i].text, strlen(refusals[i].text)), PARSE_BAD);
        ck_assert_str_eq(st.problem, refusals[i].problem);
        ck_assert_uint_eq(st.scanned, refusals[i].at);
        ck_assert_int_eq(st.too_many, strcmp(st.problem, "too many fields") == 0);
        size_t needs = st.scanned + 1 + (st.problem[0] == 'c' && st.problem[1] == 'a');
        for (size_t n = 0; n < needs; n++)
            ck_assert_int_eq(scan(&st, refusals[i].text, n), PARSE_MORE);
    }
    struct h1_fields st;
    ck_assert_int_eq(scan(&st, "A: b\0", 5), PARSE_BAD);
    ck_assert_str_eq(st.problem, "NUL byte");
    ck_assert_int_eq(scan(&st, "A\0: b", 5), PARSE_BAD);
    ck_assert_str_eq(st.problem, "NUL byte");
    ck_assert_str_eq(h1_bad_byte(' '), "white space out of place");
    ck_assert_str_eq(h1_bad_byte('('), "byte out of place");
}
END_TEST

static TCase *fields(void)
{
    TCase *tc = tcase_create("h1_fields");
    tcase_add_test(tc, a_section_is_cut_into_fields);
    tcase_add_test(tc, refusals_name_the_byte);
    return tc;
}

UNIT_MAIN("h1_fields", fields)
