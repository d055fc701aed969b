/* The settings of records: rules[N], listeners[N], origins[N]. What must hold of one as a whole
 * stands in the files of their kinds. */
#include "core/base/num.h"
#include "core/config/build.h"

static struct config_record **array_of(struct build *b, const struct option_record *kind)
{
    return (struct config_record **)((char *)b->config + kind->offset);
}

static size_t *count_of(struct build *b, const struct option_record *kind)
{
    return (size_t *)((char *)b->config + kind->n_offset);
}

static struct config_record *record_at(const struct option_record *kind, void *array, size_t i)
{
    return (struct config_record *)((char *)array + i * kind->bytes);
}

/* All records of a kind are of one rank: the first of a higher one replaces those of the lower. */
static void enter_rank(struct build *b, const struct option_record *kind)
{
    enum setting_rank *rank = &b->record_rank[kind - option_records];
    if (b->setting->rank > *rank)
        *count_of(b, kind) = 0;
    *rank = b->setting->rank;
}

/* The record of that number, a new one if it is the next; NULL after a complaint. */
static struct config_record *enter(struct build *b, const struct option_record *kind,
                                   struct slice number)
{
    struct arena *a = &b->config->arena;
    struct config_record **v = array_of(b, kind);
    size_t *count = count_of(b, kind);
    uint64_t n;
    enter_rank(b, kind);
    if (!num_u64(number, 9, *count, &n)) {
        build_complain(b, "%s are numbered from 0, without gaps", kind->path);
        return NULL;
    }
    if (n == BUILD_LIST_MAX) {
        build_complain(b, "more than %d %s", BUILD_LIST_MAX, kind->path);
        return NULL;
    }
    if (!*v) /* all at once: what points into a record stays right */
        *v = arena_alloc(a, BUILD_LIST_MAX * kind->bytes);
    struct config_record *r = record_at(kind, *v, n);
    if (n == *count) {
        memset(r, 0, kind->bytes);
        r->number = (unsigned)n;
        r->where = build_origin(b);
        r->from = arena_alloc(a, kind->n_rows * sizeof *r->from);
        memset(r->from, 0, kind->n_rows * sizeof *r->from);
        ++*count;
    }
    return r;
}

static void unknown(struct build *b, const struct option_record *kind, struct slice rest)
{
    struct slice key, value = b->setting->value;
    if (option_is_section_in(kind, rest)) {
        if (value.n && !slice_eq(value, SLICE("{}")))
            build_complain(b, "is a section; give its options below it");
        return;
    }
    if (option_find_in(kind, slice_of(rest.p, slice_index(rest, '[')), &key)) {
        build_complain(b, "a list is not allowed here; give one value");
        return;
    }
    const struct option *near = option_nearest_in(kind, rest);
    if (near)
        build_complain(b, "unknown option of %s; did you mean %s?", kind->noun, near->path);
    else
        build_complain(b, "unknown option of %s; retryd.yaml(5) lists all", kind->noun);
}

/* The list as a whole: only "none" can be said there. */
static void build_none(struct build *b, const struct option_record *kind)
{
    struct slice value = b->setting->value;
    enter_rank(b, kind);
    if (value.n && !slice_eq(value, SLICE("[]")))
        build_complain(b, "is a list of %s; give each its settings below it", kind->path);
    *count_of(b, kind) = 0;
}

void build_record(struct build *b, const struct option_record *kind, struct slice number,
                  struct slice rest)
{
    struct slice key, value = b->setting->value;
    if (number.n == 0) {
        build_none(b, kind);
        return;
    }
    struct config_record *r = enter(b, kind, number);
    if (!r)
        return;
    if (rest.n == 0) {
        build_complain(b, "is not %s; give its settings below it", kind->noun);
        return;
    }
    b->option = option_find_in(kind, rest, &key);
    if (!b->option) {
        unknown(b, kind, rest);
        return;
    }
    size_t problems_before = b->problems->n;
    struct origin from = {NULL};
    b->base = r;
    if (b->option->kind == OPTION_KIND_LIST)
        build_list(b, slice_eq(key, SLICE("0")), key, value);
    else if (value.n > 0)
        build_value(b, value);
    if (b->option->kind == OPTION_KIND_LIST || value.n > 0)
        from = build_origin(b);
    if (b->problems->n == problems_before)
        r->from[b->option - kind->rows] = from;
}
