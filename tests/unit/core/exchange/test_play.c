/* Runs the playbooks of tests/play: what the machine does in the stories that people tell about it.
 *
 *   set KEY=VALUE…    before the first event: mode=, max_attempts=, long_poll, quota=, once (not
 * replayable), max_delay_ms=, full (no room to park), admit_ms=A,B,… (answers of the limiter),
 * max_admission_ms=, now_ms= (the clock) > EVENT WORDS…    reused peek whole silent keep status=
 * code= failure= retry_after= < ACTION WORDS… exactly what the event brought, in order: a number of
 * ms after arm; fresh; a failure = STATE : KEY=VALUE…      the judgement of the step: class= why=
 * tokens=
 */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>

enum { PLAYS_MAX = 100, LINE_MAX_BYTES = 256, ADMITS_MAX = 8 };

struct play {
    const char *name;
    unsigned line;
    struct retry_policy policy;
    struct membudget budget; /* with admit and observe of our own */
    int64_t admits_ns[ADMITS_MAX];
    unsigned n_admits, next_admit, observed;
    bool once, full, started;
    int64_t max_delay_ns, max_admission_ns, now_ns;
    struct xch x;
    struct xch_acts acts;
    unsigned taken;
};

static char *play_names[PLAYS_MAX];
static int n_plays;

static void PRINTF_LIKE(2, 3) play_fail(const struct play *p, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ck_abort_msg("%s:%u: %s", p->name, p->line, text);
}

/* --- the world --- */

static struct play *play_of(struct budget *b)
{
    return (struct play *)(void *)((char *)b - offsetof(struct play, budget));
}

static int64_t play_admit(struct budget *b, int64_t now_ns)
{
    (void)now_ns;
    struct play *p = play_of(b);
    return p->next_admit < p->n_admits ? p->admits_ns[p->next_admit++] : 0;
}

static void play_observe(struct budget *b, bool throttled, int64_t now_ns)
{
    (void)throttled, (void)now_ns;
    play_of(b)->observed++;
}

static double full_jitter(void *state)
{
    (void)state;
    return 1.0;
}

static int64_t play_max_delay_ns(void *arg, int64_t now_ns)
{
    (void)now_ns;
    return ((struct play *)arg)->max_delay_ns;
}

static bool play_can_park(void *arg)
{
    return !((struct play *)arg)->full;
}

static struct budget_ops play_ops;

static void play_init(struct play *p, const char *name)
{
    static const struct retry_code codes[] = {{{"SlowDown", 8}, RETRY_THROTTLING}};
    *p = (struct play){.name = name, .policy = retry_policy_standard_21, .max_delay_ns = INT64_MAX};
    p->policy.codes = (struct retry_codes){codes, 1};
    p->policy.crc32 = RETRY_CRC32_SUCCESS;
    membudget_init(&p->budget);
    play_ops = *p->budget.base.ops;
    play_ops.admit = play_admit;
    play_ops.observe = play_observe;
    p->budget.base.ops = &play_ops;
}

static void play_start(struct play *p)
{
    const struct xch_env env = {.policy = &p->policy,
                                .budget = &p->budget.base,
                                .rng = {full_jitter, NULL},
                                .max_delay_ns = play_max_delay_ns,
                                .max_admission_ns = p->max_admission_ns,
                                .can_park = play_can_park,
                                .arg = p};
    xch_init(&p->x, &env, !p->once);
    p->started = true;
}

/* --- words --- */

static bool next_word(struct slice *rest, struct slice *word)
{
    *rest = slice_trim(*rest);
    if (rest->n == 0)
        return false;
    size_t at = slice_index(*rest, ' ');
    *word = slice_of(rest->p, at);
    *rest = slice_of(rest->p + at, rest->n - at);
    return true;
}

static struct slice cut_value(struct slice *word)
{
    size_t at = slice_index(*word, '=');
    if (at == word->n)
        return SLICE_NONE;
    struct slice value = slice_of(word->p + at + 1, word->n - at - 1);
    word->n = at;
    return value;
}

static unsigned number(const struct play *p, struct slice text)
{
    uint64_t v = 0;
    if (!num_u64(text, 9, 999999999, &v))
        play_fail(p, "not a number: %.*s", SLICE_FMT(text));
    return (unsigned)v;
}

static enum retry_failure failure_named(const struct play *p, struct slice name)
{
    for (int f = RETRY_FAIL_NONE + 1; f < RETRY_FAIL_COUNT; f++)
        if (slice_eq(name, slice_str(retry_failure_name((enum retry_failure)f))))
            return (enum retry_failure)f;
    play_fail(p, "no such failure: %.*s", SLICE_FMT(name));
    return RETRY_FAIL_NONE;
}

/* --- lines --- */

static void set_mode(struct play *p, struct slice name)
{
    if (slice_eq(name, SLICE("off")))
        p->policy.mode = RETRY_MODE_OFF;
    else if (slice_eq(name, SLICE("adaptive")))
        p->policy.mode = RETRY_MODE_ADAPTIVE;
    else
        play_fail(p, "no such mode: %.*s", SLICE_FMT(name));
}

static void set_admits(struct play *p, struct slice list)
{
    struct slice part;
    for (bool done = false; slice_next(&list, ',', &part, &done);) {
        ck_assert_uint_lt(p->n_admits, ADMITS_MAX);
        p->admits_ns[p->n_admits++] = number(p, part) * NS_PER_MS;
    }
}

static void line_set(struct play *p, struct slice rest)
{
    struct slice key;
    while (next_word(&rest, &key)) {
        struct slice value = cut_value(&key);
        if (slice_eq(key, SLICE("mode")))
            set_mode(p, value);
        else if (slice_eq(key, SLICE("behaviour")) && slice_eq(value, SLICE("2.0")))
            p->policy = retry_policy_as_20(&p->policy);
        else if (slice_eq(key, SLICE("admit_ms")))
            set_admits(p, value);
        else if (slice_eq(key, SLICE("max_attempts")))
            p->policy.max_attempts = number(p, value);
        else if (slice_eq(key, SLICE("quota")))
            p->budget.debt = p->policy.quota_capacity - number(p, value);
        else if (slice_eq(key, SLICE("max_delay_ms")))
            p->max_delay_ns = number(p, value) * NS_PER_MS;
        else if (slice_eq(key, SLICE("now_ms")))
            p->now_ns = number(p, value) * NS_PER_MS;
        else if (slice_eq(key, SLICE("max_admission_ms")))
            p->max_admission_ns = number(p, value) * NS_PER_MS;
        else if (slice_eq(key, SLICE("long_poll")))
            p->policy.long_poll = true;
        else if (slice_eq(key, SLICE("once")))
            p->once = true;
        else if (slice_eq(key, SLICE("full")))
            p->full = true;
        else
            play_fail(p, "no such setting: %.*s", SLICE_FMT(key));
    }
}

static void event_word(const struct play *p, struct slice key, struct xch_event *ev)
{
    struct slice value = cut_value(&key);
    struct retry_outcome *o = &ev->outcome;
    if (slice_eq(key, SLICE("reused")))
        ev->reused = true;
    else if (slice_eq(key, SLICE("peek")))
        ev->peek = true;
    else if (slice_eq(key, SLICE("whole")))
        ev->whole = true;
    else if (slice_eq(key, SLICE("silent")))
        ev->silent = true;
    else if (slice_eq(key, SLICE("keep")))
        ev->keep = true;
    else if (slice_eq(key, SLICE("status")))
        o->status = number(p, value);
    else if (slice_eq(key, SLICE("code")))
        o->code = value;
    else if (slice_eq(key, SLICE("failure")))
        o->failure = failure_named(p, value);
    else if (slice_eq(key, SLICE("retry_after"))) {
        o->has_retry_after = true;
        o->retry_after_ns = number(p, value) * NS_PER_MS;
    } else
        play_fail(p, "no such word: %.*s", SLICE_FMT(key));
}

static void nothing_left(const struct play *p)
{
    if (p->started && p->taken < p->acts.n)
        play_fail(p, "unexpected before this: < %s", xch_action_name(p->acts.v[p->taken].kind));
}

static void line_event(struct play *p, struct slice rest)
{
    nothing_left(p);
    if (!p->started)
        play_start(p);
    struct slice name = SLICE_NONE, word;
    struct xch_event ev = {.kind = XEV_START};
    next_word(&rest, &name);
    while (!slice_eq(name, slice_str(xch_event_name(ev.kind)))) {
        if (ev.kind == XEV_CLIENT_GONE)
            play_fail(p, "no such event: %.*s", SLICE_FMT(name));
        ev.kind++;
    }
    while (next_word(&rest, &word))
        event_word(p, word, &ev);
    xch_step(&p->x, &ev, p->now_ns, &p->acts);
    p->taken = 0;
}

/* The action as the playbook writes it. */
static void action_text(const struct xch_action *a, char *out, size_t n)
{
    const char *name = xch_action_name(a->kind);
    if (a->kind == XACT_ARM)
        snprintf(out, n, "%s %lld", name, (long long)(a->delay_ns / NS_PER_MS));
    else if (a->kind == XACT_DIAL && a->fresh)
        snprintf(out, n, "%s fresh", name);
    else if (a->kind == XACT_REPLY)
        snprintf(out, n, "%s %s", name, retry_failure_name(a->failure));
    else
        snprintf(out, n, "%s", name);
}

static void line_action(struct play *p, struct slice rest)
{
    char text[64] = "nothing";
    if (p->taken < p->acts.n)
        action_text(&p->acts.v[p->taken++], text, sizeof text);
    if (!slice_eq(rest, slice_str(text)))
        play_fail(p, "expected < %.*s, got < %s", SLICE_FMT(rest), text);
}

static void line_state(struct play *p, struct slice rest)
{
    const char *state = xch_state_name(p->x.state);
    if (!slice_eq(rest, slice_str(state)))
        play_fail(p, "expected state %.*s, got %s", SLICE_FMT(rest), state);
}

static void line_judgement(struct play *p, struct slice rest)
{
    const struct verdict *v = &p->acts.verdict;
    if (!p->acts.judged)
        play_fail(p, "nothing was judged in this step");
    struct slice key;
    while (next_word(&rest, &key)) {
        struct slice value = cut_value(&key);
        const char *got = NULL;
        char tokens[16];
        if (slice_eq(key, SLICE("class")))
            got = retry_class_name(v->class);
        else if (slice_eq(key, SLICE("why")))
            got = verdict_why_name(v->why);
        else if (slice_eq(key, SLICE("tokens"))) {
            snprintf(tokens, sizeof tokens, "%u", v->tokens_after);
            got = tokens;
        }
        if (!got || !slice_eq(value, slice_str(got)))
            play_fail(p, "%.*s: got %s", SLICE_FMT(key), got ? got : "no such fact");
    }
}

static void play_line(struct play *p, struct slice line)
{
    struct slice rest = line.n > 1 ? slice_trim(slice_of(line.p + 1, line.n - 1)) : SLICE_NONE;
    if (line.n == 0 || line.p[0] == '#')
        return;
    if (line.p[0] == '>')
        line_event(p, rest);
    else if (line.p[0] == '<')
        line_action(p, rest);
    else if (line.p[0] == '=')
        line_state(p, rest);
    else if (line.p[0] == ':')
        line_judgement(p, rest);
    else if (slice_starts(line, SLICE("set ")) &&
             (!p->started || slice_starts(line, SLICE("set now_ms="))))
        line_set(p, slice_of(line.p + 4, line.n - 4));
    else
        play_fail(p, "cannot read: %.*s", SLICE_FMT(line));
}

START_TEST(play)
{
    char path[512], text[LINE_MAX_BYTES];
    snprintf(path, sizeof path, "%s/play/%s", TEST_DATA_DIR, play_names[_i]);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    struct play p;
    play_init(&p, play_names[_i]);
    while (fgets(text, sizeof text, f)) {
        p.line++;
        struct slice line = slice_str(text);
        ck_assert_msg(line.n > 0 && line.p[line.n - 1] == '\n', "%s:%u: too long", p.name, p.line);
        line.n--;
        play_line(&p, slice_trim(line));
    }
    fclose(f);
    nothing_left(&p);
    ck_assert_msg(p.x.state == XST_DONE, "%s: ends in state %s", p.name, xch_state_name(p.x.state));
    if (p.policy.mode == RETRY_MODE_ADAPTIVE)
        ck_assert_uint_eq(p.observed, p.x.run.attempts);
    else
        ck_assert_uint_eq(p.observed, 0);
}
END_TEST

static int is_play(const struct dirent *d)
{
    struct slice name = slice_str(d->d_name);
    return slice_ends_nocase(name, SLICE(".play"));
}

static TCase *plays(void)
{
    struct dirent **found;
    int n = scandir(TEST_DATA_DIR "/play", &found, is_play, alphasort);
    for (int i = 0; i < n; i++) {
        if (n_plays < PLAYS_MAX)
            play_names[n_plays++] = strdup(found[i]->d_name);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    TCase *tc = tcase_create("play");
    tcase_add_loop_test(tc, play, 0, n_plays);
    return tc;
}

/* A directory that went missing must not pass. */
START_TEST(there_are_plays)
{
    ck_assert_int_gt(n_plays, 15);
    ck_assert_int_lt(n_plays, PLAYS_MAX);
}
END_TEST

static TCase *inventory(void)
{
    TCase *tc = tcase_create("inventory");
    tcase_add_test(tc, there_are_plays);
    return tc;
}

UNIT_MAIN("play", plays, inventory)
