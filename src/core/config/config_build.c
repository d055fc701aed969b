/* Settings -> config. Every setting is read, also one that a higher rank overrides, so that all
 * problems come out at once; ranks are applied from low to high, so that what is read last wins.
 *
 * Lists are replaced whole by a higher rank, maps are merged name by name. */
#include "core/base/num.h"
#include "core/base/xalloc.h"
#include "core/config/build.h"
#include "core/config/value.h"

#include <stdlib.h>

/* --- maps --- */

static void store_resolve(struct build *b, struct slice host, struct slice value)
{
    struct config *c = b->config;
    struct resolve_override r = {0};
    const char *why;
    if (!value_host(host, &c->arena, &r.host, &r.port, &why)) {
        build_complain(b, "%s; the key is HOST or HOST:PORT, and HOST a name or *.suffix", why);
        return;
    }
    if (!value_address(value, &r.to, &why)) {
        build_complain(b, "%s: %s; give ADDRESS or ADDRESS:PORT", build_shown(b, value), why);
        return;
    }
    for (size_t i = 0; i < c->n_resolve; i++) {
        struct resolve_override *old = &c->resolve[i];
        if (old->port == r.port && old->host.suffix == r.host.suffix &&
            strcmp(old->host.text, r.host.text) == 0) {
            *old = r;
            return;
        }
    }
    build_push(b, &r, sizeof r);
}

/* A name before a suffix, a longer one before a shorter one, with a port before without. */
static int by_specificity(const void *a, const void *b)
{
    const struct resolve_override *x = a, *y = b;
    size_t nx = strlen(x->host.text), ny = strlen(y->host.text);
    if (x->host.suffix != y->host.suffix)
        return x->host.suffix ? 1 : -1;
    if (nx != ny)
        return nx < ny ? 1 : -1;
    return (x->port == 0) - (y->port == 0);
}

static struct service_retry *service_entry(struct build *b, struct slice name)
{
    struct config *c = b->config;
    for (size_t i = 0; i < c->n_services; i++) {
        if (slice_eq(slice_str(c->services[i].service), name))
            return &c->services[i];
    }
    struct service_retry fresh = {.service = arena_strdup(&c->arena, name), .mode = -1};
    return build_push(b, &fresh, sizeof fresh);
}

static void store_service(struct build *b, struct slice name, struct slice value)
{
    uint64_t attempts = 0;
    enum retry_mode mode = RETRY_MODE_OFF;
    if (!value_service(name)) {
        build_complain(b,
                       "%s is not the name of a service; give lower-case letters, digits and \"-\"",
                       build_shown(b, name));
        return;
    }
    bool is_mode = b->option->type == OPTION_SERVICE_MODE;
    if (value.n && !(is_mode ? build_mode(b, value, &mode) : build_number(b, value, &attempts)))
        return;
    struct service_retry *entry = service_entry(b, name);
    struct origin from = value.n ? build_origin(b) : (struct origin){NULL};
    if (entry && is_mode) {
        entry->mode = value.n ? (int)mode : -1;
        entry->mode_from = from;
    } else if (entry) {
        entry->max_attempts = (unsigned)attempts;
        entry->max_attempts_from = from;
    }
}

/* --- all settings --- */

static void unknown(struct build *b)
{
    const struct setting *s = b->setting;
    struct slice key;
    if (option_is_section(s->path)) {
        if (s->value.n && !slice_eq(s->value, SLICE("{}")))
            build_complain(b, "is a section; give its options below it");
        return;
    }
    if (option_find(slice_of(s->path.p, slice_index(s->path, '[')), &key)) {
        build_complain(b, "a list is not allowed here; give one value");
        return;
    }
    struct slice number, rest, first = slice_of(s->path.p, slice_index(s->path, '.'));
    const struct option_record *kind = option_record_of(first, &number, &rest);
    if (kind) {
        build_complain(b, "%s is a list; begin each of its entries with \"- \"", kind->path);
        return;
    }
    const struct option *near = option_nearest(s->path);
    if (near)
        build_complain(b, "unknown option; did you mean %s?", near->path);
    else
        build_complain(b, "unknown option; retryd.yaml(5) lists all");
}

/* A higher rank replaces a list whole, and so the first of its entries those of the lower one. */
static bool begins_list(const struct build *b)
{
    const struct setting *from = b->progress[b->option - option_table].from;
    return !from || b->setting->rank > from->rank;
}

static void apply(struct build *b, const struct setting *s)
{
    struct slice key, rest;
    b->setting = s;
    b->base = b->config;
    b->option = NULL;
    const struct option_record *kind = option_record_of(s->path, &key, &rest);
    if (kind) {
        build_record(b, kind, key, rest);
        return;
    }
    b->option = option_find(s->path, &key);
    if (!b->option) {
        unknown(b);
        return;
    }
    if (b->option->kind == OPTION_KIND_VALUE)
        build_value(b, s->value);
    else if (b->option->kind == OPTION_KIND_LIST)
        build_list(b, begins_list(b), key, s->value);
    else if (b->option->type == OPTION_RESOLVE)
        store_resolve(b, key, s->value);
    else
        store_service(b, key, s->value);
    b->progress[b->option - option_table].from = s;
}

static void apply_all(struct build *b, const struct settings *s)
{
    for (int rank = SETTING_DEFAULT; rank <= SETTING_FLAG; rank++) {
        for (size_t i = 0; i < s->n; i++) {
            if (s->v[i].rank == (enum setting_rank)rank)
                apply(b, &s->v[i]);
        }
    }
}

/* --- what must fit together --- */

/* Makes the option's last setting the place that build_complain() names. */
static const struct progress *point_at(struct build *b, const char *path)
{
    struct slice key;
    b->option = option_find(slice_str(path), &key);
    const struct progress *p = &b->progress[b->option - option_table];
    b->base = b->config;
    b->setting = p->from;
    return p;
}

static uint64_t number_of(struct build *b, const char *path)
{
    struct slice key;
    const struct option *o = option_find(slice_str(path), &key);
    const void *v = (const char *)b->config + o->offset;
    return o->type == OPTION_COUNT ? *(const unsigned *)v : *(const uint64_t *)v;
}

static const struct {
    const char *part, *whole;
} fits_in[] = {
    {"limits.replay_memory", "limits.replay_memory_total"},
    {"limits.replay_disk", "limits.replay_disk_total"},
    {"limits.hold_error", "limits.replay_memory_total"},
    {"limits.hold_small", "limits.replay_memory_total"},
    {"limits.hold_root", "limits.replay_memory_total"},
    {"limits.pool_per_origin", "limits.pool_total"},
};

static void check_sums(struct build *b)
{
    for (size_t i = 0; i < ARRAY_LEN(fits_in); i++) {
        const char *part = fits_in[i].part, *whole = fits_in[i].whole;
        const struct progress *w = point_at(b, whole), *p = point_at(b, part);
        if (w->bad || p->bad || number_of(b, part) <= number_of(b, whole))
            continue;
        if (p->from->rank == SETTING_DEFAULT)
            point_at(b, whole);
        build_complain(b, "%s (%.*s) does not fit in %s (%.*s)", part, SLICE_FMT(p->from->value),
                       whole, SLICE_FMT(w->from->value));
    }
}

static void check_bypass(struct build *b)
{
    const struct config *c = b->config;
    point_at(b, "intercept.bypass");
    for (size_t i = 0; i < c->n_bypass_hosts; i++) {
        for (size_t j = 0; j < c->n_intercept_hosts; j++) {
            const struct host_pattern *h = &c->intercept_hosts[j];
            if (host_pattern_covers(&c->bypass_hosts[i], h))
                build_complain(b, "hides %s%s, which intercept.hosts lists; remove one of the two",
                               h->suffix ? "*." : "", h->text);
        }
    }
}

/* Legacy mode is seven different modes. The rules see to themselves. */
static void check_flavour(struct build *b)
{
    const struct config *c = b->config;
    static const char need[] = "legacy mode needs retry.flavour, as each SDK has a legacy mode of "
                               "its own; give cli-v1, cpp, java, java-v1, php, python or ruby";
    if (point_at(b, "retry.flavour")->bad || c->retry_flavour)
        return;
    if (!point_at(b, "retry.mode")->bad && c->retry_mode == RETRY_MODE_LEGACY)
        build_complain(b, "%s", need);
    for (size_t i = 0; i < c->n_services; i++) {
        if (c->services[i].mode == RETRY_MODE_LEGACY)
            build_complain_at(b, &c->services[i].mode_from, "retry.services.%s.mode: %s",
                              c->services[i].service, need);
    }
}

static void check_entries(struct build *b)
{
    unsigned n = b->config->budgets_entries;
    if (!point_at(b, "budgets.entries")->bad && (n & (n - 1)) != 0)
        build_complain(b, "%u is not a power of two", n);
}

/* One address of each family at most. */
static void check_sources(struct build *b)
{
    const struct config *c = b->config;
    point_at(b, "upstream.source_addresses");
    for (size_t i = 1; i < c->n_source_addresses; i++) {
        if (i > 1 || c->source_addresses[0].kind == c->source_addresses[1].kind)
            build_complain(b, "has two addresses of one family; give one IPv4, one IPv6, or both");
    }
}

static void check_parent(struct build *b)
{
    const struct config *c = b->config;
    if (point_at(b, "parent.url")->bad)
        return;
    if (c->parent.given) {
        if (c->parent_ca_file && !c->parent.tls && point_at(b, "parent.ca_file"))
            build_complain(b, "only an https:// parent.url shows a certificate; remove it");
        return;
    }
    if (c->parent_credentials_file && point_at(b, "parent.credentials_file"))
        build_complain(b, "there is no parent.url");
    if (c->parent_ca_file && point_at(b, "parent.ca_file"))
        build_complain(b, "there is no parent.url");
    if (c->n_no_proxy && point_at(b, "parent.no_proxy"))
        build_complain(b, "there is no parent.url");
}

static void check_together(struct build *b)
{
    const struct progress *listen = point_at(b, "listen");
    if (b->config->n_listen + b->config->n_listeners == 0 && !listen->bad)
        build_complain(b, "no address to listen on; give at least one, here or in listeners");
    check_sources(b);
    check_parent(b);
    build_listeners_end(b);
    build_origins_end(b);
    check_sums(b);
    check_bypass(b);
    check_flavour(b);
    check_entries(b);
    build_rule_end(b);
}

/* --- the whole --- */

static void keep_origins(struct build *b)
{
    struct config *c = b->config;
    c->from = arena_alloc(&c->arena, option_table_n * sizeof *c->from);
    for (size_t i = 0; i < option_table_n; i++) {
        b->setting = b->progress[i].from;
        if (b->setting && b->setting->rank > SETTING_DEFAULT && b->setting->value.n)
            c->from[i] = build_origin(b);
        if (option_table[i].offset == offsetof(struct config, max_attempts))
            c->max_attempts_from = c->from[i];
    }
}

static void add_defaults(struct settings *s)
{
    for (const struct option *o = option_table; o < option_table + option_table_n; o++) {
        if (o->kind != OPTION_KIND_MAP)
            settings_add(s, slice_str(o->path), slice_str(o->text), SETTING_DEFAULT, "default", 0);
    }
}

struct config *config_build(const struct settings *s, const char *default_state_dir,
                            struct problems *problems)
{
    struct settings defaults;
    size_t problems_before = problems->n;
    struct build b = {
        .config = xcalloc(1, sizeof *b.config),
        .problems = problems,
        .progress = xcalloc(option_table_n, sizeof *b.progress),
    };
    arena_init(&b.config->arena);
    settings_init(&defaults);
    add_defaults(&defaults);
    ASSERT(option_records_n == BUILD_RECORD_KINDS);
    apply_all(&b, &defaults);
    apply_all(&b, s);
    if (!b.config->state_dir && default_state_dir)
        b.config->state_dir = arena_strdup(&b.config->arena, slice_str(default_state_dir));
    if (b.config->n_resolve)
        qsort(b.config->resolve, b.config->n_resolve, sizeof *b.config->resolve, by_specificity);
    check_together(&b);
    keep_origins(&b);
    settings_fini(&defaults);
    free(b.progress);
    if (problems->n == problems_before)
        return b.config;
    config_free(b.config);
    return NULL;
}
