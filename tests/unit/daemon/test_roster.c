/* Whose turn it is to accept. The workers of a test ask in an unfair order, as a kernel wakes them.
 */
#include "core/base/rng.h"
#include "core/base/units.h"
#include "daemon/roster.h"
#include "unit.h"

enum { WORKERS = 4 };

struct hall {
    struct roster *r;
    unsigned open[WORKERS], taken[WORKERS];
    int64_t now_ns;
    unsigned asleep; /* set of workers that do not come */
};

static void hall_open(struct hall *h)
{
    struct err err;
    h->r = roster_new(WORKERS, &err);
    ck_assert_ptr_nonnull(h->r);
    for (unsigned i = 0; i < WORKERS; i++)
        roster_enter(h->r, i);
    h->now_ns = NS_PER_S;
}

/* One connection: the first who may takes it; after a rest the first who comes. Returns who. */
static unsigned knock(struct hall *h, bool *delayed)
{
    unsigned taker = WORKERS;
    *delayed = false;
    for (unsigned i = 0; i < WORKERS && taker == WORKERS; i++)
        if (!(h->asleep >> i & 1) && roster_may_accept(h->r, i, h->now_ns))
            taker = i;
    for (unsigned i = 0; i < WORKERS && taker == WORKERS; i++) {
        if (h->asleep >> i & 1)
            continue;
        *delayed = true;
        h->now_ns += 2 * NS_PER_MS;
        roster_overdue(h->r, i, h->now_ns);
        taker = i;
    }
    ck_assert_uint_lt(taker, WORKERS);
    roster_accepted(h->r, taker);
    h->taken[taker]++;
    roster_count(h->r, taker, ++h->open[taker]);
    return taker;
}

static void leave(struct hall *h, unsigned who)
{
    roster_count(h->r, who, --h->open[who]);
}

static void assert_balanced(const unsigned n[WORKERS])
{
    unsigned least = n[0], most = n[0];
    for (unsigned i = 1; i < WORKERS; i++) {
        least = n[i] < least ? n[i] : least;
        most = n[i] > most ? n[i] : most;
    }
    ck_assert_msg(most <= 2 * least, "%u %u %u %u", n[0], n[1], n[2], n[3]);
}

START_TEST(those_that_stay)
{
    struct hall h = {0};
    bool delayed;
    hall_open(&h);
    for (int i = 0; i < 40; i++) {
        knock(&h, &delayed);
        ck_assert(!delayed);
    }
    assert_balanced(h.open);
    ck_assert_uint_eq(roster_count(h.r, 0, h.open[0]), 40);
    roster_free(h.r);
}
END_TEST

START_TEST(those_that_go_at_once)
{
    struct hall h = {0};
    bool delayed;
    hall_open(&h);
    for (int i = 0; i < 2000; i++) {
        leave(&h, knock(&h, &delayed));
        ck_assert(!delayed);
    }
    assert_balanced(h.taken);
    roster_free(h.r);
}
END_TEST

START_TEST(a_mixture)
{
    struct hall h = {0};
    struct rng rng;
    unsigned who[300], n = 0;
    bool delayed;
    rng_seed(&rng, (const uint64_t[]){1, 2, 3, 4});
    hall_open(&h);
    for (int i = 0; i < 20000; i++) {
        if (n < 300 && rng_unit(&rng) < 0.5) {
            who[n++] = knock(&h, &delayed);
            ck_assert(!delayed);
        } else if (n > 0) {
            unsigned at = (unsigned)(rng_unit(&rng) * n);
            leave(&h, who[at]);
            who[at] = who[--n];
        }
    }
    assert_balanced(h.taken);
    roster_free(h.r);
}
END_TEST

/* It is waited for once in a while, not each time; and when it comes back it is not flooded. */
START_TEST(one_that_does_not_come)
{
    struct hall h = {.asleep = 1 << 2};
    unsigned delays = 0, before;
    bool delayed;
    hall_open(&h);
    for (int i = 0; i < 1000; i++) {
        leave(&h, knock(&h, &delayed));
        delays += delayed;
        h.now_ns += NS_PER_MS;
    }
    ck_assert_uint_eq(h.taken[2], 0);
    ck_assert_uint_ge(delays, 5);
    ck_assert_uint_le(delays, 12); /* in a second, with 100 ms between */
    h.asleep = 0;
    h.now_ns += NS_PER_S;
    before = h.taken[2];
    for (int i = 0; i < 400; i++)
        leave(&h, knock(&h, &delayed));
    ck_assert_uint_ge(h.taken[2] - before, 100);
    ck_assert_uint_le(h.taken[2] - before, 200);
    roster_free(h.r);
}
END_TEST

START_TEST(one_that_died_is_not_waited_for)
{
    struct hall h = {.asleep = 1 << 1};
    bool delayed;
    hall_open(&h);
    roster_leave(h.r, 1);
    for (int i = 0; i < 100; i++) {
        knock(&h, &delayed);
        ck_assert(!delayed);
    }
    ck_assert_uint_eq(h.open[1], 0);
    /* Its successor has no connections: it gets them until it has as many as the others. */
    h.asleep = 0;
    roster_enter(h.r, 1);
    for (int i = 0; i < 33; i++)
        ck_assert(knock(&h, &delayed) == 1 || h.open[1] >= 28);
    assert_balanced(h.open);
    roster_free(h.r);
}
END_TEST

static TCase *tcase_roster(void)
{
    TCase *tc = tcase_create("roster");
    tcase_add_test(tc, those_that_stay);
    tcase_add_test(tc, those_that_go_at_once);
    tcase_add_test(tc, a_mixture);
    tcase_add_test(tc, one_that_does_not_come);
    tcase_add_test(tc, one_that_died_is_not_waited_for);
    return tc;
}

UNIT_MAIN("roster", tcase_roster)
