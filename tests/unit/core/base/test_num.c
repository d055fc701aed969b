/* Numbers from outside: digits only, exact bounds, and a refusal leaves the target alone. */
#include "unit.h"

#include "core/base/num.h"

static uint64_t decimal(struct slice s, unsigned digits, uint64_t max)
{
    uint64_t v = 4711;
    ck_assert(num_u64(s, digits, max, &v));
    return v;
}

static bool refused(struct slice s, unsigned digits, uint64_t max)
{
    uint64_t v = 4711;
    bool no = !num_u64(s, digits, max, &v);
    return no && v == 4711;
}

START_TEST(decimal_bounds)
{
    ck_assert_uint_eq(decimal(SLICE("0"), 1, 0), 0);
    ck_assert_uint_eq(decimal(SLICE("65535"), 5, 65535), 65535);
    ck_assert(refused(SLICE("65536"), 5, 65535));
    ck_assert(refused(SLICE("3"), 1, 2));
    ck_assert_uint_eq(decimal(SLICE("18446744073709551615"), 20, UINT64_MAX), UINT64_MAX);
    ck_assert(refused(SLICE("18446744073709551616"), 20, UINT64_MAX));
    ck_assert(refused(SLICE("99999999999999999999"), 20, UINT64_MAX));
    ck_assert_uint_eq(decimal(SLICE("007"), 3, 9), 7);
    ck_assert(refused(SLICE("0007"), 3, 9));
}
END_TEST

START_TEST(digits_and_nothing_else)
{
    static const char *const bad[] = {"",    "+5",  "-1", " 5", "5 ",  "5,5", "0x5",
                                      "5_0", "1e3", "a",  "5a", "1.0", "\xb2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(refused(slice_str(bad[i]), 10, UINT64_MAX), "\"%s\"", bad[i]);
    ck_assert(refused(SLICE_NONE, 10, 9));
    ck_assert(refused(SLICE("5\0"), 10, 9));
}
END_TEST

START_TEST(hexadecimal)
{
    uint64_t v = 0;
    ck_assert(num_hex_u64(SLICE("fFaA09"), 6, UINT64_MAX, &v));
    ck_assert_uint_eq(v, 0xffaa09);
    ck_assert(num_hex_u64(SLICE("ffffffffffffffff"), 16, UINT64_MAX, &v));
    ck_assert_uint_eq(v, UINT64_MAX);
    ck_assert(!num_hex_u64(SLICE("10000000000000000"), 17, UINT64_MAX, &v));
    ck_assert(!num_hex_u64(SLICE("g"), 16, UINT64_MAX, &v));
    ck_assert(!num_hex_u64(SLICE("0x1"), 16, UINT64_MAX, &v));
    ck_assert(!num_hex_u64(SLICE("b"), 1, 10, &v));
    ck_assert_uint_eq(v, UINT64_MAX);
}
END_TEST

static TCase *nums(void)
{
    TCase *tc = tcase_create("num");
    tcase_add_test(tc, decimal_bounds);
    tcase_add_test(tc, digits_and_nothing_else);
    tcase_add_test(tc, hexadecimal);
    return tc;
}

UNIT_MAIN("num", nums)
