/* The effective settings, one line an option: "path: value  # where it came from". The values are
 * the texts that were given, but for access key ids; the precedence is that of config_build(). */
#include "core/base/strbuf.h"
#include "core/config/option.h"
#include "core/config/settings.h"

enum { LINE_MAX_BYTES = 256 * 1024 };

struct show {
    const struct settings *settings;
    struct strbuf line;
    void (*emit)(void *arg, const char *text);
    void *arg;
};

static const struct option *option_of(const struct setting *s)
{
    struct slice key;
    return option_find(s->path, &key);
}

static bool has_index(const struct setting *s)
{
    return s->path.p[s->path.n - 1] == ']';
}

static void flush(struct show *sh)
{
    strbuf_putc(&sh->line, '\0');
    if (!sh->line.overflow)
        sh->emit(sh->arg, sh->line.p);
    strbuf_reset(&sh->line);
}

static void put_origin(struct show *sh, const struct setting *from)
{
    if (!from)
        strbuf_printf(&sh->line, "  # default");
    else if (from->line)
        strbuf_printf(&sh->line, "  # %.*s:%u", SLICE_FMT(from->origin), from->line);
    else
        strbuf_printf(&sh->line, "  # %.*s", SLICE_FMT(from->origin));
    flush(sh);
}

static void show_value(struct show *sh, const struct option *o)
{
    const struct setting *from = NULL;
    for (size_t i = 0; i < sh->settings->n; i++) {
        const struct setting *s = &sh->settings->v[i];
        if (option_of(s) == o && (!from || s->rank >= from->rank))
            from = s;
    }
    struct slice value = from ? from->value : slice_str(o->text);
    strbuf_printf(&sh->line, "%s: %.*s", o->path, SLICE_FMT(value.n ? value : SLICE("null")));
    put_origin(sh, from);
}

/* Where the winning list begins: the last setting that starts a list anew. */
static const struct setting *list_start(const struct settings *all, const struct option *o)
{
    const struct setting *start = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct setting *s = &all->v[i];
        if (option_of(s) != o || (start && s->rank < start->rank))
            continue;
        if (!start || s->rank > start->rank || !has_index(s))
            start = s;
    }
    return start;
}

static void show_list(struct show *sh, const struct option *o)
{
    const struct settings *all = sh->settings;
    const struct setting *start = list_start(all, o);
    strbuf_printf(&sh->line, "%s: [%s", o->path, start ? "" : o->text);
    for (size_t i = start ? (size_t)(start - all->v) : all->n; i < all->n; i++) {
        const struct setting *s = &all->v[i];
        if (s->rank == start->rank && option_of(s) == o && !slice_eq(s->value, SLICE("[]")))
            strbuf_printf(&sh->line, "%s%.*s", s == start ? "" : ", ", SLICE_FMT(s->value));
    }
    strbuf_putc(&sh->line, ']');
    put_origin(sh, start);
}

/* True if another setting of the same path wins over number i. */
static bool overridden(const struct settings *all, size_t i)
{
    for (size_t j = 0; j < all->n; j++) {
        bool wins = all->v[j].rank > all->v[i].rank || (all->v[j].rank == all->v[i].rank && j > i);
        if (wins && slice_eq(all->v[j].path, all->v[i].path))
            return true;
    }
    return false;
}

static void show_map(struct show *sh, const struct option *o)
{
    for (size_t i = 0; i < sh->settings->n; i++) {
        const struct setting *s = &sh->settings->v[i];
        if (option_of(s) != o || overridden(sh->settings, i))
            continue;
        strbuf_printf(&sh->line, "%.*s: %.*s", SLICE_FMT(s->path),
                      SLICE_FMT(s->value.n ? s->value : SLICE("null")));
        put_origin(sh, s);
    }
}

/* Records of a kind are of one rank; "rules: []" of that rank or a higher one takes them away. */
static void show_records(struct show *sh, const struct option_record *kind)
{
    const struct settings *all = sh->settings;
    const struct setting *none = NULL;
    struct slice number, rest, key;
    int rank = SETTING_DEFAULT;
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        if (option_record_of(all->v[i].path, &number, &rest) != kind || (int)all->v[i].rank < rank)
            continue;
        none = number.n == 0 ? &all->v[i] : NULL;
        rank = (int)all->v[i].rank;
    }
    for (size_t i = 0; i < all->n; i++) {
        const struct setting *s = &all->v[i];
        if ((int)s->rank != rank || option_record_of(s->path, &number, &rest) != kind ||
            number.n == 0 || overridden(all, i))
            continue;
        const struct option *o = option_find_in(kind, rest, &key);
        bool hidden = o && o->type == OPTION_KEYS;
        strbuf_printf(&sh->line, "%.*s: %.*s", SLICE_FMT(s->path),
                      SLICE_FMT(hidden       ? SLICE("(not shown)")
                                : s->value.n ? s->value
                                             : SLICE("null")));
        put_origin(sh, s);
        any = true;
    }
    if (!any) {
        strbuf_printf(&sh->line, "%s: []", kind->path);
        put_origin(sh, none);
    }
}

void config_show(const struct settings *s, void (*line)(void *arg, const char *text), void *arg)
{
    struct show sh = {.settings = s, .emit = line, .arg = arg};
    strbuf_init(&sh.line, LINE_MAX_BYTES);
    for (const struct option *o = option_table; o < option_table + option_table_n; o++) {
        if (o->kind == OPTION_KIND_VALUE)
            show_value(&sh, o);
        else if (o->kind == OPTION_KIND_LIST)
            show_list(&sh, o);
        else
            show_map(&sh, o);
        for (size_t i = 0; i < option_records_n; i++) {
            if (strcmp(option_records[i].after, o->path) == 0)
                show_records(&sh, &option_records[i]);
        }
    }
    strbuf_fini(&sh.line);
}
