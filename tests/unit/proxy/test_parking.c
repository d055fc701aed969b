/* E6: places for requests that wait, and who may take how many. */
#include "proxy/parking.h"
#include "unit.h"

enum { MAX = 10 };

START_TEST(test_half_for_one)
{
    struct parking p;
    struct parking_place place[MAX] = {{NULL, NULL}};
    parking_init(&p, MAX);
    for (int i = 0; i < 5; i++) {
        ck_assert(parking_has_room(&p, 7));
        parking_enter(&p, 7, &place[i]);
    }
    ck_assert(!parking_has_room(&p, 7));
    /* The same bucket, another client. */
    for (int i = 5; i < MAX; i++) {
        ck_assert(parking_has_room(&p, 7 + PARKING_BUCKETS));
        parking_enter(&p, 7 + PARKING_BUCKETS, &place[i]);
    }
    ck_assert(!parking_has_room(&p, 7) && !parking_has_room(&p, 8));
    parking_leave(&place[0]);
    parking_leave(&place[0]);
    ck_assert_uint_eq(p.taken, MAX - 1);
    ck_assert(parking_has_room(&p, 7) && parking_has_room(&p, 8));
    ck_assert(!parking_has_room(&p, 7 + PARKING_BUCKETS));
    for (int i = 1; i < MAX; i++)
        parking_leave(&place[i]);
    ck_assert_uint_eq(p.taken, 0);
}
END_TEST

START_TEST(test_one_of_one)
{
    struct parking p;
    struct parking_place place = {NULL, NULL};
    parking_init(&p, 1);
    ck_assert(parking_has_room(&p, 1));
    parking_enter(&p, 1, &place);
    ck_assert(!parking_has_room(&p, 1) && !parking_has_room(&p, 2));
    parking_leave(&place);
    ck_assert(parking_has_room(&p, 2));
}
END_TEST

static TCase *tcase_parking(void)
{
    TCase *tc = tcase_create("parking");
    tcase_add_test(tc, test_half_for_one);
    tcase_add_test(tc, test_one_of_one);
    return tc;
}

UNIT_MAIN("parking", tcase_parking)
