/* Rules, settings and defaults laid over each other for one request (retry-semantics §11; security
 * requirement E2). Runs for every request: it compares and copies, and allocates nothing. */
#include "core/aws/legacy.h"
#include "core/config/config.h"

/* --- which rule --- */

static bool in_words(const struct slice *v, size_t n, struct slice word)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(v[i], word))
            return true;
    }
    return n == 0;
}

static bool in_hosts(const struct rule *r, struct slice host)
{
    for (size_t i = 0; i < r->n_hosts; i++) {
        if (host_pattern_match(&r->hosts[i], host))
            return true;
    }
    return r->n_hosts == 0;
}

static bool in_keys(const struct rule *r, struct slice key)
{
    for (size_t i = 0; i < r->n_access_keys; i++) {
        struct slice k = r->access_keys[i];
        bool end_only = k.p[0] == '*';
        struct slice text = end_only ? slice_of(k.p + 1, k.n - 1) : k;
        if (slice_eq(text, key) ||
            (end_only && key.n > text.n && memcmp(key.p + key.n - text.n, text.p, text.n) == 0))
            return true;
    }
    return r->n_access_keys == 0;
}

static bool matches(const struct rule *r, const struct request_facts *f)
{
    const struct aws_target *t = f->target;
    return !(rule_has(r, profile) && t->is_aws) &&
           in_words(r->services, r->n_services, t->service_name) &&
           in_words(r->operations, r->n_operations, t->operation) &&
           in_words(r->listeners, r->n_listeners, f->listener) &&
           in_words(r->regions, r->n_regions, t->region) &&
           in_words(r->methods, r->n_methods, f->method_text) && in_keys(r, t->access_key) &&
           in_hosts(r, f->host);
}

static const struct rule *find_rule(const struct config *c, const struct request_facts *f)
{
    for (size_t i = 0; i < c->n_rules; i++) {
        if (matches(&c->rules[i], f))
            return &c->rules[i];
    }
    return NULL;
}

/* --- which strategy --- */

/* What was found to act on a request; rule and service may be NULL. */
struct layers {
    const struct config *config;
    const struct aws_target *target;
    const struct rule *rule;
    const struct service_retry *service;
    bool generic;
};

const struct service_retry *config_service(const struct config *c, const struct aws_target *t)
{
    for (size_t i = 0; i < c->n_services; i++) {
        if (slice_eq(slice_str(c->services[i].service), t->service_name))
            return &c->services[i];
    }
    return NULL;
}

static enum retry_mode mode_of(const struct layers *l)
{
    if (l->rule && rule_has(l->rule, mode))
        return l->rule->mode;
    if (l->service && l->service->mode >= 0)
        return (enum retry_mode)l->service->mode;
    return l->config->retry_mode;
}

static bool is_dynamodb_checked(const struct layers *l)
{
    return l->config->dynamodb_crc32 && l->target->service &&
           l->target->service->quirks & AWS_QUIRK_CRC32;
}

static struct retry_policy standard(const struct layers *l)
{
    struct retry_policy p = aws_policy(l->target);
    bool by_rule = l->rule && rule_has(l->rule, behaviour);
    if (l->config->modeled_errors)
        p.modeled_codes = aws_modeled_codes(l->target);
    if (is_dynamodb_checked(l))
        p.crc32 = RETRY_CRC32_SUCCESS;
    if ((by_rule ? l->rule->behaviour : l->config->retry_behaviour) == RETRY_BEHAVIOUR_20)
        p = retry_policy_as_20(&p);
    return p;
}

/* Attempts that the SDKs were told: a flavour honours them where its SDK does (legacy-modes 1). */
static unsigned shared_attempts(const struct config *c)
{
    return c->max_attempts_from.for_sdks ? c->max_attempts : 0;
}

static struct retry_policy legacy(const struct layers *l)
{
    struct retry_policy p = retry_policy_standard_21;
    bool by_rule = l->rule && rule_has(l->rule, flavour);
    const char *flavour = by_rule ? l->rule->flavour : l->config->retry_flavour;
    bool known = legacy_policy(slice_str(flavour), l->target, shared_attempts(l->config), &p);
    ASSERT(known);
    return p;
}

static struct retry_policy base(const struct layers *l, enum retry_mode mode)
{
    struct retry_policy p;
    if (l->generic)
        p = retry_policy_generic;
    else if (mode == RETRY_MODE_LEGACY)
        p = legacy(l);
    else
        p = standard(l);
    if (!l->generic || mode == RETRY_MODE_OFF)
        p.mode = mode;
    return p;
}

/* --- what was set --- */

static void set_attempts(const struct layers *l, struct retry_policy *p)
{
    const struct config *c = l->config;
    if (l->rule && rule_has(l->rule, max_attempts))
        p->max_attempts = l->rule->max_attempts;
    else if (l->service && l->service->max_attempts)
        p->max_attempts = l->service->max_attempts;
    else if (c->max_attempts && !(p->mode == RETRY_MODE_LEGACY && c->max_attempts_from.for_sdks))
        p->max_attempts = c->max_attempts;
}

/* A flavour without a quota gets one once its size is set; what is not set is as in standard mode.
 */
static void set_quota(const struct rule *r, struct retry_policy *p)
{
    if (rule_has(r, quota_capacity) && p->quota == RETRY_QUOTA_NONE) {
        p->quota = RETRY_QUOTA_STANDARD;
        p->cost_transient = retry_policy_standard_21.cost_transient;
        p->cost_timeout = retry_policy_standard_21.cost_timeout;
        p->cost_throttling = retry_policy_standard_21.cost_throttling;
        p->gain_first = retry_policy_standard_21.gain_first;
    }
    if (rule_has(r, quota_capacity))
        p->quota_capacity = r->quota_capacity;
    if (rule_has(r, cost_transient))
        p->cost_transient = p->cost_timeout = r->cost_transient;
    if (rule_has(r, cost_throttling))
        p->cost_throttling = r->cost_throttling;
}

static void set_by_rule(const struct rule *r, struct effective *e)
{
    struct retry_policy *p = &e->policy;
    if (rule_has(r, base_delay_ns))
        p->base_transient_ns = r->base_delay_ns;
    if (rule_has(r, base_delay_throttling_ns))
        p->base_throttling_ns = r->base_delay_throttling_ns;
    if (rule_has(r, max_backoff_ns))
        p->max_backoff_ns = r->max_backoff_ns;
    set_quota(r, p);
    if (r->override.codes.n || r->override.statuses.n)
        p->override = &r->override;
    if (rule_has(r, attempt_timeout_ns))
        e->attempt_timeout_ns = r->attempt_timeout_ns;
    if (rule_has(r, replay_memory_bytes))
        e->replay_memory_bytes = r->replay_memory_bytes;
    if (rule_has(r, replay_disk_bytes))
        e->replay_disk_bytes = r->replay_disk_bytes;
}

static bool asks_for(const struct retry_policy *p, enum retry_rule rule)
{
    for (const enum retry_rule *r = p->order; r && *r != RETRY_RULE_NONE; r++) {
        if (*r == rule)
            return true;
    }
    return false;
}

/* AWS hosts, listed hosts, and requests with an AWS signature may be repeated whatever their
 * method; others only by a rule with profile generic. */
static void set_eligibility(const struct layers *l, const struct request_facts *f,
                            struct effective *e)
{
    if (l->generic)
        e->may_repeat = http_method_idempotent(f->method) || f->idempotency_key ||
                        (rule_has(l->rule, any_method) && l->rule->any_method);
    else
        e->may_repeat = l->target->is_aws || f->intercept_listed;
    if (!l->generic && !e->may_repeat)
        e->policy.mode = RETRY_MODE_OFF;
}

void config_effective(const struct config *c, const struct request_facts *f, struct effective *out)
{
    config_effective_under(c, f, find_rule(c, f), out);
}

void config_effective_under(const struct config *c, const struct request_facts *f,
                            const struct rule *rule, struct effective *out)
{
    struct layers l = {
        .config = c,
        .target = f->target,
        .rule = rule,
        .service = config_service(c, f->target),
        .generic = rule && rule_has(rule, profile),
    };
    *out = (struct effective){
        .policy = base(&l, mode_of(&l)),
        .replay_memory_bytes = c->replay_memory_bytes,
        .replay_disk_bytes = c->replay_disk_bytes,
        .client_timeout_ns = c->client_timeout_ns,
        .max_elapsed_ns = c->max_elapsed_ns,
        .rule = rule,
    };
    struct retry_policy *p = &out->policy;
    set_attempts(&l, p);
    if (c->max_backoff_ns)
        p->max_backoff_ns = c->max_backoff_ns;
    p->retry_429 = p->retry_429 && c->retry_429;
    if (rule)
        set_by_rule(rule, out);
    out->aws = (struct aws_options){
        .modeled_errors = p->modeled_codes.n > 0,
        .s3_more = c->s3_errors == S3_ERRORS_ALL,
        .crc32 = p->crc32 != RETRY_CRC32_NONE,
        .socket_message = asks_for(p, RETRY_RULE_SOCKET_MESSAGE),
    };
    set_eligibility(&l, f, out);
}
