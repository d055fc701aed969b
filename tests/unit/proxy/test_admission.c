/* Send tokens among the workers of one daemon, in simulated time: clients in closed loops, one
 * upstream client, an origin that serves so many a second and throttles the rest. */
#include "core/base/rng.h"
#include "core/base/units.h"
#include "io/shm/budgets.h"
#include "proxy/admission.h"
#include "unit.h"

enum { WORKERS = 4, CLIENTS_MAX = 120, RATE = 100 };

#define BEGIN_NS (1000 * NS_PER_S)
#define NEVER INT64_MAX

enum phase { WANTS, SENT };

struct client {
    struct admission_ticket ticket;
    struct world *world;
    enum phase phase;
    int64_t due_ns;
    unsigned worker, served;
};

struct worker {
    struct admission admission;
    struct budgets *budgets;
    int seat;
    int64_t late_ns;          /* it comes up to so much after what is due; this time so much, */
    int64_t lag_ns;           /* or -1: not drawn yet */
    int64_t away_ns, back_ns; /* it does nothing from the one to the other */
};

struct world {
    struct region *region;
    struct worker workers[WORKERS];
    struct client clients[CLIENTS_MAX];
    unsigned n_clients;
    struct rng rng;
    int64_t now_ns, filled_ns;
    double tokens; /* of the origin */
    unsigned sends, throttled, asked;
};

static double unit_rand(struct world *w)
{
    return rng_unit(&w->rng);
}

static void on_wake(void *arg)
{
    struct client *c = arg;
    c->due_ns = c->world->now_ns;
}

static void open_world(struct world *w)
{
    struct err err;
    *w = (struct world){.now_ns = BEGIN_NS, .filled_ns = BEGIN_NS, .tokens = RATE};
    rng_seed(&w->rng, (const uint64_t[]){5, 6, 7, 8});
    w->region = region_open(&(struct region_options){0}, &err);
    ck_assert_ptr_nonnull(w->region);
    for (unsigned i = 0; i < WORKERS; i++) {
        w->workers[i].seat = region_seat_claim(w->region);
        w->workers[i].budgets = budgets_new(w->region, w->workers[i].seat);
        w->workers[i].away_ns = w->workers[i].back_ns = NEVER;
        w->workers[i].lag_ns = -1;
        admission_init(&w->workers[i].admission);
    }
}

static void add_clients(struct world *w, unsigned worker, unsigned n)
{
    struct worker *home = &w->workers[worker];
    for (unsigned i = 0; i < n; i++) {
        struct client *c = &w->clients[w->n_clients++];
        struct budget *b =
            budgets_acquire(home->budgets, slice_str("key"), slice_str("label"), w->now_ns);
        *c = (struct client){.world = w, .worker = worker, .due_ns = w->now_ns};
        admission_ticket_init(&c->ticket, &home->admission, b, on_wake, c);
    }
}

static void close_world(struct world *w)
{
    for (unsigned i = 0; i < w->n_clients; i++) {
        admission_leave(&w->clients[i].ticket);
        budgets_release(w->clients[i].ticket.budget);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        budgets_free(w->workers[i].budgets);
    region_close(w->region);
}

static bool origin_serves(struct world *w)
{
    w->tokens += (double)(w->now_ns - w->filled_ns) / 1e9 * RATE;
    w->tokens = w->tokens < RATE ? w->tokens : RATE;
    w->filled_ns = w->now_ns;
    if (w->tokens < 1)
        return false;
    w->tokens -= 1;
    return true;
}

static void act(struct world *w, struct client *c)
{
    struct budget *b = &c->ticket.base;
    if (c->phase == SENT) {
        bool served = origin_serves(w);
        b->ops->observe(b, !served, w->now_ns);
        c->served += served;
        w->throttled += !served;
        c->phase = WANTS;
        c->due_ns = w->now_ns + (served ? 0 : (int64_t)(unit_rand(w) * 5e7));
        return;
    }
    w->asked++;
    int64_t wait_ns = b->ops->admit(b, w->now_ns);
    if (wait_ns > 0) {
        c->due_ns = w->now_ns + wait_ns;
        return;
    }
    w->sends++;
    c->phase = SENT;
    c->due_ns = w->now_ns + (int64_t)(5e6 * (1 + unit_rand(w) / 5));
}

static int64_t first_due_ns(const struct world *w, unsigned worker)
{
    int64_t first_ns = NEVER;
    for (unsigned i = 0; i < w->n_clients; i++)
        if (w->clients[i].worker == worker && w->clients[i].due_ns < first_ns)
            first_ns = w->clients[i].due_ns;
    return first_ns;
}

/* When the worker looks after what is due. */
static int64_t turn_ns(struct world *w, unsigned worker)
{
    struct worker *home = &w->workers[worker];
    int64_t due_ns = first_due_ns(w, worker);
    if (due_ns == NEVER)
        return NEVER;
    if (home->lag_ns < 0)
        home->lag_ns = (int64_t)(unit_rand(w) * (double)home->late_ns);
    due_ns += home->lag_ns;
    return due_ns >= home->away_ns && due_ns < home->back_ns ? home->back_ns : due_ns;
}

/* All that is due, also what becomes so by it. */
static void take_turn(struct world *w, unsigned worker)
{
    while (first_due_ns(w, worker) <= w->now_ns)
        for (unsigned i = 0; i < w->n_clients; i++)
            if (w->clients[i].worker == worker && w->clients[i].due_ns <= w->now_ns)
                act(w, &w->clients[i]);
    w->workers[worker].lag_ns = -1;
}

static void run(struct world *w, double seconds)
{
    int64_t end_ns = w->now_ns + (int64_t)(seconds * 1e9);
    for (;;) {
        unsigned next = 0;
        int64_t at_ns = NEVER;
        for (unsigned i = 0; i < WORKERS; i++) {
            int64_t turn = turn_ns(w, i);
            if (turn < at_ns) {
                at_ns = turn;
                next = i;
            }
        }
        if (at_ns > end_ns)
            break;
        w->now_ns = at_ns > w->now_ns ? at_ns : w->now_ns;
        take_turn(w, next);
    }
    w->now_ns = end_ns;
}

static void forget(struct world *w)
{
    w->sends = w->throttled = w->asked = 0;
    for (unsigned i = 0; i < w->n_clients; i++)
        w->clients[i].served = 0;
}

/* The best served client against the worst. */
static double spread(const struct world *w)
{
    unsigned least = UINT32_MAX, most = 0;
    for (unsigned i = 0; i < w->n_clients; i++) {
        least = w->clients[i].served < least ? w->clients[i].served : least;
        most = w->clients[i].served > most ? w->clients[i].served : most;
    }
    return (double)most / (least > 0 ? least : 0.5);
}

static const unsigned crowds[][WORKERS] = {
    {20, 20, 20, 20}, {60, 20, 0, 0}, {77, 1, 1, 1}, {1, 97, 1, 1}, {100, 0, 0, 0}};

/* The sends of 40 s. */
static unsigned try_crowd(const unsigned crowd[WORKERS], int64_t late_ns, double bound)
{
    struct world w;
    open_world(&w);
    for (unsigned i = 0; i < WORKERS; i++) {
        add_clients(&w, i, crowd[i]);
        w.workers[i].late_ns = late_ns;
    }
    run(&w, 20);
    forget(&w);
    run(&w, 40);
    ck_assert_msg(spread(&w) <= bound, "%u %u %u %u, late %.0f ms: %.2f", crowd[0], crowd[1],
                  crowd[2], crowd[3], (double)late_ns / 1e6, spread(&w));
    ck_assert_uint_lt(w.throttled, w.sends / 20);
    ck_assert_uint_lt(w.asked, 12 * w.sends);
    unsigned sends = w.sends;
    close_world(&w);
    return sends;
}

START_TEST(every_client_is_served_alike_wherever_it_is)
{
    unsigned sends = try_crowd(crowds[_i], 0, 1.3);
    ck_assert_uint_ge(sends, 40 * RATE * 95 / 100);
    ck_assert_uint_le(sends, 40 * RATE * 105 / 100);
}
END_TEST

/* Each worker comes up to so much too late, as on a busy machine. */
START_TEST(also_where_workers_are_late)
{
    unsigned sends = try_crowd(crowds[_i], 10 * NS_PER_MS, 1.5);
    ck_assert_uint_ge(sends, 40 * RATE * 95 / 100);
}
END_TEST

/* A worker that stands still keeps nobody waiting, and gets its turn when it is back. */
START_TEST(one_that_stands_still)
{
    struct world w;
    open_world(&w);
    for (unsigned i = 0; i < WORKERS; i++)
        add_clients(&w, i, 20);
    run(&w, 20);
    w.workers[1].away_ns = w.now_ns;
    w.workers[1].back_ns = w.now_ns + 20 * NS_PER_S;
    forget(&w);
    run(&w, 20);
    ck_assert_uint_ge(w.sends, 20 * RATE * 90 / 100);
    for (unsigned i = 0; i < w.n_clients; i++)
        ck_assert(w.clients[i].worker == 1 ? w.clients[i].served == 0 : w.clients[i].served >= 20);
    forget(&w);
    run(&w, 20);
    ck_assert_uint_ge(w.sends, 20 * RATE * 90 / 100);
    ck_assert_msg(spread(&w) <= 1.5, "%.2f", spread(&w));
    close_world(&w);
}
END_TEST

/* Nobody waits for the waiters of a dead one. */
START_TEST(one_that_died)
{
    struct world w;
    open_world(&w);
    add_clients(&w, 0, 20);
    add_clients(&w, 1, 20);
    run(&w, 20);
    w.workers[0].away_ns = w.now_ns;
    region_seat_release(w.region, w.workers[0].seat);
    forget(&w);
    run(&w, 20);
    ck_assert_uint_ge(w.sends, 20 * RATE * 90 / 100);
    ck_assert_uint_lt(w.asked, 6 * w.sends);
    close_world(&w);
}
END_TEST

static struct budget *in_line(struct world *w, struct client *c, unsigned worker)
{
    *c = (struct client){.world = w, .worker = worker, .due_ns = NEVER};
    struct worker *home = &w->workers[worker];
    admission_ticket_init(
        &c->ticket, &home->admission,
        budgets_acquire(home->budgets, slice_str("key"), slice_str("label"), w->now_ns), on_wake,
        c);
    return &c->ticket.base;
}

static void leave(struct client *c)
{
    admission_leave(&c->ticket);
    budgets_release(c->ticket.budget);
}

/* Step by step: the younger leaves the token to the older, for so long and no longer. */
START_TEST(patience)
{
    struct world w;
    struct client a, b;
    open_world(&w);
    struct budget *old = in_line(&w, &a, 0), *young = in_line(&w, &b, 1);
    int64_t t = BEGIN_NS;
    ck_assert_int_eq(old->ops->admit(old, t), 0);
    old->ops->observe(old, true, t); /* from now on half a token a second */
    int64_t wait_ns = old->ops->admit(old, t);
    ck_assert_int_eq(wait_ns, 250 * NS_PER_MS);
    t += NS_PER_MS;
    ck_assert_int_eq(young->ops->admit(young, t), 250 * NS_PER_MS);
    for (t += 250 * NS_PER_MS; old->ops->admit(old, t) != 0; t += 125 * NS_PER_MS)
        ck_assert_int_eq(young->ops->admit(young, t) > 2 * NS_PER_MS, true);
    ck_assert_int_gt(young->ops->admit(young, t), 2 * NS_PER_MS);

    /* The older one wants another, and is now the younger. */
    ck_assert_int_gt(old->ops->admit(old, t), 0);
    while (budgets_token_wait(b.ticket.budget, t) > 0) {
        t += 100 * NS_PER_MS;
        young->ops->admit(young, t); /* takes it once it is there */
        if (b.ticket.queue == NULL)
            break;
        ck_assert_ptr_nonnull(a.ticket.queue);
        old->ops->admit(old, t);
    }
    ck_assert_ptr_null(b.ticket.queue);
    ck_assert_ptr_nonnull(a.ticket.queue);

    /* And does not come when the next is there: the other yields, but not for ever. */
    old->ops->admit(old, t);
    ck_assert_int_gt(young->ops->admit(young, t), 0);
    while (budgets_token_wait(b.ticket.budget, t) > 250 * NS_PER_MS) {
        t += 250 * NS_PER_MS;
        old->ops->admit(old, t);
    }
    t += budgets_token_wait(b.ticket.budget, t);
    int64_t there_ns = t;
    while ((wait_ns = young->ops->admit(young, t)) != 0) {
        ck_assert_int_eq(wait_ns, 2 * NS_PER_MS);
        t += wait_ns;
    }
    ck_assert_int_eq(t - there_ns, 20 * NS_PER_MS);

    /* Nor is it waited for again before it has been seen. */
    ck_assert_int_gt(young->ops->admit(young, t), 2 * NS_PER_MS);
    while (budgets_token_wait(b.ticket.budget, t) > 0)
        t += 250 * NS_PER_MS;
    ck_assert_int_eq(young->ops->admit(young, t), 0);
    leave(&a);
    leave(&b);
    close_world(&w);
}
END_TEST

static TCase *tcase_admission(void)
{
    TCase *tc = tcase_create("admission");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_client_is_served_alike_wherever_it_is, 0,
                        sizeof crowds / sizeof crowds[0]);
    tcase_add_loop_test(tc, also_where_workers_are_late, 0, sizeof crowds / sizeof crowds[0]);
    tcase_add_test(tc, one_that_stands_still);
    tcase_add_test(tc, one_that_died);
    tcase_add_test(tc, patience);
    return tc;
}

UNIT_MAIN("admission", tcase_admission)
