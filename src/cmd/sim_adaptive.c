/* Format retryd-adaptive-vectors/1: the limiter of adaptive mode in parts and as a whole, alone and
 * within the machine of an exchange. Times of the vectors are seconds of the limiter's clock. */
#include "cmd/sim.h"

#include "core/base/units.h"
#include "core/retry/limiter.h"
#include <math.h>

/* How far apart two numbers may be. */
#define RATE 1e-4 /* relative above 1 */
#define CAPACITY 1e-3
#define WAIT_MS 1.0
#define TIME_S 1e-3

struct story {
    struct limiter limiter;
    double rate; /* cubic: the one computed last */
    struct limiter_floor floor;
    json_t *given;
};

/* --- reading --- */

static bool read_time(double s, const char *name, int64_t *out_ns, struct err *why)
{
    if (!(s >= 0.0 && s <= 1e9))
        return err_set(why, "%s: must be a number of seconds from 0 to 1e9", name);
    *out_ns = llround(s * 1e9);
    return true;
}

static bool read_rate(double rate, const char *name, struct err *why)
{
    if (!(rate >= 0.0 && rate <= 1e9))
        return err_set(why, "%s: must be a number from 0 to 1e9", name);
    return true;
}

/* A misspelt expectation must not pass for an absent one. */
static bool knows_all(json_t *j, const char *names, struct err *why)
{
    const char *name;
    json_t *value;
    json_object_foreach(j, name, value)
    {
        struct slice rest = slice_str(names), known;
        bool found = false, done = false;
        while (!found && slice_next(&rest, ' ', &known, &done))
            found = slice_eq(known, slice_str(name));
        if (!found)
            return err_set(why, "\"%s\" is not known", name);
    }
    return true;
}

/* An expectation that is absent asks nothing. */
static bool near(json_t *j, const char *name, double got, double tolerance, struct err *why)
{
    json_t *e = json_object_get(j, name);
    if (!e)
        return true;
    double expected = json_number_value(e);
    if (json_is_number(e) && fabs(expected - got) <= tolerance)
        return true;
    return err_set(why, "%s, expected %g, got %g", name, expected, got);
}

static bool near_rate(json_t *j, const char *name, double got, struct err *why)
{
    return near(j, name, got, RATE * (got > 1.0 ? got : 1.0), why);
}

static enum sim_result ok_or_fail(bool ok)
{
    return ok ? SIM_OK : SIM_FAIL;
}

/* --- cubic, cubic-params --- */

static bool begin_cubic(struct story *s, struct err *why)
{
    double since;
    if (!sim_unpack(s->given, "given", why, "{s:F, s:F !}", "last_max_rate", &s->limiter.last_max,
                    "last_throttle_time", &since))
        return false;
    s->rate = s->limiter.last_max;
    return read_rate(s->rate, "given: last_max_rate", why) &&
           read_time(since, "given: last_throttle_time", &s->limiter.throttled_ns, why);
}

static enum sim_result run_cubic(struct story *s, json_t *j, struct err *why)
{
    double t;
    int64_t now_ns = 0;
    const char *event;
    if (!knows_all(j, "t event calculated_rate", why) ||
        !sim_unpack(j, "case", why, "{s:F, s:s}", "t", &t, "event", &event) ||
        !read_time(t, "t", &now_ns, why))
        return SIM_BAD;
    if (strcmp(event, "throttle") == 0)
        s->rate = limiter_reduce(&s->limiter, s->rate, now_ns);
    else if (strcmp(event, "success") == 0)
        s->rate = limiter_cubic(&s->limiter, now_ns);
    else
        return err_set(why, "event: \"%s\" is not known", event), SIM_BAD;
    return ok_or_fail(near_rate(j, "calculated_rate", s->rate, why));
}

static enum sim_result run_params(struct story *s, json_t *j, struct err *why)
{
    double last_max, beta, scale;
    if (!knows_all(j, "last_max_rate beta scale time_window throttled_rate", why) ||
        !sim_unpack(j, "case", why, "{s:F, s:F, s:F}", "last_max_rate", &last_max, "beta", &beta,
                    "scale", &scale) ||
        !read_rate(last_max, "last_max_rate", why))
        return SIM_BAD;
    if (fabs(beta - LIMITER_BETA) > 0.0 || fabs(scale - LIMITER_SCALE) > 0.0)
        return err_set(why, "beta and scale: must be %g and %g", LIMITER_BETA, LIMITER_SCALE),
               SIM_BAD;
    double throttled = limiter_reduce(&s->limiter, last_max, 0);
    return ok_or_fail(near_rate(j, "time_window", limiter_window_s(last_max), why) &&
                      near_rate(j, "throttled_rate", throttled, why));
}

/* --- limiter, limiter-single, measure --- */

static bool begin_limiter(struct story *s, struct err *why)
{
    double start, max = -1.0, refilled = -1.0, throttled = -1.0;
    int enabled = false;
    int64_t start_ns = 0;
    struct limiter *l = &s->limiter;
    if (!sim_unpack(s->given, "given", why, "{s:F}", "start_time", &start) ||
        !read_time(start, "given: start_time", &start_ns, why))
        return false;
    limiter_begin(l, start_ns);
    if (!sim_unpack(s->given, "given", why, "{s:F, s?b, s?F, s?F, s?F, s?F, s?F, s?F !}",
                    "start_time", &start, "enabled", &enabled, "fill_rate", &l->fill_rate,
                    "max_capacity", &max, "capacity", &l->cap, "last_timestamp", &refilled,
                    "last_max_rate", &l->last_max, "last_throttle_time", &throttled))
        return false;
    if (max >= 0.0 && fabs(max - limiter_max_cap(l, &limiter_floor)) > 0.0)
        return err_set(why, "given: max_capacity: must be fill_rate, or 1 if that is less");
    l->enabled = enabled != 0;
    l->refilled = refilled >= 0.0;
    return (refilled < 0.0 || read_time(refilled, "last_timestamp", &l->refilled_ns, why)) &&
           (throttled < 0.0 || read_time(throttled, "last_throttle_time", &l->throttled_ns, why)) &&
           (limiter_is_sane(l, INT64_MAX) || err_set(why, "given: no limiter can be so"));
}

static bool read_event(json_t *j, enum limiter_event *event, int64_t *now_ns, struct err *why)
{
    double t;
    const char *name;
    json_int_t amount = 1;
    if (!knows_all(j,
                   "t event amount measured_tx_rate fill_rate max_capacity calculated_rate "
                   "wait_ms capacity_after",
                   why) ||
        !sim_unpack(j, "case", why, "{s:F, s:s}", "t", &t, "event", &name) ||
        !read_time(t, "t", now_ns, why) ||
        !sim_number(json_object_get(j, "amount"), "amount", 1, 1, &amount, why))
        return false;
    if (strcmp(name, "acquire") == 0)
        *event = LIMITER_ACQUIRE;
    else if (strcmp(name, "throttle") == 0)
        *event = LIMITER_THROTTLED;
    else if (strcmp(name, "success") == 0 || strcmp(name, "error") == 0)
        *event = LIMITER_OK;
    else
        return err_set(why, "event: \"%s\" is not known", name);
    return true;
}

static enum sim_result run_limiter(struct story *s, json_t *j, struct err *why)
{
    enum limiter_event event = LIMITER_ACQUIRE;
    int64_t now_ns = 0, wait_ns;
    if (!read_event(j, &event, &now_ns, why))
        return SIM_BAD;
    struct limiter next, part = s->limiter;
    double rate = event == LIMITER_ACQUIRE
                      ? 0.0
                      : limiter_new_rate(&part, event == LIMITER_THROTTLED, now_ns);
    limiter_step(&s->limiter, event, now_ns, &next, &wait_ns);
    s->limiter = next;
    return ok_or_fail(near_rate(j, "calculated_rate", rate, why) &&
                      near_rate(j, "measured_tx_rate", next.tx, why) &&
                      near_rate(j, "fill_rate", next.fill_rate, why) &&
                      near_rate(j, "max_capacity", limiter_max_cap(&next, &limiter_floor), why) &&
                      near(j, "wait_ms", ns_to_ms(wait_ns), WAIT_MS, why) &&
                      near(j, "capacity_after", next.cap, CAPACITY, why));
}

static enum sim_result run_single(struct story *s, json_t *j, struct err *why)
{
    return begin_limiter(s, why) ? run_limiter(s, j, why) : SIM_BAD;
}

static enum sim_result run_measure(struct story *s, json_t *j, struct err *why)
{
    double t;
    int64_t now_ns = 0;
    if (!knows_all(j, "t measured_tx_rate", why) || !sim_unpack(j, "case", why, "{s:F}", "t", &t) ||
        !read_time(t, "t", &now_ns, why))
        return SIM_BAD;
    limiter_measure(&s->limiter, now_ns);
    return ok_or_fail(near_rate(j, "measured_tx_rate", s->limiter.tx, why));
}

/* --- bucket --- */

static bool begin_bucket(struct story *s, struct err *why)
{
    double t, rate, capacity;
    int64_t now_ns = 0;
    if (!sim_unpack(s->given, "given", why, "{s:F, s:F, s:F, s:F !}", "t", &t, "rate", &rate,
                    "capacity", &capacity, "min_fill_rate", &s->floor.fill_rate) ||
        !read_time(t, "given: t", &now_ns, why) || !read_rate(rate, "given: rate", why) ||
        !read_rate(s->floor.fill_rate, "given: min_fill_rate", why))
        return false;
    limiter_begin(&s->limiter, now_ns);
    limiter_set_rate(&s->limiter, rate, &s->floor, now_ns);
    s->limiter.cap = capacity;
    return (s->limiter.fill_rate > 0.0 && capacity >= 0.0 &&
            capacity <= limiter_max_cap(&s->limiter, &s->floor)) ||
           err_set(why, "given: no bucket can be so");
}

static enum sim_result run_bucket(struct story *s, json_t *j, struct err *why)
{
    double t, rate = 0.0, amount = 1.0, capacity = 0.0;
    int64_t now_ns = 0, wait_ns = 0;
    const char *op;
    if (!knows_all(j, "t op rate amount max_capacity fill_rate wait_ms capacity_after", why) ||
        !sim_unpack(j, "case", why, "{s:F, s:s, s?F, s?F, s?F}", "t", &t, "op", &op, "rate", &rate,
                    "amount", &amount, "max_capacity", &capacity) ||
        !read_time(t, "t", &now_ns, why) || !read_rate(rate, "rate", why) ||
        !read_rate(amount, "amount", why) || !read_rate(capacity, "max_capacity", why))
        return SIM_BAD;
    if (strcmp(op, "acquire") == 0)
        wait_ns = limiter_take(&s->limiter, amount, &s->floor, now_ns);
    else if (strcmp(op, "set_rate") == 0)
        limiter_set_rate(&s->limiter, rate, &s->floor, now_ns);
    else if (strcmp(op, "set_capacity_limit") == 0)
        s->floor.max_cap = capacity;
    else
        return err_set(why, "op: \"%s\" is not known", op), SIM_BAD;
    return ok_or_fail(near_rate(j, "fill_rate", s->limiter.fill_rate, why) &&
                      near_rate(j, "max_capacity", limiter_max_cap(&s->limiter, &s->floor), why) &&
                      near(j, "wait_ms", ns_to_ms(wait_ns), WAIT_MS, why) &&
                      near(j, "capacity_after", s->limiter.cap, CAPACITY, why));
}

/* --- flow: one worker, one attempt after the other --- */

/* A quota and a limiter in plain memory. */
struct flow_budget {
    struct membudget quota; /* first: the budget is its quota's */
    struct budget_ops ops;
    struct limiter limiter;
};

struct flow {
    struct flow_budget budget;
    struct sim_world world;
    struct xch x;
    bool running; /* a request is under way: its next attempt is a retry */
    int64_t latency_ns;
    int64_t now_ns;
    int64_t token_wait_ns;
    struct verdict verdict;
};

static int64_t flow_event(struct budget *b, enum limiter_event event, int64_t now_ns)
{
    struct flow_budget *f = (struct flow_budget *)b;
    struct limiter old = f->limiter;
    int64_t wait_ns;
    limiter_step(&old, event, now_ns, &f->limiter, &wait_ns);
    return wait_ns;
}

static int64_t flow_admit(struct budget *b, int64_t now_ns)
{
    return flow_event(b, LIMITER_ACQUIRE, now_ns);
}

static void flow_observe(struct budget *b, bool throttled, int64_t now_ns)
{
    flow_event(b, throttled ? LIMITER_THROTTLED : LIMITER_OK, now_ns);
}

static bool begin_flow(struct flow *f, json_t *given, struct err *why)
{
    double start, latency, jitter;
    int64_t start_ns = 0;
    json_int_t attempts = 0;
    json_t *max_attempts;
    const char *service;
    if (!sim_unpack(given, "given", why, "{s:F, s:F, s:F, s:o, s:s !}", "start_time", &start,
                    "latency_s", &latency, "jitter", &jitter, "max_attempts", &max_attempts,
                    "service", &service) ||
        !read_time(start, "given: start_time", &start_ns, why) ||
        !read_time(latency, "given: latency_s", &f->latency_ns, why) ||
        !sim_number(max_attempts, "given: max_attempts", 1, 100, &attempts, why))
        return false;
    if (strcmp(service, "generic") != 0 || !(jitter >= 0.0 && jitter <= 1.0))
        return err_set(why, "given: service must be \"generic\", jitter from 0 to 1");
    struct aws_target target = {.service = NULL};
    struct retry_policy policy = aws_policy(&target);
    policy.mode = RETRY_MODE_ADAPTIVE;
    policy.max_attempts = (unsigned)attempts;
    sim_world_init(&f->world, &policy, jitter, policy.quota_capacity);
    membudget_init(&f->budget.quota);
    f->budget.ops = *f->budget.quota.base.ops;
    f->budget.ops.admit = flow_admit;
    f->budget.ops.observe = flow_observe;
    f->budget.quota.base.ops = &f->budget.ops;
    f->world.env.budget = &f->budget.quota.base;
    limiter_begin(&f->budget.limiter, start_ns);
    f->now_ns = start_ns;
    return true;
}

/* Feeds one event and lets its timer run. */
static void feed(struct flow *f, struct xch_event ev)
{
    struct xch_acts acts;
    xch_step(&f->x, &ev, f->now_ns, &acts);
    if (acts.judged)
        f->verdict = acts.verdict;
    for (unsigned i = 0; i < acts.n; i++) {
        if (acts.v[i].kind != XACT_ARM)
            continue;
        f->now_ns += acts.v[i].delay_ns;
        if (f->x.state == XST_ADMIT)
            f->token_wait_ns += acts.v[i].delay_ns;
    }
}

/* Sends one attempt as soon as the machine dials, and brings its response. */
static int64_t send_attempt(struct flow *f, const struct retry_outcome *o)
{
    f->token_wait_ns = 0;
    if (!f->running)
        xch_init(&f->x, &f->world.env, true);
    feed(f, (struct xch_event){.kind = f->running ? XEV_TIMER : XEV_START});
    while (f->x.state == XST_ADMIT)
        feed(f, (struct xch_event){.kind = XEV_TIMER});
    int64_t sent_ns = f->now_ns;
    feed(f, (struct xch_event){.kind = XEV_UP});
    feed(f, (struct xch_event){.kind = XEV_SENT});
    f->now_ns += f->latency_ns;
    feed(f, (struct xch_event){.kind = XEV_HEAD, .whole = true, .outcome = *o});
    f->running = f->x.state == XST_BACKOFF;
    if (f->x.state == XST_RELAY)
        feed(f, (struct xch_event){.kind = XEV_END, .keep = true});
    return sent_ns;
}

static const char *outcome_name(const struct verdict *v)
{
    switch (v->why) {
    case VERDICT_WILL_RETRY:
        return "retry";
    case VERDICT_NOT_RETRYABLE:
        return "non_retryable";
    case VERDICT_MAX_ATTEMPTS:
        return "max_attempts_exceeded";
    case VERDICT_QUOTA:
        return "quota_exceeded";
    default:
        return verdict_why_name(v->why);
    }
}

static bool read_attempt(struct flow *f, json_t *j, struct retry_outcome *o, json_t **expected,
                         struct err *why)
{
    double start = -1.0;
    int64_t start_ns = 0;
    json_t *response, *status;
    const char *code = "";
    json_int_t n = 0;
    if (!sim_unpack(j, "case", why, "{s:o, s:o, s?F !}", "response", &response, "expected",
                    expected, "start_at", &start) ||
        !sim_unpack(response, "response", why, "{s:o, s?s !}", "status", &status, "code", &code) ||
        !sim_number(status, "response: status", 200, 599, &n, why))
        return false;
    *o = (struct retry_outcome){.status = (unsigned)n, .code = slice_str(code)};
    if (start < 0.0)
        return true;
    if (!read_time(start, "start_at", &start_ns, why))
        return false;
    if (f->running || start_ns < f->now_ns)
        return err_set(why, "start_at: the request before has not ended by then");
    f->now_ns = start_ns;
    return true;
}

static enum sim_result run_attempt(struct flow *f, json_t *j, struct err *why)
{
    struct retry_outcome o;
    json_t *e, *delay = NULL;
    const char *outcome;
    if (!read_attempt(f, j, &o, &e, why) ||
        !sim_unpack(e, "expected", why, "{s:F, s:F, s:F, s:F, s:s, s:F, s?o !}", "send_t",
                    &(double){0}, "token_wait_ms", &(double){0}, "response_t", &(double){0},
                    "fill_rate_after", &(double){0}, "outcome", &outcome, "quota_after",
                    &(double){0}, "delay_ms", &delay))
        return SIM_BAD;
    int64_t sent_ns = send_attempt(f, &o);
    double got_s = (double)(sent_ns + f->latency_ns) / 1e9;
    if (strcmp(outcome, outcome_name(&f->verdict)) != 0)
        return err_set(why, "outcome, expected %s, got %s", outcome, outcome_name(&f->verdict)),
               SIM_FAIL;
    return ok_or_fail(near(e, "send_t", (double)sent_ns / 1e9, TIME_S, why) &&
                      near(e, "token_wait_ms", ns_to_ms(f->token_wait_ns), WAIT_MS, why) &&
                      near(e, "response_t", got_s, TIME_S, why) &&
                      near_rate(e, "fill_rate_after", f->budget.limiter.fill_rate, why) &&
                      near(e, "quota_after", (double)f->verdict.tokens_after, 0.0, why) &&
                      (near(e, "delay_ms", ns_to_ms(f->verdict.delay_ns), WAIT_MS, why)));
}

/* --- a vector --- */

static enum sim_result run_flow(json_t *given, json_t *cases, struct err *why)
{
    struct flow f = {.running = false};
    struct err detail;
    enum sim_result result = SIM_OK;
    size_t i;
    json_t *each;
    if (!begin_flow(&f, given, why))
        return SIM_BAD;
    json_array_foreach(cases, i, each)
    {
        result = run_attempt(&f, each, &detail);
        if (result != SIM_OK) {
            err_set(why, "case %zu, %s", i + 1, detail.text);
            break;
        }
    }
    return result;
}

static const struct kind {
    const char *name;
    bool (*begin)(struct story *s, struct err *why);
    enum sim_result (*run)(struct story *s, json_t *j, struct err *why); /* one case */
} kinds[] = {
    {"cubic", begin_cubic, run_cubic},       {"cubic-params", NULL, run_params},
    {"limiter", begin_limiter, run_limiter}, {"limiter-single", begin_limiter, run_single},
    {"measure", begin_limiter, run_measure}, {"bucket", begin_bucket, run_bucket},
};

static enum sim_result run_cases(const struct kind *kind, json_t *given, json_t *cases,
                                 struct err *why)
{
    struct story s = {.given = given, .floor = limiter_floor};
    struct err detail;
    enum sim_result result = SIM_OK;
    size_t i;
    json_t *each;
    if (kind->begin && !kind->begin(&s, why))
        return SIM_BAD;
    json_array_foreach(cases, i, each)
    {
        result = kind->run(&s, each, &detail);
        if (result != SIM_OK) {
            err_set(why, "case %zu, %s", i + 1, detail.text);
            break;
        }
    }
    return result;
}

static enum sim_result run(json_t *vector, struct arena *a, struct err *why)
{
    const char *name;
    json_t *given, *cases;
    (void)a;
    if (!sim_unpack(vector, "vector", why, "{s:s, s:o, s:o}", "kind", &name, "given", &given,
                    "cases", &cases))
        return SIM_BAD;
    if (!json_is_array(cases) || json_array_size(cases) == 0)
        return err_set(why, "cases: must be an array of at least one case"), SIM_BAD;
    if (strcmp(name, "flow") == 0)
        return run_flow(given, cases, why);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return run_cases(&kinds[i], given, cases, why);
    return err_set(why, "kind \"%s\" cannot be run", name), SIM_BAD;
}

static bool accepts(json_t *file, struct err *why)
{
    (void)file, (void)why;
    return true;
}

const struct sim_format sim_adaptive = {"retryd-adaptive-vectors/1", accepts, run};
