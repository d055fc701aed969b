/* Field lists and byte classes. */
#include "unit.h"

#include "core/http/header.h"

static struct arena arena;
static struct header_list list;

static void setup(void)
{
    arena_init(&arena);
    list = (struct header_list){0};
}

static void teardown(void)
{
    arena_fini(&arena);
}

START_TEST(order_spelling_and_repetition_are_kept)
{
    for (int i = 0; i < 50; i++)
        header_add(&list, &arena, SLICE("X-R"), i == 17 ? SLICE("seventeen") : SLICE("v"));
    header_add(&list, &arena, SLICE("x-Other"), SLICE("z"));
    ck_assert_uint_eq(list.n, 51);
    ck_assert(slice_eq(list.v[17].value, SLICE("seventeen")));
    ck_assert(slice_eq(list.v[50].name, SLICE("x-Other")));
    ck_assert_uint_eq(header_count(&list, SLICE("x-r")), 50);
    ck_assert_uint_eq(header_count(&list, SLICE("x-s")), 0);
    ck_assert(header_has(&list, SLICE("X-OTHER")));
    ck_assert(!header_has(&list, SLICE("X-Othe")));
}
END_TEST

START_TEST(get_gives_the_first_and_null_when_absent)
{
    header_add(&list, &arena, SLICE("A"), SLICE(""));
    header_add(&list, &arena, SLICE("a"), SLICE("2"));
    struct slice v = header_get(&list, SLICE("a"));
    ck_assert(v.n == 0 && v.p != NULL);
    ck_assert_ptr_null(header_get(&list, SLICE("b")).p);
}
END_TEST

START_TEST(set_replaces_in_place_or_appends)
{
    header_add(&list, &arena, SLICE("max-forwards"), SLICE("5"));
    header_add(&list, &arena, SLICE("B"), SLICE("b"));
    header_set(&list, &arena, SLICE("Max-Forwards"), SLICE("4"));
    header_set(&list, &arena, SLICE("C"), SLICE("c"));
    ck_assert_uint_eq(list.n, 3);
    ck_assert(slice_eq(list.v[0].name, SLICE("max-forwards")));
    ck_assert(slice_eq(list.v[0].value, SLICE("4")));
    ck_assert(slice_eq(list.v[2].name, SLICE("C")));
}
END_TEST

START_TEST(tokens_are_found_in_all_lists)
{
    struct slice connection = SLICE("Connection");
    header_add(&list, &arena, SLICE("connection"), SLICE("keep-alive ,\tX-Foo"));
    header_add(&list, &arena, SLICE("X"), SLICE("nope"));
    header_add(&list, &arena, SLICE("CONNECTION"), SLICE(",,Close"));
    ck_assert(header_list_has_token(&list, connection, SLICE("x-foo")));
    ck_assert(header_list_has_token(&list, connection, SLICE("close")));
    ck_assert(header_list_has_token(&list, connection, SLICE("Keep-Alive")));
    ck_assert(!header_list_has_token(&list, connection, SLICE("keep")));
    ck_assert(!header_list_has_token(&list, connection, SLICE("nope")));
}
END_TEST

START_TEST(byte_classes_follow_the_grammar)
{
    const char *const marks = "!#$%&'*+-.^_`|~";
    for (int c = 0; c < 256; c++) {
        bool alnum = ascii_is_alpha((char)c) || ascii_is_digit((char)c);
        bool token = c < 128 && (alnum || (c && strchr(marks, c)));
        bool target = c > 0x20 && c < 0x7f && c != '#' && c != '\\';
        bool text = c == '\t' || (c >= 0x20 && c != 0x7f);
        ck_assert_int_eq(http_is_tchar((unsigned char)c), token);
        ck_assert_int_eq(!!(http_byte_class[c] & HTTP_TARGET), target);
        ck_assert_int_eq(!!(http_byte_class[c] & HTTP_TEXT), text);
    }
    ck_assert(http_is_token(SLICE("X-Amz_Date.1")));
    ck_assert(!http_is_token(SLICE("")));
    ck_assert(!http_is_token(SLICE("a b")));
}
END_TEST

static TCase *headers(void)
{
    TCase *tc = tcase_create("header");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, order_spelling_and_repetition_are_kept);
    tcase_add_test(tc, get_gives_the_first_and_null_when_absent);
    tcase_add_test(tc, set_replaces_in_place_or_appends);
    tcase_add_test(tc, tokens_are_found_in_all_lists);
    tcase_add_test(tc, byte_classes_follow_the_grammar);
    return tc;
}

UNIT_MAIN("header", headers)
