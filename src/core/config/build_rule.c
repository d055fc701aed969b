/* rules[N]: what must hold of a rule as a whole. */
#include "core/aws/aws.h"
#include "core/config/build.h"

/* --- the six lists, as the engine wants them --- */

/* Keeps v sorted; of two classes for one code the one that came first stays. */
static void insert_code(struct retry_code *v, size_t *n, struct slice code, enum retry_class class)
{
    size_t at = *n;
    while (at > 0 && slice_cmp(code, v[at - 1].code) < 0)
        at--;
    if (at > 0 && slice_eq(code, v[at - 1].code))
        return;
    memmove(v + at + 1, v + at, (*n - at) * sizeof *v);
    v[at] = (struct retry_code){.code = code, .class = class};
    (*n)++;
}

static void insert_status(struct retry_status *v, size_t *n, unsigned status,
                          enum retry_class class)
{
    size_t at = *n;
    while (at > 0 && status < v[at - 1].first)
        at--;
    if (at > 0 && status == v[at - 1].first)
        return;
    memmove(v + at + 1, v + at, (*n - at) * sizeof *v);
    v[at] = (struct retry_status){status, status, class};
    (*n)++;
}

/* "Never" is the strongest word, then "throttling". */
static void build_codes(struct rule *r, struct arena *a)
{
    size_t max = r->n_never_codes + r->n_throttling_codes + r->n_retry_codes, n = 0;
    if (max == 0)
        return;
    struct retry_code *v = arena_alloc(a, max * sizeof *v);
    for (size_t i = 0; i < r->n_never_codes; i++)
        insert_code(v, &n, r->never_codes[i], RETRY_FINAL);
    for (size_t i = 0; i < r->n_throttling_codes; i++)
        insert_code(v, &n, r->throttling_codes[i], RETRY_THROTTLING);
    for (size_t i = 0; i < r->n_retry_codes; i++)
        insert_code(v, &n, r->retry_codes[i], RETRY_TRANSIENT);
    r->override.codes = (struct retry_codes){v, n};
}

static void build_statuses(struct rule *r, struct arena *a)
{
    size_t max = r->n_never_statuses + r->n_throttling_statuses + r->n_retry_statuses, n = 0;
    if (max == 0)
        return;
    struct retry_status *v = arena_alloc(a, max * sizeof *v);
    for (size_t i = 0; i < r->n_never_statuses; i++)
        insert_status(v, &n, r->never_statuses[i], RETRY_FINAL);
    for (size_t i = 0; i < r->n_throttling_statuses; i++)
        insert_status(v, &n, r->throttling_statuses[i], RETRY_THROTTLING);
    for (size_t i = 0; i < r->n_retry_statuses; i++)
        insert_status(v, &n, r->retry_statuses[i], RETRY_TRANSIENT);
    r->override.statuses = (struct retry_statuses){v, n};
}

/* --- what must hold --- */

/* Profile generic is never for AWS. */
static void check_generic(struct build *b, const struct rule *r)
{
    const struct origin *at = &r->from[RULE_ROW_profile];
    if (!rule_has(r, profile))
        return;
    if (r->n_hosts == 0)
        build_complain_at(b, at,
                          "rules[%u].profile: generic needs match.host, with hosts outside AWS",
                          r->number);
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct host_pattern *p = &r->hosts[i];
        if (host_pattern_may_be_aws(p))
            build_complain_at(b, at,
                              "rules[%u].profile: generic is never for AWS, but match.host has "
                              "%s%s; name hosts outside AWS",
                              r->number, p->suffix ? "*." : "", p->text);
    }
}

static bool is_listener(const struct config *c, struct slice name)
{
    for (size_t i = 0; i < c->n_listeners; i++) {
        if (slice_eq(slice_str(c->listeners[i].name), name))
            return true;
    }
    return false;
}

static void check_rule(struct build *b, const struct rule *r)
{
    const struct config *c = b->config;
    for (size_t i = 0; i < r->n_listeners; i++) {
        if (!is_listener(c, r->listeners[i]))
            build_complain_at(b, &r->from[RULE_ROW_listeners],
                              "rules[%u].match.listener: no listener has the name \"%.*s\"",
                              r->number, SLICE_FMT(r->listeners[i]));
    }
    if (rule_has(r, mode) && r->mode == RETRY_MODE_LEGACY && !rule_has(r, flavour) &&
        !c->retry_flavour)
        build_complain_at(b, &r->from[RULE_ROW_mode],
                          "rules[%u].mode: legacy mode needs a flavour, here or in retry.flavour",
                          r->number);
    check_generic(b, r);
    if (rule_has(r, replay_memory_bytes) && r->replay_memory_bytes > c->replay_memory_total_bytes)
        build_complain_at(b, &r->from[RULE_ROW_replay_memory_bytes],
                          "rules[%u].replay_memory does not fit in limits.replay_memory_total",
                          r->number);
    if (rule_has(r, replay_disk_bytes) && r->replay_disk_bytes > c->replay_disk_total_bytes)
        build_complain_at(b, &r->from[RULE_ROW_replay_disk_bytes],
                          "rules[%u].replay_disk does not fit in limits.replay_disk_total",
                          r->number);
}

void build_rule_end(struct build *b)
{
    struct config *c = b->config;
    for (size_t i = 0; i < c->n_rules; i++) {
        check_rule(b, &c->rules[i]);
        build_codes(&c->rules[i], &c->arena);
        build_statuses(&c->rules[i], &c->arena);
    }
}
