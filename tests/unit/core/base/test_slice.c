/* Slices. */
#include "unit.h"

#include "core/base/slice.h"

START_TEST(empty_slices_are_equal_whatever_their_pointer)
{
    ck_assert(slice_eq(SLICE_NONE, SLICE("")));
    ck_assert(slice_eq(slice_str(NULL), SLICE("")));
    ck_assert_ptr_null(slice_str(NULL).p);
    ck_assert(!slice_eq(SLICE("a"), SLICE("")));
}
END_TEST

START_TEST(nocase_folds_ascii_letters_only)
{
    ck_assert(slice_eq_nocase(SLICE("AbZ-9"), SLICE("aBz-9")));
    ck_assert(!slice_eq_nocase(SLICE("@"), SLICE("`")));
    ck_assert(!slice_eq_nocase(SLICE("["), SLICE("{")));
    ck_assert(!slice_eq_nocase(SLICE("\xc4"), SLICE("\xe4")));
    ck_assert(!slice_eq_nocase(SLICE("ab"), SLICE("abc")));
    ck_assert_int_eq(ascii_lower('Q'), 'q');
    ck_assert(ascii_is_alpha('z') && ascii_is_alpha('A') && !ascii_is_alpha('['));
    ck_assert(ascii_is_digit('0') && ascii_is_digit('9') && !ascii_is_digit(':'));
}
END_TEST

START_TEST(starts_ends_has)
{
    ck_assert(slice_starts(SLICE("AWS4-x"), SLICE("AWS4-")));
    ck_assert(!slice_starts(SLICE("aws4-x"), SLICE("AWS4-")));
    ck_assert(slice_starts_nocase(SLICE("X-Amz-Date"), SLICE("x-amz-")));
    ck_assert(!slice_starts_nocase(SLICE("X-"), SLICE("x-amz-")));
    ck_assert(slice_ends_nocase(SLICE("s3.AmazonAWS.com"), SLICE(".amazonaws.com")));
    ck_assert(!slice_ends_nocase(SLICE("com"), SLICE(".com")));
    ck_assert(slice_has_nocase(SLICE("xxThrottlingyy"), SLICE("throttling")));
    ck_assert(!slice_has_nocase(SLICE("throttlin"), SLICE("throttling")));
    ck_assert(slice_has_nocase(SLICE("abc"), SLICE("")));
}
END_TEST

START_TEST(order_is_bytewise_shorter_first)
{
    ck_assert_int_lt(slice_cmp(SLICE("a"), SLICE("b")), 0);
    ck_assert_int_lt(slice_cmp(SLICE("a"), SLICE("aa")), 0);
    ck_assert_int_gt(slice_cmp(SLICE("aa"), SLICE("a")), 0);
    ck_assert_int_eq(slice_cmp(SLICE("aa"), SLICE("aa")), 0);
    ck_assert_int_lt(slice_cmp(SLICE("a"), SLICE("\xff")), 0);
    ck_assert_int_lt(slice_cmp(SLICE_NONE, SLICE("a")), 0);
}
END_TEST

START_TEST(trim_takes_space_and_tab_only)
{
    ck_assert(slice_eq(slice_trim(SLICE(" \t a b\t ")), SLICE("a b")));
    ck_assert(slice_eq(slice_trim(SLICE(" \t")), SLICE("")));
    ck_assert(slice_eq(slice_trim(SLICE("\v5\r")), SLICE("\v5\r")));
    ck_assert(slice_eq(slice_trim(SLICE_NONE), SLICE("")));
}
END_TEST

START_TEST(index_of_absent_is_length)
{
    ck_assert_uint_eq(slice_index(SLICE("a:b"), ':'), 1);
    ck_assert_uint_eq(slice_index(SLICE("ab"), ':'), 2);
    ck_assert_uint_eq(slice_index(SLICE_NONE, ':'), 0);
}
END_TEST

static size_t parts(struct slice s, struct slice out[8])
{
    size_t n = 0;
    bool done = false;
    while (n < 8 && slice_next(&s, ',', &out[n], &done))
        n++;
    return n;
}

START_TEST(next_yields_every_part)
{
    struct slice out[8];
    ck_assert_uint_eq(parts(SLICE("a,bc"), out), 2);
    ck_assert(slice_eq(out[0], SLICE("a")) && slice_eq(out[1], SLICE("bc")));
    ck_assert_uint_eq(parts(SLICE(",a,"), out), 3);
    ck_assert_uint_eq(out[0].n, 0);
    ck_assert(slice_eq(out[1], SLICE("a")));
    ck_assert_uint_eq(out[2].n, 0);
    ck_assert_uint_eq(parts(SLICE(""), out), 1);
    ck_assert_uint_eq(parts(SLICE_NONE, out), 1);
}
END_TEST

static TCase *slices(void)
{
    TCase *tc = tcase_create("slice");
    tcase_add_test(tc, empty_slices_are_equal_whatever_their_pointer);
    tcase_add_test(tc, nocase_folds_ascii_letters_only);
    tcase_add_test(tc, starts_ends_has);
    tcase_add_test(tc, order_is_bytewise_shorter_first);
    tcase_add_test(tc, trim_takes_space_and_tab_only);
    tcase_add_test(tc, index_of_absent_is_length);
    tcase_add_test(tc, next_yields_every_part);
    return tc;
}

UNIT_MAIN("slice", slices)
