/* The table of budgets: one key, one budget; full ones cost nothing; invented keys yield no fresh
 * ones. */
#include "io/shm/budgets.h"
#include "unit.h"

#include <stdio.h>

static struct budgets *table;

static void setup(void)
{
    table = budgets_new((struct hash_key){1, 2});
}

static void teardown(void)
{
    budgets_free(table);
}

START_TEST(a_key_is_one_budget)
{
    struct budget *a = budgets_acquire(table, SLICE("s3|us-east-1|A"));
    struct budget *b = budgets_acquire(table, SLICE("s3|us-east-1|B"));
    ck_assert_ptr_ne(a, b);
    ck_assert(a->ops->spend(a, 500, 500));
    ck_assert_uint_eq(a->ops->tokens(a, 500), 0);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 500);
    budgets_release(a);
    a = budgets_acquire(table, SLICE("s3|us-east-1|A"));
    ck_assert_uint_eq(a->ops->tokens(a, 500), 0);
    budgets_release(a);
    budgets_release(b);
}
END_TEST

START_TEST(invented_keys_share_the_overflow)
{
    char key[32];
    unsigned spent = 0;
    for (unsigned i = 0; i < 20000; i++) {
        int n = snprintf(key, sizeof key, "made-up-%u", i);
        struct budget *b = budgets_acquire(table, slice_of(key, (size_t)n));
        while (b->ops->spend(b, 250, 500))
            spent++;
        budgets_release(b);
    }
    ck_assert_uint_le(spent, 2 * (BUDGETS_SLOTS + BUDGETS_OVERFLOW));
    ck_assert_uint_gt(budgets_overflowed(table), 0);
}
END_TEST

START_TEST(a_full_idle_budget_leaves_its_slot)
{
    char key[32];
    for (unsigned i = 0; i < 20000; i++) {
        int n = snprintf(key, sizeof key, "honest-%u", i);
        struct budget *b = budgets_acquire(table, slice_of(key, (size_t)n));
        ck_assert(b->ops->spend(b, 14, 500));
        b->ops->refund(b, 14);
        budgets_release(b);
    }
    ck_assert_uint_eq(budgets_overflowed(table), 0);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("budgets");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_key_is_one_budget);
    tcase_add_test(tc, invented_keys_share_the_overflow);
    tcase_add_test(tc, a_full_idle_budget_leaves_its_slot);
    return tc;
}

UNIT_MAIN("budgets", cases)
