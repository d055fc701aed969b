/* Format retryd-standard-vectors/1: attempt results in order, each with the decision that must
 * follow. A file is about one behaviour, 2.1 or 2.0. */
#include "cmd/sim.h"

#include "core/base/units.h"
#include <math.h>

struct given {
    struct retry_policy policy;
    json_int_t initial; /* quota */
    double jitter;
};

struct request {
    const char *id;
    struct sim_request sim;
};

struct story {
    struct sim_world world;
    struct request *v; /* room for one a step */
    size_t n;
};

static struct request *request_named(struct story *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].id, id) == 0)
            return &s->v[i];
    s->v[s->n] = (struct request){.id = id};
    return &s->v[s->n++];
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

static bool read_given(json_t *j, enum retry_behaviour behaviour, struct arena *a, struct given *g,
                       struct err *why)
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
    if (behaviour == RETRY_BEHAVIOUR_20)
        g->policy = retry_policy_as_20(&g->policy);
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

static enum sim_result run_step(struct story *s, json_t *j, size_t step, struct arena *a,
                                struct err *why)
{
    const char *id = "";
    json_t *response, *expectation;
    struct retry_outcome o;
    struct expected e;
    struct sim_end end;
    struct err detail;
    if (!sim_unpack(j, "step", &detail, "{s?s, s:o, s:o !}", "request", &id, "response", &response,
                    "expected", &expectation) ||
        !read_response(response, a, &o, &detail) || !read_expected(expectation, &e, &detail)) {
        err_set(why, "step %zu: %s", step, detail.text);
        return SIM_BAD;
    }
    sim_attempt(&s->world, &request_named(s, id)->sim, &o, &end);
    return compare(&e, &end.verdict, step, why);
}

static enum sim_result run(enum retry_behaviour behaviour, json_t *vector, struct arena *a,
                           struct err *why)
{
    struct given given = {.initial = 0};
    struct story s = {.n = 0};
    json_t *given_j, *steps, *step;
    size_t i;
    if (!sim_unpack(vector, "vector", why, "{s:o, s:o}", "given", &given_j, "steps", &steps) ||
        !read_given(given_j, behaviour, a, &given, why))
        return SIM_BAD;
    if (!json_is_array(steps) || json_array_size(steps) == 0) {
        err_set(why, "steps: must be an array of at least one step");
        return SIM_BAD;
    }
    s.v = arena_alloc(a, json_array_size(steps) * sizeof *s.v);
    sim_world_init(&s.world, &given.policy, given.jitter, (unsigned)given.initial);
    enum sim_result result = SIM_OK;
    json_array_foreach(steps, i, step)
    {
        result = run_step(&s, step, i + 1, a, why);
        if (result != SIM_OK)
            break;
    }
    return result;
}

static enum sim_result run_21(json_t *vector, struct arena *a, struct err *why)
{
    return run(RETRY_BEHAVIOUR_21, vector, a, why);
}

static enum sim_result run_20(json_t *vector, struct arena *a, struct err *why)
{
    return run(RETRY_BEHAVIOUR_20, vector, a, why);
}

static bool is_about(json_t *file, const char *behaviour, struct err *why)
{
    const char *spec = json_string_value(json_object_get(file, "spec"));
    if (!spec)
        return err_set(why, "spec: must be a string");
    if (strcmp(spec, behaviour) != 0)
        return err_set(why, "spec \"%s\" cannot be run; \"2.1\" and \"2.0\" can", spec);
    return true;
}

static bool accepts_21(json_t *file, struct err *why)
{
    return is_about(file, "2.1", why);
}

static bool accepts_20(json_t *file, struct err *why)
{
    return is_about(file, "2.0", why);
}

const struct sim_format sim_standard_21 = {"retryd-standard-vectors/1", accepts_21, run_21};
const struct sim_format sim_standard_20 = {"retryd-standard-vectors/1", accepts_20, run_20};
