/* The effective numbers of one request as text, each with its origin: for `config --service` and
 * `explain`. One row a number: its name, how it is written, and the two places where it can be set.
 */
#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/config/config.h"
#include "core/config/option.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 96 };

/* Not rows of a rule: it cannot set the number; several of its rows do. */
enum { NO_RULE_ROW = -1, WHOLE_RULE = -2 };

struct look {
    const struct config *config;
    const struct request_facts *facts;
    const struct effective *e;
    struct retry_policy plain; /* the same without a service, for what is special about this one */
};

static void number_text(uint64_t v, char out[TEXT_MAX])
{
    snprintf(out, TEXT_MAX, "%" PRIu64, v);
}

static void duration_text(int64_t ns, char out[TEXT_MAX])
{
    if (ns == INT64_MAX)
        snprintf(out, TEXT_MAX, "none");
    else if (ns % NS_PER_S == 0)
        snprintf(out, TEXT_MAX, "%" PRId64 "s", ns / NS_PER_S);
    else
        snprintf(out, TEXT_MAX, "%" PRId64 "ms", ns / NS_PER_MS);
}

static void bound_text(int64_t ns, char out[TEXT_MAX])
{
    duration_text(ns > 0 ? ns : INT64_MAX, out);
}

static const char *yes_no(bool b)
{
    return b ? "true" : "false";
}

/* --- one writer a row --- */

#define WRITER(name) static void name(const struct look *l, const struct retry_policy *p, char *out)
#define COUNT_WRITER(name, field)                                                                  \
    WRITER(name)                                                                                   \
    {                                                                                              \
        (void)l;                                                                                   \
        number_text(p->field, out);                                                                \
    }
#define DURATION_WRITER(name, field)                                                               \
    WRITER(name)                                                                                   \
    {                                                                                              \
        (void)l;                                                                                   \
        duration_text(p->field, out);                                                              \
    }

COUNT_WRITER(max_attempts, max_attempts)
DURATION_WRITER(base_delay, base_transient_ns)
DURATION_WRITER(base_delay_throttling, base_throttling_ns)
DURATION_WRITER(max_backoff, max_backoff_ns)
COUNT_WRITER(quota_capacity, quota_capacity)
COUNT_WRITER(cost_transient, cost_transient)
COUNT_WRITER(cost_timeout, cost_timeout)
COUNT_WRITER(cost_throttling, cost_throttling)

WRITER(mode)
{
    static const char *const names[] = {"off", "standard", "adaptive", "legacy"};
    (void)l;
    snprintf(out, TEXT_MAX, "%s", names[p->mode]);
}

WRITER(rule)
{
    (void)p;
    if (l->e->rule)
        snprintf(out, TEXT_MAX, "rules[%u]", l->e->rule->number);
    else
        snprintf(out, TEXT_MAX, "none");
}

WRITER(profile)
{
    (void)p;
    bool generic = l->e->rule && rule_has(l->e->rule, profile);
    snprintf(out, TEXT_MAX, "%s", generic ? "generic" : "aws");
}

WRITER(flavour)
{
    const struct rule *r = l->e->rule;
    const char *name = r && rule_has(r, flavour) ? r->flavour : l->config->retry_flavour;
    snprintf(out, TEXT_MAX, "%s", p->mode == RETRY_MODE_LEGACY ? name : "none");
}

WRITER(behaviour)
{
    (void)l;
    bool old = p->behaviour == RETRY_BEHAVIOUR_20;
    snprintf(out, TEXT_MAX, "%s", p->mode == RETRY_MODE_LEGACY ? "none" : old ? "2.0" : "2.1");
}

WRITER(retry_429)
{
    (void)l;
    snprintf(out, TEXT_MAX, "%s", yes_no(p->retry_429));
}

WRITER(modeled_errors)
{
    (void)p;
    snprintf(out, TEXT_MAX, "%s", yes_no(l->config->modeled_errors));
}

WRITER(crc32)
{
    (void)l;
    snprintf(out, TEXT_MAX, "%s", yes_no(p->crc32 != RETRY_CRC32_NONE));
}

WRITER(s3_errors)
{
    (void)p;
    snprintf(out, TEXT_MAX, "%s", l->config->s3_errors == S3_ERRORS_ALL ? "all" : "core");
}

WRITER(extra_codes)
{
    (void)l;
    number_text(p->override ? p->override->codes.n : 0, out);
}

WRITER(extra_statuses)
{
    (void)l;
    number_text(p->override ? p->override->statuses.n : 0, out);
}

WRITER(repeats)
{
    (void)p;
    snprintf(out, TEXT_MAX, "%s", yes_no(l->e->may_repeat));
}

WRITER(attempt_timeout)
{
    (void)p;
    bound_text(l->e->attempt_timeout_ns, out);
}

WRITER(client_timeout)
{
    (void)p;
    bound_text(l->e->client_timeout_ns, out);
}

WRITER(max_elapsed)
{
    (void)p;
    bound_text(l->e->max_elapsed_ns, out);
}

WRITER(max_total_wait)
{
    (void)p;
    duration_text(l->config->max_total_wait_ns, out);
}

WRITER(max_signature_age)
{
    (void)p;
    duration_text(l->config->max_signature_age_ns, out);
}

WRITER(replay_memory)
{
    (void)p;
    number_text(l->e->replay_memory_bytes, out);
}

WRITER(replay_disk)
{
    (void)p;
    number_text(l->e->replay_disk_bytes, out);
}

static const struct row {
    const char *name;
    void (*write)(const struct look *l, const struct retry_policy *p, char *out);
    int rule_row;
    const char *option; /* NULL: not to be set outside rules */
} rows[] = {
    {"rule", rule, WHOLE_RULE, NULL},
    {"profile", profile, RULE_ROW_profile, NULL},
    {"mode", mode, RULE_ROW_mode, "retry.mode"},
    {"flavour", flavour, RULE_ROW_flavour, "retry.flavour"},
    {"behaviour", behaviour, RULE_ROW_behaviour, "retry.behaviour"},
    {"max_attempts", max_attempts, RULE_ROW_max_attempts, "retry.max_attempts"},
    {"base_delay", base_delay, RULE_ROW_base_delay_ns, NULL},
    {"base_delay_throttling", base_delay_throttling, RULE_ROW_base_delay_throttling_ns, NULL},
    {"max_backoff", max_backoff, RULE_ROW_max_backoff_ns, "retry.max_backoff"},
    {"quota.capacity", quota_capacity, RULE_ROW_quota_capacity, NULL},
    {"quota.cost_transient", cost_transient, RULE_ROW_cost_transient, NULL},
    {"quota.cost_timeout", cost_timeout, RULE_ROW_cost_transient, NULL},
    {"quota.cost_throttling", cost_throttling, RULE_ROW_cost_throttling, NULL},
    {"retry_429", retry_429, NO_RULE_ROW, "retry.retry_429"},
    {"modeled_errors", modeled_errors, NO_RULE_ROW, "retry.modeled_errors"},
    {"crc32", crc32, NO_RULE_ROW, "retry.dynamodb_crc32"},
    {"s3_errors", s3_errors, NO_RULE_ROW, "retry.s3_errors"},
    {"codes_by_rule", extra_codes, WHOLE_RULE, NULL},
    {"statuses_by_rule", extra_statuses, WHOLE_RULE, NULL},
    {"repeats", repeats, RULE_ROW_any_method, NULL},
    {"attempt_timeout", attempt_timeout, RULE_ROW_attempt_timeout_ns, NULL},
    {"client_timeout", client_timeout, NO_RULE_ROW, "retry.client_timeout"},
    {"max_elapsed", max_elapsed, NO_RULE_ROW, "retry.max_elapsed"},
    {"max_total_wait", max_total_wait, NO_RULE_ROW, "retry.max_total_wait"},
    {"max_signature_age", max_signature_age, NO_RULE_ROW, "retry.max_signature_age"},
    {"replay_memory", replay_memory, RULE_ROW_replay_memory_bytes, "limits.replay_memory"},
    {"replay_disk", replay_disk, RULE_ROW_replay_disk_bytes, "limits.replay_disk"},
};

/* --- where from --- */

static const struct origin *of_option(const struct look *l, const char *path)
{
    struct slice key;
    const struct option *o = path ? option_find(slice_str(path), &key) : NULL;
    const struct origin *from = o ? &l->config->from[o - option_table] : NULL;
    return from && from->name ? from : NULL;
}

/* The same precedence as config_effective(). NULL: nowhere. */
static const struct origin *find_origin(const struct look *l, const struct row *row)
{
    const struct rule *r = l->e->rule;
    const struct service_retry *service = config_service(l->config, l->facts->target);
    if (r && row->rule_row == WHOLE_RULE)
        return &r->where;
    if (r && row->rule_row >= 0 && r->from[row->rule_row].name)
        return &r->from[row->rule_row];
    if (service && row->write == mode && service->mode >= 0)
        return &service->mode_from;
    if (service && row->write == max_attempts && service->max_attempts)
        return &service->max_attempts_from;
    const struct origin *from = of_option(l, row->option);
    /* What the SDKs are told about attempts a flavour may not hear. */
    bool unheard = row->write == max_attempts && from && from->for_sdks &&
                   l->config->max_attempts != l->e->policy.max_attempts;
    return unheard ? NULL : from;
}

/* Nobody set it: whose default is it? */
static const char *default_of(const struct look *l, const struct row *row, const char *value)
{
    char plain[TEXT_MAX];
    bool not_eligible = !l->e->may_repeat && !(l->e->rule && rule_has(l->e->rule, profile));
    row->write(l, &l->plain, plain);
    if (row->write == mode && not_eligible)
        return "neither AWS nor listed";
    if (strcmp(value, plain) != 0)
        return "service default";
    return l->e->policy.mode == RETRY_MODE_LEGACY ? "flavour" : "default";
}

static void emit_row(const struct look *l, const struct row *row,
                     void (*emit)(void *arg, const struct effective_line *line), void *arg)
{
    char value[TEXT_MAX], where[ORIGIN_TEXT_MAX];
    const struct origin *from = find_origin(l, row);
    row->write(l, &l->e->policy, value);
    if (from)
        origin_text(from, where);
    emit(arg, &(struct effective_line){row->name, value, from ? where : default_of(l, row, value)});
}

/* What this request would get if it were for no service in particular. */
static struct retry_policy plain_policy(const struct config *c, const struct request_facts *f,
                                        const struct effective *e)
{
    static const struct aws_target nobody = {.is_aws = true, .service_name = {"-", 1}};
    struct request_facts general = *f;
    struct effective out;
    general.target = &nobody;
    config_effective_under(c, &general, e->rule, &out);
    return out.policy;
}

void config_effective_show(const struct config *c, const struct request_facts *f,
                           const struct effective *e,
                           void (*emit)(void *arg, const struct effective_line *line), void *arg)
{
    struct look l = {.config = c, .facts = f, .e = e, .plain = plain_policy(c, f, e)};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        emit_row(&l, &rows[i], emit, arg);
}
