/* Arenas: aligned, zeroed, disjoint; a reset arena serves from the memory it kept. */
#include "unit.h"

#include "core/base/arena.h"

#include <stdalign.h>
#include <stdint.h>

START_TEST(memory_is_aligned_zeroed_and_disjoint)
{
    struct arena a;
    arena_init(&a);
    unsigned char *p[200];
    for (size_t i = 0; i < 200; i++) {
        p[i] = arena_alloc(&a, i * 7 + 1);
        ck_assert_uint_eq((uintptr_t)p[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < i * 7 + 1; k++)
            ck_assert_uint_eq(p[i][k], 0);
        memset(p[i], (int)i, i * 7 + 1);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7 + 1; k++)
            ck_assert_uint_eq(p[i][k], i);
    ck_assert_uint_ge(a.total_bytes, 199 * 200 / 2 * 7);
    arena_fini(&a);
    ck_assert_ptr_null(a.head);
}
END_TEST

START_TEST(one_allocation_may_exceed_a_block)
{
    struct arena a;
    arena_init(&a);
    char *big = arena_alloc(&a, 1 << 20);
    big[(1 << 20) - 1] = 'x';
    char *small = arena_alloc(&a, 8);
    small[0] = 'y';
    ck_assert_int_eq(big[(1 << 20) - 1], 'x');
    arena_fini(&a);
}
END_TEST

START_TEST(reset_keeps_the_first_block_and_hands_it_out_zeroed)
{
    struct arena a;
    arena_init(&a);
    char *first = arena_alloc(&a, 100);
    memset(first, 'x', 100);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    arena_reset(&a);
    ck_assert_uint_eq(a.total_bytes, 0);
    char *again = arena_alloc(&a, 100);
    ck_assert_ptr_eq(again, first);
    for (size_t i = 0; i < 100; i++)
        ck_assert_int_eq(again[i], 0);
    arena_reset(&a);
    arena_fini(&a);
    arena_reset(&a);
    ck_assert_ptr_null(a.head);
}
END_TEST

START_TEST(copies_end_in_nul)
{
    struct arena a;
    arena_init(&a);
    char *s = arena_strdup(&a, SLICE("a\0b"));
    ck_assert_int_eq(memcmp(s, "a\0b", 4), 0);
    struct slice copy = arena_copy(&a, SLICE("head"));
    ck_assert(slice_eq(copy, SLICE("head")));
    ck_assert_int_eq(copy.p[4], '\0');
    ck_assert_str_eq(arena_strdup(&a, SLICE_NONE), "");
    arena_fini(&a);
}
END_TEST

static TCase *arenas(void)
{
    TCase *tc = tcase_create("arena");
    tcase_add_test(tc, memory_is_aligned_zeroed_and_disjoint);
    tcase_add_test(tc, one_allocation_may_exceed_a_block);
    tcase_add_test(tc, reset_keeps_the_first_block_and_hands_it_out_zeroed);
    tcase_add_test(tc, copies_end_in_nul);
    return tc;
}

UNIT_MAIN("arena", arenas)
