/* Settings -> config. Every setting is read, also one that a higher rank overrides, so that all
 * problems come out at once; ranks are applied from low to high, so that what is read last wins.
 *
 * Lists are replaced whole by a higher rank, maps are merged name by name. */
#include "core/base/num.h"
#include "core/base/xalloc.h"
#include "core/config/option.h"
#include "core/config/settings.h"
#include "core/config/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LIST_MAX = 256, /* entries of a list or a map */
    SHOWN_MAX = 64, /* bytes of a bad value that a problem repeats */
    PATH_SHOWN_MAX = 128,
};

/* What became of an option so far. */
struct progress {
    const struct setting *from; /* what set it last */
    bool bad;                   /* some value of it could not be read */
};

struct build {
    struct config *config;
    struct problems *problems;
    struct progress *progress;     /* by option */
    const struct setting *setting; /* the one being read, */
    const struct option *option;   /* and its option */
    char shown[SHOWN_MAX + 8];
};

/* "conf/retryd.yaml:12: timeouts.connect: <what>" */
static void complain(struct build *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void complain(struct build *b, const char *fmt, ...)
{
    char what[sizeof b->problems->v->text], line[16] = "";
    const struct setting *s = b->setting;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (s->line)
        snprintf(line, sizeof line, ":%u", s->line);
    problems_add(b->problems, "%.*s%s: %.*s: %s", SLICE_FMT(s->origin), line,
                 (int)(s->path.n < PATH_SHOWN_MAX ? s->path.n : PATH_SHOWN_MAX), s->path.p, what);
    if (b->option)
        b->progress[b->option - option_table].bad = true;
}

/* The value in quotes, cut when long; good until the next call. */
static const char *shown(struct build *b, struct slice value)
{
    bool cut = value.n > SHOWN_MAX;
    snprintf(b->shown, sizeof b->shown, "\"%.*s%s\"", (int)(cut ? SHOWN_MAX : value.n),
             value.p ? value.p : "", cut ? "..." : "");
    return b->shown;
}

static void *at(struct build *b, size_t offset)
{
    return (char *)b->config + offset;
}

/* --- one value --- */

static bool read_number(enum option_type type, struct slice s, uint64_t *out)
{
    int64_t ns;
    if (type == OPTION_SIZE)
        return value_size(s, out);
    if (type != OPTION_DURATION)
        return num_u64(s, 10, UINT32_MAX, out);
    if (!value_duration(s, &ns))
        return false;
    *out = (uint64_t)ns;
    return true;
}

static const char *number_advice(enum option_type type)
{
    switch (type) {
    case OPTION_DURATION:
        return "is not a duration; give a number with ms, s, m or h";
    case OPTION_SIZE:
        return "is not a size; give a number of bytes, or one with KiB, MiB, GiB or TiB";
    default:
        return "is not a whole number; give one";
    }
}

/* Reads a number and holds it against the bounds "low..high" of its row. */
static bool bounded_number(struct build *b, struct slice value, uint64_t *out)
{
    enum option_type type = b->option->type;
    struct slice bounds = slice_str(b->option->allowed);
    size_t dots = slice_index(bounds, '.');
    uint64_t low = 0, high = 0;
    bool row_is_good = read_number(type, slice_of(bounds.p, dots), &low) &&
                       read_number(type, slice_of(bounds.p + dots + 2, bounds.n - dots - 2), &high);
    ASSERT(row_is_good);
    if (!read_number(type, value, out)) {
        complain(b, "%s %s, %s", shown(b, value), number_advice(type), bounds.p);
        return false;
    }
    if (*out < low || *out > high) {
        complain(b, "%s is out of bounds; give %s", shown(b, value), bounds.p);
        return false;
    }
    return true;
}

static bool read_choice(struct build *b, struct slice value, int *out)
{
    if (value_choice(value, slice_str(b->option->allowed), out))
        return true;
    complain(b, "%s is not one of %s", shown(b, value), b->option->allowed);
    return false;
}

static void store_path(struct build *b, struct slice value, char **to)
{
    if (value_path(value))
        *to = arena_strdup(&b->config->arena, value);
    else
        complain(b, "%s is not an absolute path; give one that starts with /", shown(b, value));
}

/* Empty: back to unset, which all-zero means for the optional types. */
static void store_empty(struct build *b, void *to)
{
    const struct option *o = b->option;
    if (o->text[0])
        complain(b, "is empty; leave the key out for the default, %s", o->text);
    else if (o->type == OPTION_PATH)
        *(char **)to = NULL;
    else
        *(unsigned *)to = 0;
}

static void store_value(struct build *b, struct slice value)
{
    void *to = at(b, b->option->offset);
    uint64_t number;
    if (value.n == 0) {
        store_empty(b, to);
        return;
    }
    switch (b->option->type) {
    case OPTION_BOOL:
        if (!value_bool(value, to))
            complain(b, "%s is not one of true|false", shown(b, value));
        return;
    case OPTION_CHOICE:
        read_choice(b, value, to);
        return;
    case OPTION_PATH:
        store_path(b, value, to);
        return;
    case OPTION_DURATION:
        if (bounded_number(b, value, &number))
            *(int64_t *)to = (int64_t)number;
        return;
    case OPTION_SIZE:
        if (bounded_number(b, value, &number))
            *(uint64_t *)to = number;
        return;
    default:
        if (bounded_number(b, value, &number))
            *(unsigned *)to = (unsigned)number;
        return;
    }
}

/* --- lists and maps --- */

/* Appends a copy of item; NULL (and a problem) when the list is full. */
static void *push(struct build *b, const void *item, size_t bytes)
{
    void **v = at(b, b->option->offset);
    size_t *n = at(b, b->option->n_offset);
    if (*n == LIST_MAX) {
        complain(b, "more than %d entries", LIST_MAX);
        return NULL;
    }
    if ((*n & (*n - 1)) == 0) { /* none, or a power of two: full */
        void *bigger = arena_alloc(&b->config->arena, (*n ? *n * 2 : 1) * bytes);
        if (*n)
            memcpy(bigger, *v, *n * bytes);
        *v = bigger;
    }
    void *slot = (char *)*v + (*n)++ * bytes;
    memcpy(slot, item, bytes);
    return slot;
}

static void add_listen(struct build *b, struct slice item)
{
    const struct config *c = b->config;
    struct authority a;
    const char *why;
    if (!value_listen(item, &a, &why)) {
        complain(b, "%s: %s; give 127.0.0.1:PORT or [::1]:PORT", shown(b, item), why);
        return;
    }
    for (size_t i = 0; i < c->n_listen; i++) {
        if (a.port && authority_eq(&a, &c->listen[i])) {
            complain(b, "%s is listed twice", shown(b, item));
            return;
        }
    }
    push(b, &a, sizeof a);
}

static void add_host(struct build *b, struct slice item)
{
    struct host_pattern p;
    const char *why;
    if (!value_host(item, &b->config->arena, &p, NULL, &why)) {
        complain(b, "%s: %s; give a host name or *.suffix", shown(b, item), why);
        return;
    }
    if (b->option->type == OPTION_OPEN_HOSTS && p.suffix && !strchr(p.text, '.')) {
        complain(b, "%s is a whole top-level domain; give at least two labels after \"*.\"",
                 shown(b, item));
        return;
    }
    push(b, &p, sizeof p);
}

static void add_port(struct build *b, struct slice item)
{
    uint16_t port;
    if (value_port(item, &port))
        push(b, &port, sizeof port);
    else
        complain(b, "%s is not a port; give 1..65535", shown(b, item));
}

static void add_cidr(struct build *b, struct slice item)
{
    struct cidr range;
    const char *why;
    if (value_cidr(item, &range, &why))
        push(b, &range, sizeof range);
    else
        complain(b, "%s: %s; give ADDRESS or ADDRESS/PREFIX", shown(b, item), why);
}

static void store_item(struct build *b, struct slice item)
{
    switch (b->option->type) {
    case OPTION_LISTEN:
        add_listen(b, item);
        return;
    case OPTION_PORTS:
        add_port(b, item);
        return;
    case OPTION_CIDRS:
        add_cidr(b, item);
        return;
    default:
        add_host(b, item);
        return;
    }
}

/* With an index: one more entry, the first of a higher rank replacing all there were. Without one:
 * the whole list. */
static void store_list(struct build *b, struct slice index, struct slice value)
{
    const struct setting *from = b->progress[b->option - option_table].from;
    bool whole = index.n == 0, done = false;
    struct slice item;
    if (whole || !from || b->setting->rank > from->rank)
        *(size_t *)at(b, b->option->n_offset) = 0;
    if (!whole) {
        store_item(b, value);
        return;
    }
    if (value.n == 0 || slice_eq(value, SLICE("[]")))
        return;
    while (slice_next(&value, ',', &item, &done))
        store_item(b, slice_trim(item));
}

static void store_resolve(struct build *b, struct slice host, struct slice value)
{
    struct config *c = b->config;
    struct resolve_override r = {0};
    const char *why;
    if (!value_host(host, &c->arena, &r.host, &r.port, &why)) {
        complain(b, "%s; the key is HOST or HOST:PORT, and HOST a name or *.suffix", why);
        return;
    }
    if (!value_address(value, &r.to, &why)) {
        complain(b, "%s: %s; give ADDRESS or ADDRESS:PORT", shown(b, value), why);
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
    push(b, &r, sizeof r);
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
    struct service_retry fresh = {arena_strdup(&c->arena, name), 0, -1};
    return push(b, &fresh, sizeof fresh);
}

static void store_service(struct build *b, struct slice name, struct slice value)
{
    uint64_t attempts = 0;
    int mode = -1;
    if (!value_service(name)) {
        complain(b, "%s is not the name of a service; give lower-case letters, digits and \"-\"",
                 shown(b, name));
        return;
    }
    bool is_mode = b->option->type == OPTION_SERVICE_MODE;
    if (value.n && !(is_mode ? read_choice(b, value, &mode) : bounded_number(b, value, &attempts)))
        return;
    struct service_retry *entry = service_entry(b, name);
    if (entry && is_mode)
        entry->mode = mode;
    else if (entry)
        entry->max_attempts = (unsigned)attempts;
}

/* --- all settings --- */

static void unknown(struct build *b)
{
    const struct setting *s = b->setting;
    struct slice key;
    if (option_is_section(s->path)) {
        if (s->value.n && !slice_eq(s->value, SLICE("{}")))
            complain(b, "is a section; give its options below it");
        return;
    }
    if (option_find(slice_of(s->path.p, slice_index(s->path, '[')), &key)) {
        complain(b, "a list is not allowed here; give one value");
        return;
    }
    const struct option *near = option_nearest(s->path);
    if (near)
        complain(b, "unknown option; did you mean %s?", near->path);
    else
        complain(b, "unknown option; retryd.yaml(5) lists all");
}

static void apply(struct build *b, const struct setting *s)
{
    struct slice key;
    b->setting = s;
    b->option = option_find(s->path, &key);
    if (!b->option) {
        unknown(b);
        return;
    }
    if (b->option->kind == OPTION_KIND_VALUE)
        store_value(b, s->value);
    else if (b->option->kind == OPTION_KIND_LIST)
        store_list(b, key, s->value);
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

/* Makes the option's last setting the place that complain() names. */
static const struct progress *point_at(struct build *b, const char *path)
{
    struct slice key;
    b->option = option_find(slice_str(path), &key);
    const struct progress *p = &b->progress[b->option - option_table];
    b->setting = p->from;
    return p;
}

static uint64_t number_of(struct build *b, const char *path)
{
    struct slice key;
    const struct option *o = option_find(slice_str(path), &key);
    const void *v = at(b, o->offset);
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
        complain(b, "%s (%.*s) does not fit in %s (%.*s)", part, SLICE_FMT(p->from->value), whole,
                 SLICE_FMT(w->from->value));
    }
}

/* True if every name that p stands for is one of wide's. */
static bool covers(const struct host_pattern *wide, const struct host_pattern *p)
{
    bool same = strcmp(wide->text, p->text) == 0 && wide->suffix == p->suffix;
    return same || (wide->suffix && host_pattern_match(wide, slice_str(p->text)));
}

static void check_bypass(struct build *b)
{
    const struct config *c = b->config;
    point_at(b, "intercept.bypass");
    for (size_t i = 0; i < c->n_bypass_hosts; i++) {
        for (size_t j = 0; j < c->n_intercept_hosts; j++) {
            const struct host_pattern *h = &c->intercept_hosts[j];
            if (covers(&c->bypass_hosts[i], h))
                complain(b, "hides %s%s, which intercept.hosts lists; remove one of the two",
                         h->suffix ? "*." : "", h->text);
        }
    }
}

static void check_together(struct build *b)
{
    const struct progress *listen = point_at(b, "listen");
    if (b->config->n_listen == 0 && !listen->bad)
        complain(b, "no address to listen on; give at least one");
    check_sums(b);
    check_bypass(b);
}

/* --- the whole --- */

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
    apply_all(&b, &defaults);
    apply_all(&b, s);
    if (!b.config->state_dir && default_state_dir)
        b.config->state_dir = arena_strdup(&b.config->arena, slice_str(default_state_dir));
    if (b.config->n_resolve)
        qsort(b.config->resolve, b.config->n_resolve, sizeof *b.config->resolve, by_specificity);
    check_together(&b);
    settings_fini(&defaults);
    free(b.progress);
    if (problems->n == problems_before)
        return b.config;
    config_free(b.config);
    return NULL;
}
