/* For scripts: one object, described in retryd(8). */
#include "cmd/explain.h"

#include "core/aws/sigtime.h"
#include "core/base/units.h"

#include <ctype.h>
#include <jansson.h>

/* Text that need not be UTF-8, such as the name of a file. */
static json_t *text(const char *s)
{
    char ascii[EXPLAIN_LINE_MAX];
    json_t *j = json_string(s);
    if (j)
        return j;
    snprintf(ascii, sizeof ascii, "%s", s);
    for (char *p = ascii; *p; p++)
        if (!isascii((unsigned char)*p))
            *p = '?';
    return json_string(ascii);
}

/* null for the empty slice. */
static json_t *word(struct slice s)
{
    return s.n ? json_stringn(s.p, s.n) : json_null();
}

static json_t *word_or_null(const char *s)
{
    return s[0] ? text(s) : json_null();
}

static json_t *request_of(const struct explanation *e)
{
    static const char *const access[] = {
        [EXPLAIN_OPENED] = "opened",     [EXPLAIN_PLAIN] = "plain",
        [EXPLAIN_UNREAD] = "unread",     [EXPLAIN_PORT] = "port_refused",
        [EXPLAIN_HOST] = "host_refused",
    };
    const struct aws_target *t = &e->target;
    return json_pack("{s:o, s:o, s:s, s:o, s:s, s:o, s:o, s:b, s:b, s:o, s:s}", "method",
                     word(e->facts.method_text), "host", word(e->facts.host), "access",
                     access[e->access], "service", word(t->service_name), "found_by",
                     explain_found_by(e), "region", word(t->region), "operation",
                     word(t->operation), "long_poll", t->long_poll, "presigned", t->presigned,
                     "caller", word(explain_caller(e)), "protocol", explain_wire_name(e->wire));
}

static json_t *answer_of(const struct explanation *e)
{
    const struct aws_reading *r = &e->reading;
    const struct explain_case *x = e->x;
    enum retry_failure f = x->failure ? x->failure : r->outcome.failure;
    char table[EXPLAIN_LINE_MAX], delivered[EXPLAIN_LINE_MAX];
    const struct verdict *v = &e->v[0].least;
    explain_table(e, table);
    explain_answer(e, delivered);
    return json_pack("{s:o, s:o, s:s, s:o, s:s, s:b, s:s, s:s, s:s, s:o, s:s}", "status",
                     x->has_response ? json_integer(x->resp.status) : json_null(), "failure",
                     word_or_null(retry_failure_name(f)), "format",
                     errcode_format_name(r->error.format), "code", word(r->outcome.code),
                     "code_from", errcode_source_name(r->error.source), "error_in_200",
                     r->outcome.error_in_200, "class", retry_class_name(v->class), "rule",
                     retry_rule_name(v->rule), "rule_text", explain_rule_words(v->rule), "table",
                     word_or_null(table), "delivered_as", delivered);
}

static json_t *retries_of(const struct explanation *e)
{
    json_t *all = json_array();
    if (!explain_is_seen(e))
        return all;
    for (unsigned i = 0; i < e->n && e->v[i].least.what == VERDICT_RETRY; i++) {
        const struct explain_step *s = &e->v[i];
        json_array_append_new(
            all, json_pack("{s:i, s:I, s:I, s:i, s:i, s:i, s:b}", "attempt", (int)s->attempt + 1,
                           "wait_min_ms", (json_int_t)explain_ms(s->least_ns), "wait_max_ms",
                           (json_int_t)explain_ms(s->most_ns), "cost", (int)s->least.cost,
                           "tokens_left", (int)s->least.tokens_after, "gain_of_success",
                           (int)s->gain, "sure", s->most.what == VERDICT_RETRY));
    }
    return all;
}

static json_t *wish_of(const struct explanation *e)
{
    const char *name, *how;
    int64_t ms;
    if (!explain_server_wish(e, &name, &ms, &how))
        return json_null();
    return json_pack("{s:s, s:I, s:s}", "header", name, "ms", (json_int_t)ms, "effect", how);
}

static json_t *signature_of(const struct explanation *e)
{
    char end[EXPLAIN_TIME_MAX], moment[EXPLAIN_TIME_MAX];
    if (e->deadline_s == SIGTIME_NEVER)
        return json_null();
    explain_time(e->deadline_s, end);
    explain_time(e->moment_s, moment);
    return json_pack("{s:s, s:s, s:s, s:I, s:s}", "good_until", end, "seen_from", moment, "clock",
                     e->moment_is_date ? "answer" : "machine", "seconds_left",
                     (json_int_t)(explain_signature_left_ns(e) / NS_PER_S), "in_time",
                     explain_in_time(e));
}

static void add_setting(void *arg, const struct effective_line *line)
{
    json_array_append_new(arg, json_pack("{s:s, s:o, s:o}", "name", line->name, "value",
                                         text(line->value), "origin", text(line->origin)));
}

void explain_json(const struct explanation *e, FILE *to)
{
    char summary[EXPLAIN_LINE_MAX], why[EXPLAIN_LINE_MAX];
    json_t *settings = json_array();
    const struct retry_policy *p = &e->effective.policy;
    explain_summary(e, summary);
    explain_repeat(e, why);
    config_effective_show(e->config, &e->facts, &e->effective, add_setting, settings);
    json_t *all =
        json_pack("{s:s, s:o, s:s, s:i, s:i, s:i, s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:o}",
                  "verdict", explain_verdict_word(e), "summary", text(summary), "why",
                  verdict_why_name(e->v[0].least.why), "attempt", (int)e->x->attempt,
                  "max_attempts", (int)p->max_attempts, "quota_capacity",
                  p->quota == RETRY_QUOTA_NONE ? 0 : (int)p->quota_capacity, "request",
                  request_of(e), "answer", answer_of(e), "may_repeat", explain_may_repeat(e),
                  "may_repeat_text", why, "retries", retries_of(e), "server_asks", wish_of(e),
                  "signature", signature_of(e), "settings", settings);
    json_dumpf(all, to, JSON_INDENT(2));
    fputc('\n', to);
    json_decref(all);
}
