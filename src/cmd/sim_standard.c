/* Format retryd-standard-vectors/1: attempt results in order, each with the decision that must
 * follow.
 *
 * Every request of a vector is an exchange of its own: the real machine, fed with the events that a
 * network would have produced, all on one quota. Time is a number; timers fire as soon as they are
 * armed. */
#include "cmd/sim.h"

#include "core/base/units.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"
#include <math.h>

struct given {
    struct retry_policy policy;
    json_int_t initial; /* quota */
    double jitter;
};

struct request {
    const char *id;
    struct xch x;
    bool waiting; /* its next attempt is a retry */
};

struct world {
    struct given given;
    struct membudget budget;
    struct xch_env env;
    int64_t now_ns;
    struct request *v; /* room for one a step */
    size_t n;
};

/* --- the machine's surroundings --- */

static double fixed_jitter(void *state)
{
    return ((const struct world *)state)->given.jitter;
}

static int64_t no_deadline(void *arg, int64_t now_ns)
{
    (void)arg, (void)now_ns;
    return INT64_MAX;
}

static bool always_room(void *arg)
{
    (void)arg;
    return true;
}

static struct request *request_named(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i].id, id) == 0)
            return &w->v[i];
    w->v[w->n].id = id;
    return &w->v[w->n++];
}

static bool fails_before_connected(enum retry_failure f)
{
    switch (f) {
    case RETRY_FAIL_DNS:
    case RETRY_FAIL_CONNECT_REFUSED:
    case RETRY_FAIL_CONNECT_TIMEOUT:
    case RETRY_FAIL_TLS:
    case RETRY_FAIL_TLS_TIMEOUT:
    case RETRY_FAIL_CERTIFICATE:
    case RETRY_FAIL_POLICY:
    case RETRY_FAIL_OVERLOAD:
        return true;
    default:
        return false;
    }
}

/* Feeds one event; what a network would do next is up to the caller. */
static void feed(struct world *w, struct xch *x, struct xch_event ev, struct xch_acts *acts)
{
    xch_step(x, &ev, w->now_ns, acts);
    for (unsigned i = 0; i < acts->n; i++)
        if (acts->v[i].kind == XACT_ARM)
            w->now_ns += acts->v[i].delay_ns;
}

/* One attempt from its dial to its judgement. */
static void attempt(struct world *w, struct request *r, const struct retry_outcome *o,
                    struct verdict *out)
{
    struct xch *x = &r->x;
    struct xch_acts acts;
    if (r->waiting) {
        feed(w, x, (struct xch_event){.kind = XEV_TIMER}, &acts);
    } else {
        xch_init(x, &w->env, true);
        feed(w, x, (struct xch_event){.kind = XEV_START}, &acts);
    }
    struct xch_event last = {.kind = XEV_FAIL, .outcome = *o, .whole = true};
    if (!fails_before_connected(o->failure)) {
        feed(w, x, (struct xch_event){.kind = XEV_UP}, &acts);
        feed(w, x, (struct xch_event){.kind = XEV_SENT}, &acts);
        last.kind = XEV_BROKEN;
        if (o->status > 0) {
            feed(w, x, (struct xch_event){.kind = XEV_HEAD, .peek = true}, &acts);
            last.kind = XEV_PEEKED;
        }
    }
    feed(w, x, last, &acts);
    ASSERT(acts.judged);
    *out = acts.verdict;
    r->waiting = out->what == VERDICT_RETRY;
}

/* Leads a request that will not be retried to its end. */
static void conclude(struct world *w, struct xch *x)
{
    struct xch_acts acts;
    if (x->state == XST_PENALTY)
        feed(w, x, (struct xch_event){.kind = XEV_TIMER}, &acts);
    if (x->state == XST_RELAY)
        feed(w, x, (struct xch_event){.kind = XEV_END, .keep = true}, &acts);
}

/* --- reading --- */

/* The target that a signed request of that service for that operation gives. */
static bool target_of(const char *service, const char *operation, struct arena *a,
                      struct aws_target *out, struct err *why)
{
    memset(out, 0, sizeof *out);
    if (strcmp(service, "generic") == 0)
        return true;
    const struct aws_service *row = aws_service_by_name(slice_str(service));
    if (!row)
        return err_set(why,
                       "given: service: \"%s\" is not known; \"generic\" stands for one "
                       "without rules of its own",
                       service);
    char scope[256], call[256];
    snprintf(scope, sizeof scope,
             "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260601/us-east-1/%.*s/aws4_request",
             SLICE_FMT(row->signing_name));
    snprintf(call, sizeof call, "%.*s.%.128s", SLICE_FMT(row->name), operation);
    struct http_req req = {
        .method = SLICE("POST"), .method_id = HTTP_POST, .target = SLICE("/"), .minor = 1};
    header_add(&req.fields, a, SLICE("authorization"), slice_str(scope));
    header_add(&req.fields, a, SLICE("x-amz-target"), slice_str(call));
    aws_identify(&req, SLICE("localhost"), SLICE("/"), SLICE_NONE, a, out);
    out->service = row; /* two services may share a signing name */
    return true;
}

static bool read_given(json_t *j, struct arena *a, struct given *g, struct err *why)
{
    const char *mode, *service = "generic", *operation = "";
    json_t *attempts = NULL, *backoff = NULL, *capacity = NULL, *initial = NULL;
    if (!sim_unpack(j, "given", why, "{s:s, s?s, s?s, s?o, s?o, s?o, s?o, s:F !}", "mode", &mode,
                    "service", &service, "operation", &operation, "max_attempts", &attempts,
                    "max_backoff_ms", &backoff, "quota_capacity", &capacity, "quota_initial",
                    &initial, "jitter", &g->jitter))
        return false;
    if (strcmp(mode, "standard") != 0)
        return err_set(why, "given: mode: \"%s\" cannot be run; \"standard\" can", mode);
    if (!(g->jitter >= 0.0 && g->jitter <= 1.0))
        return err_set(why, "given: jitter: must be a number from 0 to 1");
    struct aws_target target;
    if (!target_of(service, operation, a, &target, why))
        return false;
    g->policy = aws_policy(&target);
    g->policy.crc32 = RETRY_CRC32_SUCCESS;

    json_int_t n = g->policy.max_attempts, ms = g->policy.max_backoff_ns / NS_PER_MS;
    json_int_t size = g->policy.quota_capacity;
    if (!sim_number(attempts, "given: max_attempts", 1, 100, &n, why) ||
        !sim_number(backoff, "given: max_backoff_ms", 0, 86400000, &ms, why) ||
        !sim_number(capacity, "given: quota_capacity", 0, 1000000, &size, why))
        return false;
    g->policy.max_attempts = (unsigned)n;
    g->policy.max_backoff_ns = ms * NS_PER_MS;
    g->policy.quota_capacity = (unsigned)size;
    g->initial = size;
    return sim_number(initial, "given: quota_initial", 0, size, &g->initial, why);
}

static bool failure_named(const char *name, enum retry_failure *out, struct err *why)
{
    for (int f = RETRY_FAIL_NONE + 1; f < RETRY_FAIL_COUNT; f++) {
        *out = (enum retry_failure)f;
        if (strcmp(retry_failure_name(*out), name) == 0)
            return true;
    }
    return err_set(why, "response: transport_error: \"%s\" is not known", name);
}

static bool read_response(json_t *j, struct arena *a, struct retry_outcome *o, struct err *why)
{
    const char *error = NULL, *code = "";
    json_t *status = NULL, *headers = NULL;
    int in_200 = false, checksum = false;
    *o = (struct retry_outcome){0};
    if (!sim_unpack(j, "response", why, "{s?s, s?o, s?s, s?o, s?b, s?b !}", "transport_error",
                    &error, "status", &status, "code", &code, "headers", &headers,
                    "s3_error_in_200", &in_200, "checksum_mismatch", &checksum))
        return false;
    if (error) {
        if (json_object_size(j) > 1)
            return err_set(why, "response: transport_error stands alone");
        return failure_named(error, &o->failure, why);
    }
    json_int_t n = 0;
    if (!status)
        return err_set(why, "response: needs status or transport_error");
    if (!sim_number(status, "response: status", 200, 599, &n, why))
        return false;
    if ((in_200 || checksum) && n != 200)
        return err_set(why, "response: s3_error_in_200 and checksum_mismatch go with status 200");
    struct header_list fields = {0};
    if (!sim_headers(headers, &fields, a, why))
        return false;
    sim_retry_after(&fields, o);
    o->status = (unsigned)n;
    o->code = slice_str(code);
    o->error_in_200 = in_200;
    o->failure = checksum ? RETRY_FAIL_CHECKSUM : RETRY_FAIL_NONE;
    return true;
}

/* --- comparing --- */

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

struct expected {
    const char *outcome, *class;
    json_int_t quota;
    bool waits;
    double delay_ms;
};

static bool read_expected(json_t *j, struct expected *e, struct err *why)
{
    json_t *delay = NULL, *quota;
    *e = (struct expected){0};
    if (!sim_unpack(j, "expected", why, "{s:s, s:s, s:o, s?o !}", "outcome", &e->outcome, "class",
                    &e->class, "quota_after", &quota, "delay_ms", &delay) ||
        !sim_number(quota, "expected: quota_after", 0, INT32_MAX, &e->quota, why))
        return false;
    e->waits = delay != NULL;
    e->delay_ms = json_number_value(delay);
    if (delay && !json_is_number(delay))
        return err_set(why, "expected: delay_ms: must be a number");
    return true;
}

static enum sim_result compare(const struct expected *e, const struct verdict *v, size_t step,
                               struct err *why)
{
    const double tolerance_ms = 1.0;
    const char *outcome = outcome_name(v), *class = retry_class_name(v->class);
    double delay_ms = ns_to_ms(v->delay_ns);
    if (strcmp(e->outcome, outcome) != 0)
        err_set(why, "step %zu, outcome, expected %s, got %s", step, e->outcome, outcome);
    else if (strcmp(e->class, class) != 0)
        err_set(why, "step %zu, class, expected %s, got %s", step, e->class, class);
    else if (e->quota != (json_int_t)v->tokens_after)
        err_set(why, "step %zu, quota_after, expected %" JSON_INTEGER_FORMAT ", got %u", step,
                e->quota, v->tokens_after);
    else if (fabs(e->delay_ms - delay_ms) > tolerance_ms ||
             (e->waits && v->what == VERDICT_DELIVER))
        err_set(why, "step %zu, delay_ms, expected %g, got %g", step, e->delay_ms, delay_ms);
    else
        return SIM_OK;
    return SIM_FAIL;
}

/* --- a vector --- */

static enum sim_result run_step(struct world *w, json_t *j, size_t step, struct arena *a,
                                struct err *why)
{
    const char *id = "";
    json_t *response, *expectation;
    struct retry_outcome o;
    struct expected e;
    struct verdict v;
    struct err detail;
    if (!sim_unpack(j, "step", &detail, "{s?s, s:o, s:o !}", "request", &id, "response", &response,
                    "expected", &expectation) ||
        !read_response(response, a, &o, &detail) || !read_expected(expectation, &e, &detail)) {
        err_set(why, "step %zu: %s", step, detail.text);
        return SIM_BAD;
    }
    struct request *r = request_named(w, id);
    attempt(w, r, &o, &v);
    if (!r->waiting)
        conclude(w, &r->x);
    return compare(&e, &v, step, why);
}

static enum sim_result run(json_t *vector, struct arena *a, struct err *why)
{
    struct world w = {.now_ns = 0};
    json_t *given, *steps, *step;
    size_t i;
    if (!sim_unpack(vector, "vector", why, "{s:o, s:o}", "given", &given, "steps", &steps) ||
        !read_given(given, a, &w.given, why))
        return SIM_BAD;
    if (!json_is_array(steps) || json_array_size(steps) == 0) {
        err_set(why, "steps: must be an array of at least one step");
        return SIM_BAD;
    }
    w.v = arena_alloc(a, json_array_size(steps) * sizeof *w.v);
    membudget_init(&w.budget);
    w.budget.debt = w.given.policy.quota_capacity - (unsigned)w.given.initial;
    w.env = (struct xch_env){&w.given.policy, &w.budget.base, {fixed_jitter, &w},
                             no_deadline,     always_room,    NULL};
    enum sim_result result = SIM_OK;
    json_array_foreach(steps, i, step)
    {
        result = run_step(&w, step, i + 1, a, why);
        if (result != SIM_OK)
            break;
    }
    return result;
}

static bool accepts(json_t *file, struct err *why)
{
    const char *spec = json_string_value(json_object_get(file, "spec"));
    if (!spec)
        return err_set(why, "spec: must be a string");
    if (strcmp(spec, "2.1") != 0)
        return err_set(why, "spec \"%s\" cannot be run; \"2.1\" can", spec);
    return true;
}

const struct sim_format sim_standard = {"retryd-standard-vectors/1", accepts, run};
