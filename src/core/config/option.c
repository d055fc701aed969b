/* The tables of options and the search in them. Linear: some fifty rows, read at start only. */
#include "core/config/option.h"
#include "core/base/attr.h"
#include "core/config/config.h"

#include <stdint.h>
#include <stdio.h>

/* Each row is checked against the type of its field. */
#define IS_BOOL(f) _Generic((f), bool : 1, default : 0)
#define IS_DURATION(f) _Generic((f), int64_t : 1, default : 0)
#define IS_SIZE(f) _Generic((f), uint64_t : 1, default : 0)
#define IS_COUNT(f) _Generic((f), unsigned : 1, default : 0)
#define IS_CHOICE(f) (sizeof(f) == sizeof(int))
#define IS_PATH(f) _Generic((f), char * : 1, default : 0)
#define IS_LISTEN(f) _Generic((f), struct authority * : 1, default : 0)
#define IS_HOSTS(f) _Generic((f), struct host_pattern * : 1, default : 0)
#define IS_OPEN_HOSTS(f) IS_HOSTS(f)
#define IS_PORTS(f) _Generic((f), uint16_t * : 1, default : 0)
#define IS_CIDRS(f) _Generic((f), struct cidr * : 1, default : 0)
#define IS_RESOLVE(f) _Generic((f), struct resolve_override * : 1, default : 0)
#define IS_SERVICE_MODE(f) _Generic((f), struct service_retry * : 1, default : 0)
#define IS_SERVICE_ATTEMPTS(f) IS_SERVICE_MODE(f)

#define IS_WORD(f) IS_PATH(f)
#define IS_WORKERS(f) IS_COUNT(f)
#define IS_MODE(f) IS_CHOICE(f)
#define IS_FLAVOUR(f) IS_PATH(f)
#define IS_WORDS(f) _Generic((f), struct slice * : 1, default : 0)
#define IS_KEYS(f) IS_WORDS(f)
#define IS_STATUSES(f) IS_PORTS(f)
#define IS_FILE_MODE(f) IS_COUNT(f)
#define IS_ENDPOINT(f) _Generic((f), struct listen_address : 1, default : 0)
#define IS_PROXY_URL(f) _Generic((f), struct proxy_url : 1, default : 0)
#define IS_ADDRESSES(f) IS_LISTEN(f)
#define IS_NO_PROXY(f) IS_WORDS(f)
#define IS_BUDGET_PARTS(f) IS_PORTS(f)

#define FIELD(type, field) (((struct type *)0)->field)
#define OPTION(type, path, field, def, allowed, doc)                                               \
    _Static_assert(IS_##type(FIELD(config, field)), path);
#define LIST(type, path, field, def, doc) _Static_assert(IS_##type(FIELD(config, field)), path);
#define MAP(type, path, field, allowed, doc) _Static_assert(IS_##type(FIELD(config, field)), path);
#define RULE(type, path, field, allowed, doc) _Static_assert(IS_##type(FIELD(rule, field)), path);
#define RULE_LIST(type, path, field, doc) _Static_assert(IS_##type(FIELD(rule, field)), path);
#define LISTENER(type, path, field, allowed, doc)                                                  \
    _Static_assert(IS_##type(FIELD(listener_config, field)), path);
#define LISTENER_LIST(type, path, field, doc)                                                      \
    _Static_assert(IS_##type(FIELD(listener_config, field)), path);
#define ORIGIN(type, path, field, allowed, doc)                                                    \
    _Static_assert(IS_##type(FIELD(origin_config, field)), path);
#define ORIGIN_LIST(type, path, field, doc)                                                        \
    _Static_assert(IS_##type(FIELD(origin_config, field)), path);
#include "core/config/options.def"

#define AT(type, field) offsetof(struct type, field)
#define OPTION(type, path, field, def, allowed, doc)                                               \
    {path, OPTION_##type, OPTION_KIND_VALUE, AT(config, field), 0, def, allowed, doc},
#define LIST(type, path, field, def, doc)                                                          \
    {path, OPTION_##type, OPTION_KIND_LIST, AT(config, field), AT(config, n_##field), def, "", doc},
#define MAP(type, path, field, allowed, doc)                                                       \
    {path, OPTION_##type, OPTION_KIND_MAP, AT(config, field), AT(config, n_##field), "", allowed,  \
     doc},
const struct option option_table[] = {
#include "core/config/options.def"
};
const size_t option_table_n = ARRAY_LEN(option_table);

#define ROW(record, type, path, field, allowed, doc)                                               \
    {path, OPTION_##type, OPTION_KIND_VALUE, AT(record, field), 0, "", allowed, doc},
#define ROW_LIST(record, type, path, field, doc)                                                   \
    {path, OPTION_##type, OPTION_KIND_LIST, AT(record, field), AT(record, n_##field), "", "", doc},
static const struct option rule_rows[] = {
#define RULE(type, path, field, allowed, doc) ROW(rule, type, path, field, allowed, doc)
#define RULE_LIST(type, path, field, doc) ROW_LIST(rule, type, path, field, doc)
#include "core/config/options.def"
};
static const struct option listener_rows[] = {
#define LISTENER(type, path, field, allowed, doc)                                                  \
    ROW(listener_config, type, path, field, allowed, doc)
#define LISTENER_LIST(type, path, field, doc) ROW_LIST(listener_config, type, path, field, doc)
#include "core/config/options.def"
};
static const struct option origin_rows[] = {
#define ORIGIN(type, path, field, allowed, doc) ROW(origin_config, type, path, field, allowed, doc)
#define ORIGIN_LIST(type, path, field, doc) ROW_LIST(origin_config, type, path, field, doc)
#include "core/config/options.def"
};

/* Every kind of record begins alike. */
#define BEGINS_AS_RECORD(type)                                                                     \
    _Static_assert(AT(type, number) == AT(config_record, number) &&                                \
                       AT(type, where) == AT(config_record, where) &&                              \
                       AT(type, from) == AT(config_record, from),                                  \
                   #type)
BEGINS_AS_RECORD(rule);
BEGINS_AS_RECORD(listener_config);
BEGINS_AS_RECORD(origin_config);

#define RECORD(path, noun, after, rows, type, field)                                               \
    {                                                                                              \
        path, noun, after, rows, ARRAY_LEN(rows), AT(config, field), AT(config, n_##field),        \
            sizeof(struct type)                                                                    \
    }
const struct option_record option_records[] = {
    RECORD("listeners", "a listener", "listen", listener_rows, listener_config, listeners),
    RECORD("origins", "an origin", "upstream.source_addresses", origin_rows, origin_config,
           origins),
    RECORD("rules", "a rule", "retry.services.*.max_attempts", rule_rows, rule, rules),
};
const size_t option_records_n = ARRAY_LEN(option_records);

/* Which rows a search goes through. */
struct rows {
    const struct option *begin, *end;
};

static struct rows of_table(void)
{
    return (struct rows){option_table, option_table + ARRAY_LEN(option_table)};
}

static struct rows of_record(const struct option_record *r)
{
    return (struct rows){r->rows, r->rows + r->n_rows};
}

/* path against a pattern with at most one "*", which stands for one or more bytes. */
static bool match(struct slice pattern, struct slice path, struct slice *star)
{
    size_t at = slice_index(pattern, '*');
    *star = SLICE_NONE;
    if (at == pattern.n)
        return slice_eq(pattern, path);
    size_t tail_n = pattern.n - at - 1;
    if (path.n < pattern.n || memcmp(path.p, pattern.p, at) != 0 ||
        memcmp(path.p + path.n - tail_n, pattern.p + at + 1, tail_n) != 0)
        return false;
    *star = slice_of(path.p + at, path.n - at - tail_n);
    return true;
}

/* "listen[12]" -> "listen", "12" */
static bool split_index(struct slice path, struct slice *name, struct slice *index)
{
    size_t open = slice_index(path, '[');
    if (open + 2 >= path.n || path.p[path.n - 1] != ']')
        return false;
    *name = slice_of(path.p, open);
    *index = slice_of(path.p + open + 1, path.n - open - 2);
    for (size_t i = 0; i < index->n; i++) {
        if (!ascii_is_digit(index->p[i]))
            return false;
    }
    return true;
}

static const struct option *find(struct rows rows, struct slice path, struct slice *key)
{
    struct slice name = SLICE_NONE, index = SLICE_NONE;
    bool indexed = split_index(path, &name, &index);
    for (const struct option *o = rows.begin; o < rows.end; o++) {
        if (match(slice_str(o->path), path, key))
            return o;
        if (indexed && o->kind == OPTION_KIND_LIST && slice_eq(slice_str(o->path), name)) {
            *key = index;
            return o;
        }
    }
    *key = SLICE_NONE;
    return NULL;
}

const struct option *option_find(struct slice path, struct slice *key)
{
    return find(of_table(), path, key);
}

const struct option *option_find_in(const struct option_record *r, struct slice rest,
                                    struct slice *key)
{
    return find(of_record(r), rest, key);
}

static const struct option_record *record_named(struct slice name)
{
    for (size_t i = 0; i < option_records_n; i++) {
        if (slice_eq(slice_str(option_records[i].path), name))
            return &option_records[i];
    }
    return NULL;
}

const struct option_record *option_record_of(struct slice path, struct slice *number,
                                             struct slice *rest)
{
    struct slice list;
    size_t close = slice_index(path, ']');
    *number = *rest = SLICE_NONE;
    if (close == path.n)
        return record_named(path);
    if (!split_index(slice_of(path.p, close + 1), &list, number))
        return NULL;
    if (close + 1 < path.n) {
        if (path.p[close + 1] != '.' || close + 2 == path.n)
            return NULL;
        *rest = slice_of(path.p + close + 2, path.n - close - 2);
    }
    return record_named(list);
}

/* The next longer section of an option's path: "retry", "retry.services", "retry.services.*". */
static bool next_section(const struct option *o, struct slice *section)
{
    size_t from = section->n ? section->n + 1 : 0;
    size_t len = strlen(o->path);
    size_t dot = slice_index(slice_of(o->path + from, len - from), '.');
    *section = slice_of(o->path, from + dot);
    return section->n < len;
}

static bool is_section(struct rows rows, struct slice path)
{
    struct slice star;
    for (const struct option *o = rows.begin; o < rows.end; o++) {
        struct slice section = SLICE_NONE;
        while (next_section(o, &section)) {
            if (match(section, path, &star) && slice_index(star, '.') == star.n)
                return true;
        }
    }
    return false;
}

bool option_is_section(struct slice path)
{
    return is_section(of_table(), path);
}

bool option_is_section_in(const struct option_record *r, struct slice rest)
{
    return is_section(of_record(r), rest);
}

bool option_has_free_keys(struct slice section)
{
    for (const struct option *o = option_table; o < option_table + option_table_n; o++) {
        size_t star = slice_index(slice_str(o->path), '*');
        if (star == section.n + 1 && memcmp(o->path, section.p, section.n) == 0)
            return true;
    }
    return false;
}

enum { NEAR_MAX = 40 }; /* longer than any path of the table */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein distance. */
size_t option_distance(struct slice a, struct slice b)
{
    if (a.n > NEAR_MAX || b.n > NEAR_MAX)
        return SIZE_MAX;
    size_t row[NEAR_MAX + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 0; i < a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.n; j++) {
            size_t change = diagonal + (ascii_lower(a.p[i]) != b.p[j]);
            diagonal = row[j + 1];
            row[j + 1] = min3(change, diagonal + 1, row[j] + 1);
        }
    }
    return row[b.n];
}

/* The last key of a path. */
static struct slice last_key(struct slice path)
{
    size_t from = path.n;
    while (from > 0 && path.p[from - 1] != '.')
        from--;
    return slice_of(path.p + from, path.n - from);
}

static const struct option *nearest(struct rows rows, struct slice path)
{
    const struct option *best = NULL;
    if (path.n == 0 || path.n > NEAR_MAX)
        return NULL;
    /* A third of the letters may differ. The right key in the wrong section is near, too. */
    size_t best_distance = path.n / 3 + 1;
    for (const struct option *o = rows.begin; o < rows.end; o++) {
        struct slice name = slice_str(o->path);
        ASSERT(name.n <= NEAR_MAX);
        size_t d = option_distance(path, name);
        if (d > 1 && slice_eq_nocase(last_key(path), last_key(name)))
            d = 1;
        if (d < best_distance) {
            best_distance = d;
            best = o;
        }
    }
    return best;
}

const struct option *option_nearest(struct slice path)
{
    return nearest(of_table(), path);
}

const struct option *option_nearest_in(const struct option_record *r, struct slice rest)
{
    return nearest(of_record(r), rest);
}

void option_variable(const struct option *o, char out[OPTION_VARIABLE_MAX])
{
    out[0] = '\0';
    if (o->kind == OPTION_KIND_MAP)
        return;
    int n = snprintf(out, OPTION_VARIABLE_MAX, "RETRYD_%s", o->path);
    ASSERT(n > 0 && n < OPTION_VARIABLE_MAX);
    for (char *c = out; *c; c++) {
        if (*c == '.')
            *c = '_';
        else if (ascii_is_alpha(*c))
            *c = (char)(*c & ~0x20);
    }
}
