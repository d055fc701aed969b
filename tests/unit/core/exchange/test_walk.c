/* Random walks of the machine through the hostile environment: 300,000 exchanges, every invariant
 * asserted at every step, and a proof that the walks went everywhere the machine can go. */
#include "unit.h"

#include "core/base/rng.h"
#include "hostile.h"
#include "legal.h"

enum { WALKS = 300000, STEPS_MAX = 400 };

struct visits {
    unsigned pair[XST_DONE + 1][XEV_CLIENT_GONE + 1];
    unsigned why[VERDICT_WILL_RETRY + 1];
    unsigned action[XACT_FINISH + 1];
    unsigned stale, penalties, kept_for_retry;
};

static unsigned pick(void *arg, unsigned n)
{
    return (unsigned)((rng_u64(arg) >> 32) * n >> 32);
}

static void walk(struct rng *rng, struct visits *seen)
{
    struct hostile h;
    struct xch_acts acts;
    hostile_init(&h, (struct picker){pick, rng});
    for (int step = 0; !h.finished; step++) {
        enum xch_event_kind kind = step < STEPS_MAX ? hostile_next(&h) : XEV_CLIENT_GONE;
        seen->pair[h.x.state][kind]++;
        hostile_feed(&h, kind, &acts);
        if (acts.judged) {
            seen->why[acts.verdict.why]++;
            seen->penalties += acts.verdict.what == VERDICT_PENALTY;
            seen->kept_for_retry +=
                acts.verdict.what == VERDICT_RETRY && acts.n > 0 && acts.v[0].kind == XACT_KEEP;
        }
        for (unsigned i = 0; i < acts.n; i++)
            seen->action[acts.v[i].kind]++;
    }
    seen->stale += h.stale;
    seen->pair[XST_DONE][XEV_CLIENT_GONE]++;
    hostile_feed(&h, XEV_CLIENT_GONE, &acts);
}

START_TEST(invariants_hold_everywhere)
{
    static struct visits seen;
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){0x72657472, 0x79640001, 2, 3});
    for (int i = 0; i < WALKS; i++)
        walk(&rng, &seen);

    for (int s = XST_NEW; s <= XST_DONE; s++)
        for (int e = XEV_START; e <= XEV_CLIENT_GONE; e++) {
            bool expected = legal_event((enum xch_state)s, (enum xch_event_kind)e);
            ck_assert_msg((seen.pair[s][e] > 0) == expected, "%s in %s: seen %u times",
                          xch_event_name((enum xch_event_kind)e), xch_state_name((enum xch_state)s),
                          seen.pair[s][e]);
        }
    for (int w = VERDICT_SUCCESS; w <= VERDICT_WILL_RETRY; w++)
        ck_assert_msg(seen.why[w] > 0, "%s never happened", verdict_why_name((enum verdict_why)w));
    for (int a = XACT_ARM; a <= XACT_FINISH; a++)
        ck_assert_msg(seen.action[a] > 0, "%s never asked",
                      xch_action_name((enum xch_action_kind)a));
    ck_assert_uint_gt(seen.stale, 1000);
    ck_assert_uint_gt(seen.penalties, 1000);
    ck_assert_uint_gt(seen.kept_for_retry, 100);
}
END_TEST

static TCase *walks(void)
{
    TCase *tc = tcase_create("walk");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, invariants_hold_everywhere);
    return tc;
}

UNIT_MAIN("walk", walks)
