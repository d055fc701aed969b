/* For people: the verdict, then how it came about, in the order in which it is found. Two columns;
 * a block a question. */
#include "cmd/explain.h"

#include "core/aws/sigtime.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <stdarg.h>

static void row(FILE *to, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void row(FILE *to, const char *name, const char *fmt, ...)
{
    va_list ap;
    fprintf(to, "  %-14s", name);
    va_start(ap, fmt);
    vfprintf(to, fmt, ap);
    va_end(ap);
    fputc('\n', to);
}

static struct slice or_dash(struct slice s)
{
    return s.n ? s : SLICE("-");
}

static void say_request(const struct explanation *e, FILE *to)
{
    const struct aws_target *t = &e->target;
    struct slice key = explain_caller(e);
    fputs("\nrequest\n", to);
    row(to, "to", "%.*s %.*s, %s", SLICE_FMT(e->facts.method_text), SLICE_FMT(e->facts.host),
        explain_access_words(e->access));
    row(to, "service", "%.*s, by %s", SLICE_FMT(t->service_name), explain_found_by(e));
    row(to, "region", "%.*s", SLICE_FMT(or_dash(t->region)));
    row(to, "operation", "%.*s%s", SLICE_FMT(or_dash(t->operation)),
        t->long_poll ? ", long polling" : "");
    if (t->access_key.n > 0)
        row(to, "caller", "...%.*s%s", SLICE_FMT(key), t->presigned ? ", by a presigned URL" : "");
    else
        row(to, "caller", "%s", "unsigned");
    row(to, "protocol", "%s", explain_wire_name(e->wire));
    char why[EXPLAIN_LINE_MAX];
    explain_repeat(e, why);
    row(to, "repeatable", "%s: %s", explain_may_repeat(e) ? "yes" : "no", why);
}

static void say_answer(const struct explanation *e, FILE *to)
{
    const struct aws_reading *r = &e->reading;
    const struct verdict *v = &e->v[0].least;
    char table[EXPLAIN_LINE_MAX], answer[EXPLAIN_LINE_MAX];
    explain_table(e, table);
    explain_answer(e, answer);
    fputs("\nanswer\n", to);
    if (e->x->has_response)
        row(to, "status", "%u, body read as %s%s", e->x->resp.status,
            errcode_format_name(r->error.format),
            r->outcome.error_in_200 ? ", an error inside a success" : "");
    if (e->x->failure)
        row(to, "failure", "%s", retry_failure_name(e->x->failure));
    if (r->outcome.failure != e->x->failure && r->outcome.failure)
        row(to, "failure", "%s", retry_failure_name(r->outcome.failure));
    if (r->outcome.code.n > 0)
        row(to, "code", "%.*s, from %s", SLICE_FMT(r->outcome.code),
            errcode_source_name(r->error.source));
    row(to, "class", "%s", retry_class_name(v->class));
    row(to, "by rule", "%s: %s", retry_rule_name(v->rule), explain_rule_words(v->rule));
    if (table[0])
        row(to, "in table", "%s", table);
    row(to, "if delivered", "%s", answer);
}

/* "the retry after attempt 1", for as long as there are some. */
static void say_retries(const struct explanation *e, FILE *to)
{
    const char *name, *how;
    int64_t ms;
    bool quota = e->effective.policy.quota != RETRY_QUOTA_NONE;
    fputs("\nretries, if every attempt ends like this one and the quota is full\n", to);
    for (unsigned i = 0; i < e->n; i++) {
        const struct explain_step *s = &e->v[i];
        char attempt[32], gain[96] = "";
        if (s->least.what != VERDICT_RETRY) {
            row(to, "then", "%s (%s)", "the answer is delivered", verdict_why_name(s->least.why));
            break;
        }
        if (quota)
            snprintf(gain, sizeof gain, ", costs %u, leaves %u, a success gives back %u",
                     s->least.cost, s->least.tokens_after, s->gain);
        snprintf(attempt, sizeof attempt, "attempt %u", s->attempt + 1);
        row(to, attempt, "wait %" PRId64 "..%" PRId64 " ms%s%s", explain_ms(s->least_ns),
            explain_ms(s->most_ns), gain,
            s->most.what == VERDICT_RETRY ? "" : "; too late after a longer wait");
    }
    if (explain_server_wish(e, &name, &ms, &how))
        row(to, "server asks", "%s %" PRId64 " ms: %s", name, ms, how);
    if (e->effective.policy.mode == RETRY_MODE_ADAPTIVE)
        row(to, "limiter", "%s", "adaptive mode may make each attempt wait for its send token");
    if (e->effective.policy.long_poll)
        row(to, "long polling", "%s", "without tokens the answer is delivered after the wait");
}

static void say_signature(const struct explanation *e, FILE *to)
{
    char end[EXPLAIN_TIME_MAX], moment[EXPLAIN_TIME_MAX];
    if (e->deadline_s == SIGTIME_NEVER)
        return;
    explain_time(e->deadline_s, end);
    explain_time(e->moment_s, moment);
    fputs("\nsignature\n", to);
    row(to, "good until", "%s", end);
    row(to, "seen from", "%s, %s", moment,
        e->moment_is_date ? "the Date of the answer" : "the clock of this machine");
    row(to, "seconds left", "%" PRId64, explain_signature_left_ns(e) / NS_PER_S);
    row(to, "in time", "%s", explain_in_time(e));
}

struct settings_view {
    FILE *to;
    const struct explanation *e;
};

/* What decided here; of the rest, what somebody has set. */
static bool matters(const struct explanation *e, const struct effective_line *line)
{
    static const char *const always[] = {"mode", "max_attempts", "max_backoff", "quota.capacity"};
    bool throttling = e->v[0].least.class == RETRY_THROTTLING;
    const char *base = throttling ? "base_delay_throttling" : "base_delay";
    const char *cost = throttling ? "quota.cost_throttling" : "quota.cost_transient";
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (strcmp(line->name, always[i]) == 0)
            return true;
    if (e->reading.outcome.failure && strcmp(line->name, "quota.cost_timeout") == 0)
        return true;
    return strcmp(line->name, base) == 0 || strcmp(line->name, cost) == 0 ||
           (strcmp(line->origin, "default") != 0 && strcmp(line->origin, "flavour") != 0);
}

static void say_setting(void *arg, const struct effective_line *line)
{
    const struct settings_view *v = arg;
    if (matters(v->e, line))
        fprintf(v->to, "  %-24s%-12s%s\n", line->name, line->value, line->origin);
}

void explain_text(const struct explanation *e, FILE *to)
{
    char summary[EXPLAIN_LINE_MAX];
    struct settings_view v = {to, e};
    explain_summary(e, summary);
    fprintf(to, "%s\n", summary);
    say_request(e, to);
    say_answer(e, to);
    if (explain_is_seen(e) && e->v[0].least.what == VERDICT_RETRY)
        say_retries(e, to);
    say_signature(e, to);
    fputs("\nsettings that matter here, and where they come from\n", to);
    config_effective_show(e->config, &e->facts, &e->effective, say_setting, &v);
}
