/* J7: slots: never more than the cap, first come first served, nobody waits for ever, everybody may
 * leave. */
#include "core/base/rng.h"
#include "io/net/slots.h"
#include "net_test.h"

enum { MAX_ASKERS = 64 };

struct asker {
    struct slot slot;
    int granted, refused; /* how often it was told */
    unsigned order;
};

struct fixture {
    struct loop *l;
    struct slots *all;
    struct asker asker[MAX_ASKERS];
};

static unsigned told;

static void on_slot(void *arg, bool granted)
{
    struct asker *a = arg;
    *(granted ? &a->granted : &a->refused) += 1;
    a->order = ++told;
}

static void start(struct fixture *f, unsigned cap, unsigned waiters, int64_t wait_ns)
{
    *f = (struct fixture){.l = make_loop()};
    told = 0;
    f->all = slots_new(f->l, (struct hash_key){1, 2}, cap, waiters, wait_ns);
}

static void finish(struct fixture *f)
{
    for (int i = 0; i < MAX_ASKERS; i++)
        slots_leave(&f->asker[i].slot);
    ck_assert_uint_eq(slots_held(f->all), 0);
    ck_assert_uint_eq(slots_waiting(f->all), 0);
    slots_free(f->all);
    loop_free(f->l);
}

static enum slots_answer ask(struct fixture *f, const char *key, int i)
{
    return slots_ask(f->all, slice_str(key), &f->asker[i].slot, on_slot, &f->asker[i]);
}

START_TEST(test_cap_of_each_origin)
{
    struct fixture f;
    start(&f, 2, 8, NS_PER_S);
    ck_assert_int_eq(ask(&f, "s3", 0), SLOTS_GRANTED);
    ck_assert_int_eq(ask(&f, "s3", 1), SLOTS_GRANTED);
    ck_assert_int_eq(ask(&f, "s3", 2), SLOTS_WAIT);
    ck_assert_int_eq(ask(&f, "sqs", 3), SLOTS_GRANTED);
    ck_assert_uint_eq(slots_held(f.all), 3);
    ck_assert_uint_eq(slots_waiting(f.all), 1);
    slots_leave(&f.asker[3].slot); /* another origin's: of no use to it */
    settle(f.l);
    ck_assert_int_eq(f.asker[2].granted, 0);
    slots_leave(&f.asker[0].slot);
    ck_assert_int_eq(f.asker[2].granted, 0); /* not from within */
    settle(f.l);
    ck_assert_int_eq(f.asker[2].granted, 1);
    ck_assert_uint_eq(slots_held(f.all), 2);
    finish(&f);
}
END_TEST

START_TEST(test_first_come_first_served)
{
    struct fixture f;
    start(&f, 1, MAX_ASKERS, NS_PER_S);
    for (int i = 0; i < 6; i++)
        ask(&f, "s3", i);
    slots_leave(&f.asker[3].slot); /* one from the middle goes */
    slots_leave(&f.asker[0].slot);
    ck_assert_int_eq(ask(&f, "s3", 7), SLOTS_WAIT); /* it is the next one's already */
    const int order[] = {1, 2, 4, 5, 7};
    for (unsigned i = 0; i < 5; i++) {
        settle(f.l);
        ck_assert_int_eq(f.asker[order[i]].granted, 1);
        ck_assert_uint_eq(f.asker[order[i]].order, i + 1);
        slots_leave(&f.asker[order[i]].slot);
    }
    settle(f.l);
    ck_assert_uint_eq(told, 5);
    finish(&f);
}
END_TEST

/* Between the grant and the word of it. */
START_TEST(test_leaves_before_it_is_told)
{
    struct fixture f;
    start(&f, 1, 8, NS_PER_S);
    for (int i = 0; i < 3; i++)
        ask(&f, "s3", i);
    slots_leave(&f.asker[0].slot);
    slots_leave(&f.asker[1].slot);
    settle(f.l);
    ck_assert_int_eq(f.asker[1].granted, 0);
    ck_assert_int_eq(f.asker[2].granted, 1);
    finish(&f);
}
END_TEST

START_TEST(test_bounds_of_waiting)
{
    struct fixture f;
    start(&f, 1, 2, 30 * NS_PER_MS);
    ask(&f, "s3", 0);
    ask(&f, "sqs", 1);
    ck_assert_int_eq(ask(&f, "s3", 2), SLOTS_WAIT);
    ck_assert_int_eq(ask(&f, "sqs", 3), SLOTS_WAIT);
    ck_assert_int_eq(ask(&f, "s3", 4), SLOTS_FULL);
    slots_leave(&f.asker[2].slot); /* the timer is set for one that has left */
    ck_assert_int_eq(ask(&f, "s3", 5), SLOTS_WAIT);
    run_for(f.l, 200 * NS_PER_MS);
    ck_assert_int_eq(f.asker[2].refused, 0);
    ck_assert_int_eq(f.asker[3].refused, 1);
    ck_assert_int_eq(f.asker[4].refused, 0); /* that was said at once */
    ck_assert_int_eq(f.asker[5].refused, 1);
    ck_assert_uint_eq(slots_waiting(f.all), 0);
    finish(&f);
}
END_TEST

START_TEST(test_handed_over)
{
    struct fixture f;
    start(&f, 1, 8, NS_PER_S);
    ask(&f, "s3", 0);
    ask(&f, "s3", 1);
    slots_hand_over(&f.asker[0].slot, &f.asker[2].slot);
    slots_leave(&f.asker[0].slot);
    settle(f.l);
    ck_assert_int_eq(f.asker[1].granted, 0);
    slots_leave(&f.asker[2].slot);
    settle(f.l);
    ck_assert_int_eq(f.asker[1].granted, 1);
    finish(&f);
}
END_TEST

/* Anybody asks and leaves at any time: counts stay exact, the cap holds, and while one waits the
 * cap is used up. */
START_TEST(test_walk)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct fixture f;
    struct rng rng;
    rng_seed(&rng, (uint64_t[4]){1, 2, 3, 4});
    start(&f, 3, 20, NS_PER_S);
    for (int n = 0; n < 20000; n++) {
        int i = (int)(rng_u64(&rng) % MAX_ASKERS);
        if (f.asker[i].slot.state == SLOT_NONE)
            ask(&f, keys[i % 3], i);
        else
            slots_leave(&f.asker[i].slot);
        if (n % 1000 == 0)
            settle(f.l);
        unsigned held[3] = {0}, waiting[3] = {0};
        for (int k = 0; k < MAX_ASKERS; k++) {
            enum slot_state s = f.asker[k].slot.state;
            held[k % 3] += s == SLOT_HELD || s == SLOT_GRANTED;
            waiting[k % 3] += s == SLOT_WAITING;
        }
        for (int k = 0; k < 3; k++)
            ck_assert(held[k] <= 3 && (waiting[k] == 0 || held[k] == 3));
        ck_assert_uint_eq(slots_held(f.all), held[0] + held[1] + held[2]);
        ck_assert_uint_eq(slots_waiting(f.all), waiting[0] + waiting[1] + waiting[2]);
        ck_assert_uint_le(slots_waiting(f.all), 20);
    }
    finish(&f);
}
END_TEST

static TCase *tcase_slots(void)
{
    TCase *tc = tcase_create("slots");
    tcase_add_test(tc, test_cap_of_each_origin);
    tcase_add_test(tc, test_first_come_first_served);
    tcase_add_test(tc, test_leaves_before_it_is_told);
    tcase_add_test(tc, test_bounds_of_waiting);
    tcase_add_test(tc, test_handed_over);
    tcase_add_test(tc, test_walk);
    return tc;
}

UNIT_MAIN("slots", tcase_slots)
