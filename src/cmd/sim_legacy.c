/* Format retryd-legacy-vectors/1: attempt results in order, and what one request to an SDK's legacy
 * strategy comes to: how many attempts, which waits, which answer. */
#include "cmd/sim.h"

#include "core/aws/legacy.h"
#include "core/base/units.h"
#include <math.h>
#include <time.h>

enum { ATTEMPTS_MAX = 100 };

struct expected {
    json_int_t attempts;
    json_t *delays_ms;
    const char *outcome;
    enum retry_failure failure; /* RETRY_FAIL_NONE: not looked at */
    json_int_t status, quota;   /* -1: not looked at */
};

struct told {
    struct retry_policy policy;
    double jitter;
    json_int_t tokens;
    json_t *steps;
    struct expected expected;
};

/* --- reading --- */

/* Who a request to the service's own host is for. */
static void identify(const char *service, const char *operation, struct arena *a,
                     struct aws_target *out)
{
    const char *prefix = strcmp(service, "dynamodb-streams") == 0 ? "streams.dynamodb" : service;
    char host[300];
    snprintf(host, sizeof host, "%.200s.us-east-1.amazonaws.com", prefix);
    struct http_req req = {.method = SLICE("POST"), .method_id = HTTP_POST, .minor = 1};
    aws_identify(&req, slice_str(host), SLICE("/"), SLICE_NONE, a, out);
    out->operation = slice_str(operation);
}

static bool has_tag(json_t *tags, const char *tag)
{
    size_t i;
    json_t *each;
    json_array_foreach(tags, i, each)
    {
        if (json_is_string(each) && strcmp(json_string_value(each), tag) == 0)
            return true;
    }
    return false;
}

static bool failure_named(const char *name, enum retry_failure *out, struct err *why)
{
    static const struct {
        const char *name;
        enum retry_failure failure;
    } names[] = {
        {"dns_failure", RETRY_FAIL_DNS},
        {"connect_refused", RETRY_FAIL_CONNECT_REFUSED},
        {"connect_timeout", RETRY_FAIL_CONNECT_TIMEOUT},
        {"tls_handshake", RETRY_FAIL_TLS},
        {"tls_verify", RETRY_FAIL_CERTIFICATE},
        {"send_error", RETRY_FAIL_SEND},
        {"read_timeout", RETRY_FAIL_READ_TIMEOUT},
        {"reset", RETRY_FAIL_RESET},
        {"empty_reply", RETRY_FAIL_CLOSED},
        {"reset_mid_body", RETRY_FAIL_BODY_RESET},
        {"truncated_body", RETRY_FAIL_TRUNCATED},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].failure;
            return true;
        }
    }
    return err_set(why, "error: \"%s\" is not known", name);
}

static bool read_expected(json_t *j, struct expected *e, struct err *why)
{
    const char *error = NULL;
    json_t *attempts, *status = NULL, *quota = NULL;
    *e = (struct expected){.status = -1, .quota = -1};
    if (!sim_unpack(j, "expect", why, "{s:o, s:o, s:s, s?o, s?s, s?o !}", "attempts", &attempts,
                    "delays_ms", &e->delays_ms, "outcome", &e->outcome, "final_status", &status,
                    "final_error", &error, "quota_after", &quota) ||
        !sim_number(attempts, "expect: attempts", 1, ATTEMPTS_MAX, &e->attempts, why) ||
        !sim_number(status, "expect: final_status", 200, 599, &e->status, why) ||
        !sim_number(quota, "expect: quota_after", 0, INT32_MAX, &e->quota, why) ||
        (error && !failure_named(error, &e->failure, why)))
        return false;
    size_t i;
    json_t *delay;
    bool numbers = json_is_array(e->delays_ms);
    json_array_foreach(e->delays_ms, i, delay)
    {
        numbers = numbers && json_is_number(delay);
    }
    return numbers ? true : err_set(why, "expect: delays_ms: must be an array of numbers");
}

static bool read_vector(json_t *vector, struct arena *a, struct told *t, struct err *why)
{
    const char *flavour, *service, *operation = "";
    json_t *attempts = NULL, *initial = NULL, *tags = NULL, *expect;
    json_int_t setting = 0;
    if (!sim_unpack(vector, "vector", why, "{s:s, s:s, s?s, s?o, s?o, s:o, s:F, s:o, s?o}",
                    "flavour", &flavour, "service", &service, "operation", &operation,
                    "max_attempts", &attempts, "quota_initial", &initial, "steps", &t->steps,
                    "jitter", &t->jitter, "expect", &expect, "tags", &tags) ||
        !sim_number(attempts, "max_attempts", 1, ATTEMPTS_MAX, &setting, why) ||
        !legacy_flavour_known(slice_str(flavour), why) || !read_expected(expect, &t->expected, why))
        return false;
    if (!(t->jitter >= 0.0 && t->jitter <= 1.0))
        return err_set(why, "jitter: must be a number from 0 to 1");
    if (!json_is_array(t->steps) || json_array_size(t->steps) == 0)
        return err_set(why, "steps: must be an array of at least one step");

    struct aws_target target;
    identify(service, operation, a, &target);
    legacy_policy(slice_str(flavour), &target, (unsigned)setting, &t->policy);
    t->policy.clock_skew = has_tag(tags, "clock_skew");
    if (t->policy.quota == RETRY_QUOTA_NONE && (initial || t->expected.quota >= 0))
        return err_set(why, "quota_initial, quota_after: flavour \"%s\" has no quota", flavour);
    t->tokens = t->policy.quota_capacity;
    return sim_number(initial, "quota_initial", 0, t->tokens, &t->tokens, why);
}

static bool body_named(const char *name, enum retry_body *out, struct err *why)
{
    static const char *const names[] = {
        [RETRY_BODY_EMPTY] = "empty",
        [RETRY_BODY_JSON] = "json_no_type",
        [RETRY_BODY_OTHER] = "html",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum retry_body)i;
            return true;
        }
    }
    return err_set(why, "body: \"%s\" is not one of empty|json_no_type|html", name);
}

static bool read_step(json_t *j, struct arena *a, struct retry_outcome *o, struct err *why)
{
    const char *error = NULL, *code = "", *body = "empty", *message = "";
    json_t *status = NULL, *headers = NULL;
    int checksum = false, in_200 = false;
    json_int_t n = 0;
    *o = (struct retry_outcome){.status = 0};
    if (!sim_unpack(j, "step", why, "{s?s, s?o, s?s, s?s, s?s, s?o, s?b, s?b !}", "error", &error,
                    "status", &status, "code", &code, "body", &body, "message", &message, "headers",
                    &headers, "checksum_mismatch", &checksum, "s3_error_in_200", &in_200))
        return false;
    if (error)
        return json_object_size(j) == 1 ? failure_named(error, &o->failure, why)
                                        : err_set(why, "error stands alone");
    if (!status)
        return err_set(why, "needs status or error");
    struct http_resp resp = {.minor = 1};
    struct aws_reading reading;
    if (!sim_number(status, "status", 200, 599, &n, why) ||
        !sim_headers(headers, &resp.fields, a, why))
        return false;
    if (in_200 && n != 200)
        return err_set(why, "s3_error_in_200 goes with status 200");
    resp.status = (unsigned)n;
    const struct aws_response head = {.head = &resp, .whole = true, .now_s = time(NULL)};
    aws_outcome(&head, &(struct aws_target){.is_aws = true}, &(struct aws_options){0}, a, &reading);
    *o = reading.outcome;
    o->code = slice_str(code);
    o->error_in_200 = in_200;
    o->socket_message = strstr(message, RETRY_SOCKET_MESSAGE) != NULL;
    o->failure = checksum ? RETRY_FAIL_CHECKSUM : RETRY_FAIL_NONE;
    return body_named(body, &o->body, why);
}

/* --- comparing --- */

static bool same_delays(const struct expected *e, const double *delays_ms, size_t n,
                        struct err *why)
{
    const double tolerance_ms = 1.0;
    if (json_array_size(e->delays_ms) != n)
        return err_set(why, "step %zu, delays_ms, expected %zu of them, got %zu", n + 1,
                       json_array_size(e->delays_ms), n);
    for (size_t i = 0; i < n; i++) {
        double expected = json_number_value(json_array_get(e->delays_ms, i));
        if (fabs(expected - delays_ms[i]) > tolerance_ms)
            return err_set(why, "step %zu, delays_ms, expected %g, got %g", i + 1, expected,
                           delays_ms[i]);
    }
    return true;
}

static bool same_end(const struct expected *e, size_t attempts, const struct retry_outcome *o,
                     const struct sim_end *end, struct err *why)
{
    const char *outcome = end->verdict.class == RETRY_SUCCESS ? "success" : "error";
    unsigned status = end->relayed ? o->status : 0;
    if (e->attempts != (json_int_t)attempts)
        return err_set(why, "step %zu, attempts, expected %" JSON_INTEGER_FORMAT ", got %zu",
                       attempts, e->attempts, attempts);
    if (strcmp(e->outcome, outcome) != 0)
        return err_set(why, "step %zu, outcome, expected %s, got %s", attempts, e->outcome,
                       outcome);
    if (e->status >= 0 && e->status != (json_int_t)status)
        return err_set(why, "step %zu, final_status, expected %" JSON_INTEGER_FORMAT ", got %u",
                       attempts, e->status, status);
    if (e->failure != RETRY_FAIL_NONE && e->failure != end->failure)
        return err_set(why, "step %zu, final_error, expected %s, got %s", attempts,
                       retry_failure_name(e->failure),
                       end->relayed ? "none" : retry_failure_name(end->failure));
    if (e->quota >= 0 && e->quota != (json_int_t)end->verdict.tokens_after)
        return err_set(why, "step %zu, quota_after, expected %" JSON_INTEGER_FORMAT ", got %u",
                       attempts, e->quota, end->verdict.tokens_after);
    return true;
}

/* --- a vector --- */

static enum sim_result run(json_t *vector, struct arena *a, struct err *why)
{
    struct told told;
    struct sim_world world;
    struct sim_request request = {.waiting = false};
    double delays_ms[ATTEMPTS_MAX];
    struct retry_outcome o;
    struct sim_end end;
    struct err detail;
    size_t attempts = 0;
    if (!read_vector(vector, a, &told, why))
        return SIM_BAD;
    size_t last = json_array_size(told.steps) - 1;
    sim_world_init(&world, &told.policy, told.jitter, (unsigned)told.tokens);
    do {
        size_t i = attempts < last ? attempts : last; /* the last step repeats */
        if (!read_step(json_array_get(told.steps, i), a, &o, &detail)) {
            err_set(why, "step %zu: %s", i + 1, detail.text);
            return SIM_BAD;
        }
        sim_attempt(&world, &request, &o, &end);
        delays_ms[attempts++] = ns_to_ms(end.verdict.delay_ns);
    } while (request.waiting);
    return same_end(&told.expected, attempts, &o, &end, why) &&
                   same_delays(&told.expected, delays_ms, attempts - 1, why)
               ? SIM_OK
               : SIM_FAIL;
}

static bool accepts(json_t *file, struct err *why)
{
    (void)file, (void)why;
    return true;
}

const struct sim_format sim_legacy = {"retryd-legacy-vectors/1", accepts, run};
