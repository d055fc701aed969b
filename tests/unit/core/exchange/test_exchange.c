/* Events that make no sense in a state are broken invariants: each such pair must end the process.
 * The stories are in tests/play, the invariants in test_walk.c. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"
#include "legal.h"
#include <signal.h>

enum { EVENTS = XEV_CLIENT_GONE + 1, STATES = XST_DONE + 1 };

static double zero(void *state)
{
    (void)state;
    return 0.0;
}

static int64_t any_delay(void *arg, int64_t now_ns)
{
    (void)arg, (void)now_ns;
    return INT64_MAX;
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static int64_t wait_a_second(struct budget *b, int64_t now_ns)
{
    (void)b, (void)now_ns;
    return 1000000000;
}

struct scene {
    struct retry_policy policy;
    struct membudget budget;
    struct budget_ops ops;
    struct xch x;
    struct xch_acts acts;
};

static void feed(struct scene *s, enum xch_event_kind kind, unsigned status)
{
    const struct xch_event ev = {.kind = kind, .peek = status == 0, .outcome = {.status = status}};
    xch_step(&s->x, &ev, 0, &s->acts);
}

/* Brings a new exchange to the state by the shortest way. */
static void reach(struct scene *s, enum xch_state state)
{
    *s = (struct scene){.policy = retry_policy_standard_21};
    membudget_init(&s->budget);
    s->ops = *s->budget.base.ops;
    s->budget.base.ops = &s->ops;
    if (state == XST_ADMIT) {
        s->policy.mode = RETRY_MODE_ADAPTIVE;
        s->ops.admit = wait_a_second;
    }
    if (state == XST_PENALTY) {
        s->policy.long_poll = true;
        s->budget.debt = s->policy.quota_capacity;
    }
    const struct xch_env env = {.policy = &s->policy,
                                .budget = &s->budget.base,
                                .rng = {zero, NULL},
                                .max_delay_ns = any_delay,
                                .can_park = always};
    xch_init(&s->x, &env, true);
    if (state == XST_NEW)
        return;
    feed(s, XEV_START, 0);
    if (state == XST_ADMIT || state == XST_DIAL)
        return;
    feed(s, XEV_UP, 0);
    if (state == XST_SEND)
        return;
    feed(s, XEV_SENT, 0);
    if (state == XST_WAIT)
        return;
    if (state == XST_PEEK)
        feed(s, XEV_HEAD, 0);
    else
        feed(s, XEV_HEAD, state == XST_BACKOFF || state == XST_PENALTY ? 503 : 200);
    if (state == XST_DONE)
        feed(s, XEV_END, 0);
}

static enum xch_state state_of(int pair)
{
    return (enum xch_state)(pair / EVENTS);
}

static enum xch_event_kind event_of(int pair)
{
    return (enum xch_event_kind)(pair % EVENTS);
}

START_TEST(every_state_can_be_reached)
{
    struct scene s;
    reach(&s, (enum xch_state)_i);
    ck_assert_str_eq(xch_state_name(s.x.state), xch_state_name((enum xch_state)_i));
}
END_TEST

START_TEST(refuses_nonsense)
{
    struct scene s;
    reach(&s, state_of(_i));
    feed(&s, event_of(_i), 200);
}
END_TEST

START_TEST(client_gone_ends_every_state)
{
    struct scene s;
    reach(&s, (enum xch_state)_i);
    bool conn = s.x.conn, was_done = s.x.state == XST_DONE;
    bool timer = _i == XST_ADMIT || _i == XST_BACKOFF || _i == XST_PENALTY;
    feed(&s, XEV_CLIENT_GONE, 0);
    ck_assert_int_eq(s.x.state, XST_DONE);
    ck_assert(!s.acts.judged);
    ck_assert_uint_eq(s.acts.n, was_done ? 0 : 1u + conn + timer);
    if (was_done)
        return;
    ck_assert_int_eq(s.acts.v[s.acts.n - 1].kind, XACT_FINISH);
    if (conn)
        ck_assert_int_eq(s.acts.v[0].kind, XACT_DROP);
    if (timer)
        ck_assert_int_eq(s.acts.v[s.acts.n - 2].kind, XACT_DISARM);
}
END_TEST

/* Security requirement E1: attempts never pass the maximum, 1 and 100 included. */
START_TEST(attempts_end_at_the_maximum)
{
    static const unsigned maxima[] = {1, 2, 3, 100};
    struct scene s;
    reach(&s, XST_NEW);
    s.policy.max_attempts = maxima[_i];
    s.policy.quota_capacity = 100000;
    unsigned dials = 0;
    feed(&s, XEV_START, 0);
    while (s.x.state != XST_DONE) {
        const struct xch_event fail = {.kind = XEV_FAIL, .outcome = {.failure = RETRY_FAIL_DNS}};
        dials++;
        xch_step(&s.x, &fail, 0, &s.acts);
        if (s.x.state == XST_BACKOFF)
            feed(&s, XEV_TIMER, 0);
    }
    ck_assert_uint_eq(dials, maxima[_i]);
    ck_assert_uint_eq(s.x.run.attempts, maxima[_i]);
}
END_TEST

static TCase *exchange(void)
{
    TCase *tc = tcase_create("exchange");
    tcase_add_loop_test(tc, every_state_can_be_reached, 0, STATES);
    for (int pair = 0; pair < STATES * EVENTS; pair++)
        if (!legal_event(state_of(pair), event_of(pair)))
            tcase_add_loop_test_raise_signal(tc, refuses_nonsense, SIGABRT, pair, pair + 1);
    tcase_add_loop_test(tc, client_gone_ends_every_state, 0, STATES);
    tcase_add_loop_test(tc, attempts_end_at_the_maximum, 0, 4);
    return tc;
}

UNIT_MAIN("exchange", exchange)
