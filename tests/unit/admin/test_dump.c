/* JSON of strings and budgets. */
#include "admin/dump.h"
#include "core/base/units.h"
#include "io/shm/budgets.h"
#include "unit.h"
#include <stdio.h>

static struct strbuf out;

static const char *string(struct slice s)
{
    strbuf_reset(&out);
    dump_string(&out, s);
    strbuf_putc(&out, '\0');
    return out.p;
}

#define FFFD "\xef\xbf\xbd"

START_TEST(strings)
{
    ck_assert_str_eq(string(SLICE_NONE), "\"\"");
    ck_assert_str_eq(string(SLICE("s3/eu/\xe2\x80\xa6MPLE")), "\"s3/eu/\xe2\x80\xa6MPLE\"");
    ck_assert_str_eq(string(SLICE("a\"b\\c")), "\"a\\\"b\\\\c\"");
    ck_assert_str_eq(string(SLICE("\033[2J\n\x7f")), "\"" FFFD "[2J" FFFD FFFD "\"");
    ck_assert_str_eq(string(SLICE("\xc2\x9b\xc2\xa0")), "\"" FFFD FFFD "\xc2\xa0\"");
    ck_assert_str_eq(string(SLICE("\xc0\x80")), "\"" FFFD FFFD "\"");          /* overlong */
    ck_assert_str_eq(string(SLICE("\xe0\x80\x80")), "\"" FFFD FFFD FFFD "\""); /* overlong */
    ck_assert_str_eq(string(SLICE("\xed\xa0\x80")), "\"" FFFD FFFD FFFD "\""); /* surrogate */
    ck_assert_str_eq(string(SLICE("\xf0\x9f\x98\x80")), "\"\xf0\x9f\x98\x80\"");
    ck_assert_str_eq(string(SLICE("\xf4\x90\x80\x80")), "\"" FFFD FFFD FFFD FFFD "\"");
    ck_assert_str_eq(string(SLICE("x\xe2\x80")), "\"x" FFFD FFFD "\""); /* cut */
}
END_TEST

static struct region *region;
static struct budgets *table;

static void use(unsigned i, unsigned cost)
{
    char key[32];
    int n = snprintf(key, sizeof key, "host%u.example:443", i);
    struct slice name = slice_of(key, (size_t)n);
    struct budget *b = budgets_acquire(table, name, name, NS_PER_S);
    ck_assert(b->ops->spend(b, cost, 500));
    budgets_release(b);
}

static void setup(void)
{
    struct err err;
    strbuf_init(&out, 64 * KIB);
    region = region_open(&(struct region_options){.slots = 256}, &err);
    ck_assert_ptr_nonnull(region);
    table = budgets_new(region, region_seat_claim(region));
}

static void teardown(void)
{
    budgets_free(table);
    region_close(region);
    strbuf_fini(&out);
}

static size_t occurrences(const char *what)
{
    size_t n = 0;
    for (struct slice s = strbuf_slice(&out); s.n >= strlen(what); s = slice_of(s.p + 1, s.n - 1))
        n += slice_starts(s, slice_str(what));
    return n;
}

START_TEST(one_budget)
{
    use(0, 14);
    dump_budgets(&out, region, 2 * NS_PER_S);
    ck_assert_uint_eq(occurrences("\"client\":\"host0.example:443\""), 1);
    ck_assert_uint_eq(occurrences("\"quota\":{\"tokens\":486,\"capacity\":500}"), 1);
    ck_assert_uint_eq(occurrences("\"entries\":1,\"slots\":256,\"seats\":1"), 1);
    ck_assert_uint_eq(occurrences("\"limited\":false"), 1);
    ck_assert_uint_eq(occurrences("],\"truncated\":false}\n"), 1);
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_whole)
{
    for (unsigned i = 0; i < 100; i++)
        use(i, 1);
    strbuf_fini(&out);
    strbuf_init(&out, 4096);
    dump_budgets(&out, region, 2 * NS_PER_S);
    ck_assert(!out.overflow);
    size_t rows = occurrences("{\"id\":");
    ck_assert_uint_gt(rows, 5);
    ck_assert_uint_lt(rows, 20);
    ck_assert_uint_eq(occurrences("\"used_s\":"), rows);
    ck_assert_uint_eq(occurrences("\n],\"truncated\":true}\n"), 1);
    ck_assert_int_eq(out.p[out.n - 1], '\n');
}
END_TEST

static TCase *tcase_dump(void)
{
    TCase *tc = tcase_create("dump");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, strings);
    tcase_add_test(tc, one_budget);
    tcase_add_test(tc, what_does_not_fit_is_left_out_whole);
    return tc;
}

UNIT_MAIN("dump", tcase_dump)
