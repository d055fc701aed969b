/* Rules that can never match, or never do what they say: nothing is wrong with them for a machine,
 * much for the person who wrote them. */
#include "core/aws/endpoint.h"
#include "core/config/option.h"
#include "core/config/settings.h"
#include "core/config/value.h"

#include <stdarg.h>
#include <stdio.h>

struct warn {
    const struct config *config;
    struct problems *out;
};

static void say(struct warn *w, const struct origin *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void say(struct warn *w, const struct origin *at, const char *fmt, ...)
{
    char what[400], where[ORIGIN_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    origin_text(at, where);
    problems_add(w->out, "%s: %s", where, what);
}

/* --- shadowed --- */

static bool has_word(const struct slice *v, size_t n, struct slice word)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(v[i], word))
            return true;
    }
    return false;
}

/* True if what meets the narrow list meets the wide one. */
static bool words_cover(const struct slice *wide, size_t n_wide, const struct slice *narrow,
                        size_t n_narrow)
{
    for (size_t i = 0; i < n_narrow && n_wide > 0; i++) {
        if (!has_word(wide, n_wide, narrow[i]))
            return false;
    }
    return n_wide == 0 || n_narrow > 0;
}

static bool key_covers(struct slice wide, struct slice narrow)
{
    if (wide.p[0] != '*')
        return slice_eq(wide, narrow);
    size_t n = wide.n - 1;
    return narrow.n >= n && memcmp(narrow.p + narrow.n - n, wide.p + 1, n) == 0;
}

static bool keys_cover(const struct rule *wide, const struct rule *narrow)
{
    for (size_t i = 0; i < narrow->n_access_keys && wide->n_access_keys > 0; i++) {
        bool covered = false;
        for (size_t j = 0; j < wide->n_access_keys && !covered; j++)
            covered = key_covers(wide->access_keys[j], narrow->access_keys[i]);
        if (!covered)
            return false;
    }
    return wide->n_access_keys == 0 || narrow->n_access_keys > 0;
}

static bool hosts_cover(const struct rule *wide, const struct rule *narrow)
{
    for (size_t i = 0; i < narrow->n_hosts && wide->n_hosts > 0; i++) {
        bool covered = false;
        for (size_t j = 0; j < wide->n_hosts && !covered; j++)
            covered = host_pattern_covers(&wide->hosts[j], &narrow->hosts[i]);
        if (!covered)
            return false;
    }
    return wide->n_hosts == 0 || narrow->n_hosts > 0;
}

/* A rule for hosts outside AWS leaves the same hosts to others when requests are signed. */
static bool rule_covers(const struct rule *wide, const struct rule *narrow)
{
    return (!rule_has(wide, profile) || rule_has(narrow, profile)) &&
           words_cover(wide->services, wide->n_services, narrow->services, narrow->n_services) &&
           words_cover(wide->operations, wide->n_operations, narrow->operations,
                       narrow->n_operations) &&
           words_cover(wide->listeners, wide->n_listeners, narrow->listeners,
                       narrow->n_listeners) &&
           words_cover(wide->regions, wide->n_regions, narrow->regions, narrow->n_regions) &&
           words_cover(wide->methods, wide->n_methods, narrow->methods, narrow->n_methods) &&
           keys_cover(wide, narrow) && hosts_cover(wide, narrow);
}

static void warn_shadowed(struct warn *w, const struct rule *r)
{
    for (size_t i = 0; i < r->number; i++) {
        const struct rule *before = &w->config->rules[i];
        char where[ORIGIN_TEXT_MAX];
        if (!rule_covers(before, r))
            continue;
        origin_text(&before->where, where);
        say(w, &r->where, "rules[%u] never matches: rules[%u] (%s) takes all its requests",
            r->number, before->number, where);
        return;
    }
}

/* --- names --- */

static struct slice nearest_service(struct slice name)
{
    size_t n, best_distance = name.n / 3 + 1;
    const struct service_row *rows = services_rows(&n);
    struct slice best = SLICE_NONE;
    for (size_t i = 0; i < n; i++) {
        size_t d = option_distance(name, rows[i].service.name);
        if (d < best_distance) {
            best_distance = d;
            best = rows[i].service.name;
        }
    }
    return best;
}

bool config_service_known(struct slice name, struct slice *near)
{
    *near = SLICE_NONE;
    if (aws_service_by_name(name))
        return true;
    *near = nearest_service(name);
    return false;
}

static void warn_service(struct warn *w, const struct origin *at, const char *path,
                         struct slice name)
{
    struct slice near;
    if (config_service_known(name, &near))
        return;
    if (near.n)
        say(w, at, "%s: no service is known as \"%.*s\"; did you mean %.*s?", path, SLICE_FMT(name),
            SLICE_FMT(near));
    else
        say(w, at, "%s: no service is known as \"%.*s\"", path, SLICE_FMT(name));
}

static bool is_upper_case(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] >= 'a' && s.p[i] <= 'z')
            return false;
    }
    return true;
}

static void warn_names(struct warn *w, const struct rule *r)
{
    char path[64];
    snprintf(path, sizeof path, "rules[%u].match.service", r->number);
    for (size_t i = 0; i < r->n_services; i++)
        warn_service(w, &r->from[RULE_ROW_services], path, r->services[i]);
    for (size_t i = 0; i < r->n_methods; i++) {
        if (!is_upper_case(r->methods[i]))
            say(w, &r->from[RULE_ROW_methods],
                "rules[%u].match.method: \"%.*s\" is not what clients send; methods are in upper "
                "case",
                r->number, SLICE_FMT(r->methods[i]));
    }
}

/* --- hosts --- */

/* An exact name that is an endpoint of a service which the rule does not list. */
static void warn_contradiction(struct warn *w, const struct rule *r)
{
    size_t others = 0;
    struct endpoint e = {0};
    for (size_t i = 0; i < r->n_hosts; i++) {
        if (r->hosts[i].suffix)
            return;
        endpoint_read(slice_str(r->hosts[i].text), &e);
        if (!e.row || has_word(r->services, r->n_services, e.row->service.name))
            return;
        others++;
    }
    if (others && r->n_services)
        say(w, &r->from[RULE_ROW_hosts],
            "rules[%u] never matches: the hosts of match.host belong to another service than "
            "match.service, %.*s for one",
            r->number, SLICE_FMT(e.row->service.name));
}

static bool listed(const struct host_pattern *v, size_t n, const struct host_pattern *p)
{
    for (size_t i = 0; i < n; i++) {
        if (host_pattern_covers(&v[i], p) || host_pattern_covers(p, &v[i]))
            return true;
    }
    return false;
}

static bool bypassed(const struct config *c, const struct host_pattern *p)
{
    for (size_t i = 0; i < c->n_bypass_hosts; i++) {
        if (host_pattern_covers(&c->bypass_hosts[i], p))
            return true;
    }
    return false;
}

static bool signed_only(const struct rule *r)
{
    return r->n_services || r->n_regions || r->n_access_keys;
}

/* What is neither opened nor plain is never seen; what is no AWS, not listed and has no profile is
 * not retried. */
static void warn_hosts(struct warn *w, const struct rule *r)
{
    const struct config *c = w->config;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct host_pattern *p = &r->hosts[i];
        const struct origin *at = &r->from[RULE_ROW_hosts];
        const char *star = p->suffix ? "*." : "";
        bool aws = host_pattern_may_be_aws(p),
             opened = listed(c->intercept_hosts, c->n_intercept_hosts, p);
        bool seen = !bypassed(c, p) && (opened || (aws && c->intercept_aws));
        if (!seen && c->n_http_ports == 0)
            say(w, at,
                "rules[%u].match.host: requests to %s%s are never seen: it is not opened, and "
                "http_ports is empty",
                r->number, star, p->text);
        else if (!aws && !opened && !rule_has(r, profile) && !signed_only(r))
            say(w, at,
                "rules[%u].match.host: %s%s is neither AWS nor in intercept.hosts: only plain "
                "requests with an AWS signature are retried; list it, or give profile: generic",
                r->number, star, p->text);
    }
}

/* --- settings that do nothing --- */

static void warn_settings(struct warn *w, const struct rule *r)
{
    const struct config *c = w->config;
    bool generic = rule_has(r, profile);
    if (generic && (signed_only(r) || r->n_operations))
        say(w, &r->from[RULE_ROW_profile],
            "rules[%u] never matches: only requests for AWS have a service, region, operation or "
            "access key id, and profile generic is never for AWS",
            r->number);
    if (rule_has(r, any_method) && !generic)
        say(w, &r->from[RULE_ROW_any_method],
            "rules[%u].any_method does nothing without profile: generic", r->number);
    enum retry_mode mode = rule_has(r, mode) ? r->mode : c->retry_mode;
    if (rule_has(r, flavour) && (generic || mode != RETRY_MODE_LEGACY))
        say(w, &r->from[RULE_ROW_flavour], "rules[%u].flavour does nothing without mode: legacy",
            r->number);
    if (rule_has(r, behaviour) && (generic || mode == RETRY_MODE_LEGACY))
        say(w, &r->from[RULE_ROW_behaviour],
            "rules[%u].behaviour does nothing with profile: generic or mode: legacy", r->number);
}

static void warn_codes(struct warn *w, const struct rule *r)
{
    for (size_t i = 0; i < r->n_never_codes; i++) {
        struct slice code = r->never_codes[i];
        if (has_word(r->retry_codes, r->n_retry_codes, code) ||
            has_word(r->throttling_codes, r->n_throttling_codes, code))
            say(w, &r->from[RULE_ROW_never_codes],
                "rules[%u]: %.*s is both to be retried and never to be retried; never wins",
                r->number, SLICE_FMT(code));
    }
}

/* --- listeners --- */

static bool is_all(const struct cidr *c)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    return c->prefix == 0 || (c->prefix == 96 && memcmp(c->addr, mapped, sizeof mapped) == 0);
}

static void warn_listener(struct warn *w, const struct listener_config *l)
{
    if (l->local)
        return;
    bool on_network = !l->address.path && !value_is_loopback(&l->address.at);
    if (l->credentials_file && !l->tls_certificate && on_network)
        say(w, &l->from[LISTENER_ROW_credentials_file],
            "listeners[%u].credentials_file: the passwords cross the network in the clear; give "
            "tls_certificate and tls_key, too",
            l->number);
    for (size_t i = 0; i < l->n_clients && !l->credentials_file; i++) {
        if (is_all(&l->clients[i]))
            say(w, &l->from[LISTENER_ROW_clients],
                "listeners[%u].clients: anybody who reaches %s may use it; name the networks, or "
                "give credentials_file",
                l->number, l->name);
    }
}

void config_warn(const struct config *c, struct problems *out)
{
    struct warn w = {c, out};
    char path[128];
    for (size_t i = 0; i < c->n_services; i++) {
        const struct service_retry *s = &c->services[i];
        snprintf(path, sizeof path, "retry.services.%s", s->service);
        if (s->mode_from.name || s->max_attempts_from.name)
            warn_service(&w, s->mode_from.name ? &s->mode_from : &s->max_attempts_from, path,
                         slice_str(s->service));
    }
    for (size_t i = 0; i < c->n_listeners; i++)
        warn_listener(&w, &c->listeners[i]);
    for (size_t i = 0; i < c->n_rules; i++) {
        const struct rule *r = &c->rules[i];
        warn_shadowed(&w, r);
        warn_names(&w, r);
        warn_contradiction(&w, r);
        warn_hosts(&w, r);
        warn_settings(&w, r);
        warn_codes(&w, r);
    }
}
