/* Bounded buffers: the maximum is exact, and an append is whole or not at all. */
#include "unit.h"

#include "core/base/strbuf.h"

START_TEST(appends_up_to_the_maximum)
{
    struct strbuf sb;
    strbuf_init(&sb, 5);
    ck_assert(strbuf_put(&sb, SLICE("abc")));
    ck_assert(strbuf_putc(&sb, 'd'));
    ck_assert(!strbuf_put(&sb, SLICE("ef")));
    ck_assert(sb.overflow);
    ck_assert(slice_eq(strbuf_slice(&sb), SLICE("abcd")));
    ck_assert(strbuf_putc(&sb, 'e'));
    ck_assert(sb.overflow);
    ck_assert(!strbuf_putc(&sb, 'f'));
    ck_assert(slice_eq(strbuf_slice(&sb), SLICE("abcde")));
    ck_assert_uint_le(sb.cap, 5);
    strbuf_fini(&sb);
    ck_assert_ptr_null(sb.p);
    ck_assert_uint_eq(sb.max, 5);
}
END_TEST

START_TEST(grows_and_is_reused_after_reset)
{
    struct strbuf sb;
    strbuf_init(&sb, 100000);
    for (int i = 0; i < 10000; i++)
        ck_assert(strbuf_put(&sb, SLICE("0123456789")));
    ck_assert_uint_eq(sb.n, 100000);
    ck_assert(!strbuf_putc(&sb, 'x'));
    for (size_t i = 0; i < sb.n; i++)
        ck_assert_int_eq(sb.p[i], '0' + (int)(i % 10));
    char *memory = sb.p;
    strbuf_reset(&sb);
    ck_assert(!sb.overflow && sb.n == 0);
    ck_assert(strbuf_put(&sb, SLICE("again")));
    ck_assert_ptr_eq(sb.p, memory);
    strbuf_fini(&sb);
}
END_TEST

START_TEST(nothing_is_a_valid_append)
{
    struct strbuf sb;
    strbuf_init(&sb, 0);
    ck_assert(strbuf_put(&sb, SLICE_NONE));
    ck_assert(!sb.overflow);
    ck_assert(!strbuf_putc(&sb, 'a'));
    strbuf_fini(&sb);
}
END_TEST

START_TEST(printf_short_long_and_refused)
{
    struct strbuf sb;
    strbuf_init(&sb, 400);
    ck_assert(strbuf_printf(&sb, "%s=%d", "n", 7));
    ck_assert(slice_eq(strbuf_slice(&sb), SLICE("n=7")));
    ck_assert(strbuf_printf(&sb, "%300d", 1));
    ck_assert_uint_eq(sb.n, 303);
    ck_assert_int_eq(sb.p[302], '1');
    ck_assert(!strbuf_printf(&sb, "%98d", 1));
    ck_assert_uint_eq(sb.n, 303);
    ck_assert(strbuf_printf(&sb, "%97d", 1));
    ck_assert_uint_eq(sb.n, 400);
    strbuf_fini(&sb);
}
END_TEST

static TCase *strbufs(void)
{
    TCase *tc = tcase_create("strbuf");
    tcase_add_test(tc, appends_up_to_the_maximum);
    tcase_add_test(tc, grows_and_is_reused_after_reset);
    tcase_add_test(tc, nothing_is_a_valid_append);
    tcase_add_test(tc, printf_short_long_and_refused);
    return tc;
}

UNIT_MAIN("strbuf", strbufs)
