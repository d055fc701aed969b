/* The port in memory: full at birth, atomic test and deduct, no limiter. */
#include "unit.h"

#include "core/retry/membudget.h"

START_TEST(is_full_at_birth)
{
    struct membudget m;
    membudget_init(&m);
    ck_assert_uint_eq(m.base.ops->tokens(&m.base, 500), 500);
    ck_assert_uint_eq(m.base.ops->tokens(&m.base, 20), 20);
}
END_TEST

START_TEST(spends_and_refunds)
{
    struct membudget m;
    membudget_init(&m);
    struct budget *b = &m.base;
    ck_assert(b->ops->spend(b, 14, 20));
    ck_assert_uint_eq(b->ops->tokens(b, 20), 6);
    ck_assert(!b->ops->spend(b, 14, 20));
    ck_assert_uint_eq(b->ops->tokens(b, 20), 6);
    b->ops->refund(b, 14);
    ck_assert_uint_eq(b->ops->tokens(b, 20), 20);
    b->ops->refund(b, 1);
    ck_assert_uint_eq(b->ops->tokens(b, 20), 20);
}
END_TEST

START_TEST(admits_at_once)
{
    struct membudget m;
    membudget_init(&m);
    m.base.ops->observe(&m.base, true, 5);
    ck_assert_int_eq(m.base.ops->admit(&m.base, 6), 0);
    ck_assert_uint_eq(m.base.ops->tokens(&m.base, 500), 500);
}
END_TEST

static TCase *membudget(void)
{
    TCase *tc = tcase_create("membudget");
    tcase_add_test(tc, is_full_at_birth);
    tcase_add_test(tc, spends_and_refunds);
    tcase_add_test(tc, admits_at_once);
    return tc;
}

UNIT_MAIN("membudget", membudget)
