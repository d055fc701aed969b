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

/* It is waited for once, not each time; and when it comes back it is not flooded. */
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
    ck_assert_uint_eq(delays, 1);
    h.asleep = 0;
    h.now_ns += NS_PER_S;
    ck_assert(roster_may_accept(h.r, 2, h.now_ns)); /* woken by the next connection */
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

/* --- late workers --- */

#define ACCEPT_NS (50 * NS_PER_MS / 1000)
#define REST_NS (2 * NS_PER_MS)

/* One socket, and workers that look at it as listener.c does, each when it gets to run. */
struct late {
    struct hall hall;
    struct rng rng;
    unsigned backlog, rests;
    struct {
        int64_t late_ns; /* it comes up to so much too late */
        int64_t next_ns; /* when it comes; 0: nothing to do */
        bool rested, more;
    } worker[WORKERS];
};

static void late_open(struct late *l, const int late_ms[WORKERS], uint64_t seed)
{
    *l = (struct late){.backlog = 0};
    rng_seed(&l->rng, (const uint64_t[]){seed, 2, 3, 4});
    hall_open(&l->hall);
    for (unsigned i = 0; i < WORKERS; i++)
        l->worker[i].late_ns = late_ms[i] * NS_PER_MS;
}

static void come_at(struct late *l, unsigned i, int64_t at_ns)
{
    double part = rng_unit(&l->rng);
    l->worker[i].next_ns = at_ns + (int64_t)(part * (double)l->worker[i].late_ns);
}

static void burst(struct late *l, unsigned n)
{
    l->backlog += n;
    for (unsigned i = 0; i < WORKERS; i++)
        if (l->worker[i].next_ns == 0)
            come_at(l, i, l->hall.now_ns);
}

static void come(struct late *l, unsigned i)
{
    struct hall *h = &l->hall;
    bool rested = l->worker[i].rested, more = l->worker[i].more;
    bool yields = !roster_may_accept(h->r, i, h->now_ns);
    l->worker[i].rested = l->worker[i].more = false;
    l->worker[i].next_ns = 0;
    if (l->backlog == 0)
        return;
    if (yields && !rested) {
        l->worker[i].rested = !more;
        l->rests += !more;
        come_at(l, i, h->now_ns + (more ? 0 : REST_NS));
        return;
    }
    if (yields)
        roster_overdue(h->r, i, h->now_ns);
    roster_accepted(h->r, i);
    roster_count(h->r, i, ++h->open[i]);
    l->backlog--;
    l->worker[i].more = true;
    l->worker[i].next_ns = h->now_ns + ACCEPT_NS;
}

/* Until all are in; how long it took. */
static int64_t let_in(struct late *l)
{
    int64_t began_ns = l->hall.now_ns;
    while (l->backlog > 0) {
        unsigned next = WORKERS;
        for (unsigned i = 0; i < WORKERS; i++)
            if (l->worker[i].next_ns != 0 &&
                (next == WORKERS || l->worker[i].next_ns < l->worker[next].next_ns))
                next = i;
        ck_assert_uint_lt(next, WORKERS);
        if (l->worker[next].next_ns > l->hall.now_ns)
            l->hall.now_ns = l->worker[next].next_ns;
        come(l, next);
    }
    return l->hall.now_ns - began_ns;
}

static const int lateness[][WORKERS] = {
    {0, 0, 0, 0}, {20, 20, 20, 20}, {0, 40, 40, 40}, {1, 100, 100, 100}, {0, 0, 0, 100}};

/* One burst of connections that stay, on a machine that is busy. */
START_TEST(a_burst)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct late l;
        late_open(&l, lateness[_i], seed);
        burst(&l, 200);
        int64_t took_ns = let_in(&l);
        const unsigned *n = l.hall.open;
        for (unsigned i = 0; i < WORKERS; i++)
            ck_assert_msg(n[i] >= 12 && n[i] <= 85, "%d, seed %u: %u %u %u %u", _i, (unsigned)seed,
                          n[0], n[1], n[2], n[3]);
        ck_assert_int_le(took_ns, 250 * NS_PER_MS);
        roster_free(l.hall.r);
    }
}
END_TEST

/* One that is stuck delays the connections of a quarter of a second, and then none. */
START_TEST(a_burst_while_one_is_stuck)
{
    struct late l;
    late_open(&l, (const int[WORKERS]){0, 0, 0, 3600000}, 1);
    burst(&l, 1000);
    ck_assert_int_le(let_in(&l), 300 * NS_PER_MS);
    unsigned rests = l.rests;
    for (int i = 0; i < 100; i++) {
        burst(&l, 10);
        let_in(&l);
        l.hall.now_ns += NS_PER_MS;
    }
    ck_assert_uint_le(l.rests - rests, 20);
    roster_free(l.hall.r);
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
    tcase_add_loop_test(tc, a_burst, 0, sizeof lateness / sizeof lateness[0]);
    tcase_add_test(tc, a_burst_while_one_is_stuck);
    return tc;
}

UNIT_MAIN("roster", tcase_roster)
