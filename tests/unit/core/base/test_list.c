/* Intrusive lists. */
#include "unit.h"

#include "core/base/list.h"

struct item {
    int id;
    struct list link;
};

static void check(const struct list *head, const int *ids, size_t n)
{
    const struct list *at = head;
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(at->next->prev, at);
        at = at->next;
        ck_assert_int_eq(list_entry(at, const struct item, link)->id, ids[i]);
    }
    ck_assert_ptr_eq(at->next, head);
    ck_assert_ptr_eq(head->prev, at);
    ck_assert_int_eq(list_empty(head), n == 0);
}

START_TEST(order_and_removal)
{
    struct list head;
    struct item a = {1}, b = {2}, c = {3};
    list_init(&head);
    check(&head, NULL, 0);
    list_push_back(&head, &b.link);
    list_push_front(&head, &a.link);
    list_push_back(&head, &c.link);
    check(&head, (const int[]){1, 2, 3}, 3);
    list_remove(&b.link);
    check(&head, (const int[]){1, 3}, 2);
    list_remove(&b.link);
    check(&head, (const int[]){1, 3}, 2);
    list_push_front(&head, &b.link);
    check(&head, (const int[]){2, 1, 3}, 3);
    list_remove(&a.link);
    list_remove(&c.link);
    list_remove(&b.link);
    check(&head, NULL, 0);
}
END_TEST

static TCase *lists(void)
{
    TCase *tc = tcase_create("list");
    tcase_add_test(tc, order_and_removal);
    return tc;
}

UNIT_MAIN("list", lists)
