/* The engine's vocabulary as sentences. Words are chosen here; what is true is decided elsewhere.
 */
#include "cmd/explain.h"

#include "core/aws/sigtime.h"
#include "core/base/attr.h"
#include "core/base/units.h"
#include "proxy/reply.h"

#include <inttypes.h>
#include <time.h>

static const struct verdict *first(const struct explanation *e)
{
    return &e->v[0].least;
}

static bool is_generic(const struct explanation *e)
{
    return e->effective.rule && rule_has(e->effective.rule, profile);
}

/* --- rules and tables --- */

const char *explain_rule_words(enum retry_rule r)
{
    static const char *const words[] = {
        [RETRY_RULE_NONE] = "no rule knows it",
        [RETRY_RULE_SUCCESS] = "a 2xx without an error in it",
        [RETRY_RULE_REFUSED] = "retryd itself refused to connect, which is final",
        [RETRY_RULE_OVERRIDE] = "the lists of a rule in the configuration name it",
        [RETRY_RULE_THROTTLING_CODE] = "its code is in the list of throttling codes",
        [RETRY_RULE_STATUS_429] = "status 429",
        [RETRY_RULE_CODE] = "its code is in the general list of codes",
        [RETRY_RULE_SERVICE_CODE] = "its code is in the list of the service",
        [RETRY_RULE_MODELED] = "the model of the service marks its code as retryable",
        [RETRY_RULE_THROTTLING_WORD] = "its code has \"throttl\" in it",
        [RETRY_RULE_OTHER_CODE] = "it has a code, and no list has it",
        [RETRY_RULE_SOCKET_MESSAGE] = "its message says that the request came too slowly",
        [RETRY_RULE_TRANSPORT] = "the list of transport failures says so",
        [RETRY_RULE_STATUS] = "its status is in the list of statuses",
        [RETRY_RULE_BODY_STATUS] = "its status, with such a body, is in the list of statuses",
        [RETRY_RULE_CLOCK_SKEW] = "its code or status speaks of a wrong clock",
    };
    ASSERT((size_t)r < ARRAY_LEN(words) && words[r]);
    return words[r];
}

void explain_table(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    static const char *const tables[] = {
        [RETRY_RULE_THROTTLING_CODE] = "error_codes.def, GENERAL, THROTTLING",
        [RETRY_RULE_CODE] = "error_codes.def, GENERAL",
        [RETRY_RULE_SERVICE_CODE] = "error_codes.def, rows of the service",
        [RETRY_RULE_MODELED] = "modeled_errors.def",
        [RETRY_RULE_TRANSPORT] = "transport failures of standard mode",
        [RETRY_RULE_STATUS] = "statuses of standard mode",
    };
    enum retry_rule r = first(e)->rule;
    bool has_table = (size_t)r < ARRAY_LEN(tables) && tables[r];
    char where[ORIGIN_TEXT_MAX];
    if (r == RETRY_RULE_OVERRIDE) {
        origin_text(&e->effective.rule->where, where);
        snprintf(out, EXPLAIN_LINE_MAX, "rules[%u] (%s)", e->effective.rule->number, where);
    } else if (has_table && e->effective.policy.mode == RETRY_MODE_LEGACY) {
        snprintf(out, EXPLAIN_LINE_MAX, "legacy.def, of the flavour");
    } else if (has_table && is_generic(e)) {
        snprintf(out, EXPLAIN_LINE_MAX, "profile generic");
    } else {
        snprintf(out, EXPLAIN_LINE_MAX, "%s", has_table ? tables[r] : "");
    }
}

/* --- the request --- */

const char *explain_wire_name(enum aws_wire w)
{
    static const char *const names[] = {
        [AWS_WIRE_JSON] = "json",
        [AWS_WIRE_QUERY] = "query",
        [AWS_WIRE_EC2] = "ec2",
        [AWS_WIRE_REST_XML] = "rest-xml",
    };
    ASSERT((size_t)w < ARRAY_LEN(names));
    return names[w];
}

const char *explain_access_words(enum explain_access a)
{
    static const char *const words[] = {
        [EXPLAIN_OPENED] = "retryd opens its tunnel",
        [EXPLAIN_PLAIN] = "plain HTTP",
        [EXPLAIN_UNREAD] = "retryd passes its tunnel on unread",
        [EXPLAIN_PORT] = "retryd refuses its port",
        [EXPLAIN_HOST] = "retryd refuses its host: aws_only",
    };
    ASSERT((size_t)a < ARRAY_LEN(words));
    return words[a];
}

bool explain_is_seen(const struct explanation *e)
{
    return e->access == EXPLAIN_OPENED || e->access == EXPLAIN_PLAIN;
}

const char *explain_found_by(const struct explanation *e)
{
    if (e->target.signing_name.n > 0)
        return "credential scope";
    return e->target.service ? "host" : e->target.is_aws ? "host, of no known service" : "nothing";
}

struct slice explain_caller(const struct explanation *e)
{
    struct slice key = e->target.access_key;
    return key.n > 4 ? slice_of(key.p + key.n - 4, 4) : SLICE_NONE;
}

bool explain_may_repeat(const struct explanation *e)
{
    return !e->too_large && (e->effective.may_repeat || e->unsent);
}

static const char *why_repeatable(const struct explanation *e)
{
    if (is_generic(e) && http_method_idempotent(e->facts.method))
        return "its method is idempotent (RFC 9110 9.2.2)";
    if (is_generic(e) && e->facts.idempotency_key)
        return "it has an Idempotency-Key";
    if (is_generic(e))
        return "the rule says any_method";
    if (aws_host(e->facts.host))
        return "a host of AWS";
    return e->target.is_aws ? "signed for AWS" : "one of intercept.hosts";
}

void explain_repeat(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    if (e->too_large)
        snprintf(out, EXPLAIN_LINE_MAX,
                 "its body is larger than limits.replay_memory and limits.replay_disk keep");
    else if (e->effective.may_repeat)
        snprintf(out, EXPLAIN_LINE_MAX, "%s", why_repeatable(e));
    else if (is_generic(e) && e->unsent)
        snprintf(out, EXPLAIN_LINE_MAX, "nothing of it was sent yet");
    else if (is_generic(e))
        snprintf(out, EXPLAIN_LINE_MAX, "%.*s is not idempotent (RFC 9110 9.2.2)",
                 SLICE_FMT(e->facts.method_text));
    else
        snprintf(out, EXPLAIN_LINE_MAX,
                 "neither a host of AWS, nor signed for it, nor one of intercept.hosts");
}

/* --- times --- */

int64_t explain_ms(int64_t ns)
{
    return ns / NS_PER_MS + (ns % NS_PER_MS > 0);
}

void explain_time(int64_t s, char out[EXPLAIN_TIME_MAX])
{
    time_t t = s;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, EXPLAIN_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, EXPLAIN_TIME_MAX, "-");
}

const char *explain_in_time(const struct explanation *e)
{
    int64_t left = explain_signature_left_ns(e);
    return e->v[0].most_ns <= left ? "yes" : e->v[0].least_ns <= left ? "maybe" : "no";
}

bool explain_server_wish(const struct explanation *e, const char **name, int64_t *ms,
                         const char **how)
{
    const struct retry_outcome *o = &e->reading.outcome;
    switch (e->effective.policy.retry_after) {
    case RETRY_AFTER_AMZ_MS:
        *name = "x-amz-retry-after";
        *how = "the wait is no shorter, but by 5000 ms longer at most";
        *ms = explain_ms(o->retry_after_ns);
        return o->has_retry_after;
    case RETRY_AFTER_HTTP_SECONDS:
    case RETRY_AFTER_HTTP_ANY:
        *name = "Retry-After";
        *how = e->effective.policy.retry_after == RETRY_AFTER_HTTP_ANY
                   ? "the wait is no shorter, up to max_backoff"
                   : "the wait is no shorter";
        *ms = explain_ms(o->http_after_ns);
        return o->http_after == RETRY_HTTP_AFTER_SECONDS ||
               (o->http_after == RETRY_HTTP_AFTER_DATE &&
                e->effective.policy.retry_after == RETRY_AFTER_HTTP_ANY);
    case RETRY_AFTER_NONE:
        break;
    }
    return false;
}

/* --- the end --- */

void explain_answer(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    if (e->under_way) {
        snprintf(out, EXPLAIN_LINE_MAX, "status %u, cut short: its body was not held back",
                 e->x->resp.status);
        return;
    }
    if (!e->x->failure) {
        snprintf(out, EXPLAIN_LINE_MAX, "status %u, as it came", e->x->resp.status);
        return;
    }
    enum reply_kind own = reply_for_failure(e->x->failure);
    snprintf(out, EXPLAIN_LINE_MAX, "status %u of retryd's own, X-Retryd-Error: %s",
             reply_status(own), reply_word(own));
}

/* What was wrong, shortly: "ThrottlingException", "status 404", "reset". */
static void what_it_was(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    const struct retry_outcome *o = &e->reading.outcome;
    if (o->failure)
        snprintf(out, EXPLAIN_LINE_MAX, "%s", retry_failure_name(o->failure));
    else if (o->code.n > 0)
        snprintf(out, EXPLAIN_LINE_MAX, "%.*s", SLICE_FMT(o->code));
    else
        snprintf(out, EXPLAIN_LINE_MAX, "status %u", o->status);
}

static void say_retry(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    const struct explain_step *s = &e->v[0];
    const struct retry_policy *p = &e->effective.policy;
    bool late = s->most.what != VERDICT_RETRY;
    int n =
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, wait %" PRId64 "..%" PRId64 " ms",
                 late ? "would be retried if it waits shortly enough" : "would be retried",
                 retry_class_name(s->least.class), explain_ms(s->least_ns), explain_ms(s->most_ns));
    if (p->quota != RETRY_QUOTA_NONE)
        n += snprintf(out + n, EXPLAIN_LINE_MAX - (size_t)n, ", costs %u of %u tokens",
                      s->least.cost, p->quota_capacity);
    if (late)
        snprintf(out + n, EXPLAIN_LINE_MAX - (size_t)n, "; %s allows for less", e->bound);
}

static void say_no_retry(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    const struct retry_policy *p = &e->effective.policy;
    const struct verdict *v = first(e);
    char it[EXPLAIN_LINE_MAX], why[EXPLAIN_LINE_MAX];
    const char *class = retry_class_name(v->class), *not = "would not be retried";
    what_it_was(e, it);
    explain_repeat(e, why);
    switch (v->why) {
    case VERDICT_NOT_RETRYABLE:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %.256s is final: %s", not, it,
                 explain_rule_words(v->rule));
        break;
    case VERDICT_MAX_ATTEMPTS:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, but attempt %u ends it (max_attempts %u)", not,
                 class, e->x->attempt, p->max_attempts);
        break;
    case VERDICT_QUOTA:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, but the quota of %u tokens does not cover it%s",
                 not, class, p->quota_capacity,
                 v->what == VERDICT_PENALTY ? "; delivered after a wait" : "");
        break;
    case VERDICT_UNREPLAYABLE:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, but %.256s", not, class, why);
        break;
    case VERDICT_DEADLINE:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, but too late for %s", not, class, e->bound);
        break;
    case VERDICT_OFF:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s, but %.256s", not, class,
                 e->effective.may_repeat || is_generic(e) ? "retries are off" : why);
        break;
    default:
        snprintf(out, EXPLAIN_LINE_MAX, "%s: %s", not, verdict_why_name(v->why));
    }
}

void explain_summary(const struct explanation *e, char out[EXPLAIN_LINE_MAX])
{
    if (!explain_is_seen(e))
        snprintf(out, EXPLAIN_LINE_MAX, "would not be retried: %s",
                 explain_access_words(e->access));
    else if (first(e)->what == VERDICT_RETRY)
        say_retry(e, out);
    else if (e->under_way)
        snprintf(out, EXPLAIN_LINE_MAX,
                 "would not be retried: %s, but its answer was already on its way to the client",
                 retry_failure_name(e->x->failure));
    else if (first(e)->why == VERDICT_SUCCESS)
        snprintf(out, EXPLAIN_LINE_MAX, "would be delivered: success");
    else
        say_no_retry(e, out);
}

const char *explain_verdict_word(const struct explanation *e)
{
    if (!explain_is_seen(e))
        return "unseen";
    switch (first(e)->what) {
    case VERDICT_RETRY:
        return e->v[0].most.what == VERDICT_RETRY ? "retry" : "maybe";
    case VERDICT_PENALTY:
        return "wait_and_deliver";
    case VERDICT_DELIVER:
        break;
    }
    return "deliver";
}
