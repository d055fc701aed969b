/* Reading one value or one list into the field that its option names. */
#include "core/config/build.h"
#include "core/aws/legacy.h"
#include "core/base/num.h"
#include "core/config/value.h"

#include <stdarg.h>
#include <stdio.h>

enum { PATH_SHOWN_MAX = 128 };

void build_complain(struct build *b, const char *fmt, ...)
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
    if (b->option && b->base == b->config)
        b->progress[b->option - option_table].bad = true;
}

void build_complain_at(struct build *b, const struct origin *at, const char *fmt, ...)
{
    char what[sizeof b->problems->v->text], where[ORIGIN_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    origin_text(at, where);
    problems_add(b->problems, "%s: %s", where, what);
}

struct origin build_origin(struct build *b)
{
    const struct setting *s = b->setting;
    return (struct origin){
        .name = arena_strdup(&b->config->arena, s->origin),
        .line = s->line,
        .for_sdks = s->rank < SETTING_FILE,
    };
}

const char *build_shown(struct build *b, struct slice value)
{
    bool cut = value.n > BUILD_SHOWN_MAX;
    snprintf(b->shown, sizeof b->shown, "\"%.*s%s\"", (int)(cut ? BUILD_SHOWN_MAX : value.n),
             value.p ? value.p : "", cut ? "..." : "");
    return b->shown;
}

static void *at(struct build *b, size_t offset)
{
    return (char *)b->base + offset;
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
    case OPTION_WORKERS:
        return "is neither auto nor a whole number; give one";
    default:
        return "is not a whole number; give one";
    }
}

/* Reads a number and holds it against the bounds "low..high" of its row. */
bool build_number(struct build *b, struct slice value, uint64_t *out)
{
    enum option_type type = b->option->type;
    struct slice bounds = slice_str(b->option->allowed);
    size_t dots = slice_index(bounds, '.');
    uint64_t low = 0, high = 0;
    bool row_is_good = read_number(type, slice_of(bounds.p, dots), &low) &&
                       read_number(type, slice_of(bounds.p + dots + 2, bounds.n - dots - 2), &high);
    ASSERT(row_is_good);
    if (!read_number(type, value, out)) {
        build_complain(b, "%s %s, %s", build_shown(b, value), number_advice(type), bounds.p);
        return false;
    }
    if (*out < low || *out > high) {
        build_complain(b, "%s is out of bounds; give %s", build_shown(b, value), bounds.p);
        return false;
    }
    return true;
}

static bool read_choice(struct build *b, struct slice value, int *out)
{
    if (value_choice(value, slice_str(b->option->allowed), out))
        return true;
    build_complain(b, "%s is not one of %s", build_shown(b, value), b->option->allowed);
    return false;
}

bool build_mode(struct build *b, struct slice value, enum retry_mode *out)
{
    if (value_mode(value, out))
        return true;
    build_complain(b, "%s is not one of %s", build_shown(b, value), b->option->allowed);
    return false;
}

static void store_flavour(struct build *b, struct slice value, char **to)
{
    struct err why;
    if (legacy_flavour_known(value, &why))
        *to = arena_strdup(&b->config->arena, value);
    else
        build_complain(b, "%s", why.text);
}

static void store_path(struct build *b, struct slice value, char **to)
{
    if (value_path(value))
        *to = arena_strdup(&b->config->arena, value);
    else
        build_complain(b, "%s is not an absolute path; give one that starts with /",
                       build_shown(b, value));
}

static void store_word(struct build *b, struct slice value, char **to)
{
    if (value_word(value))
        *to = arena_strdup(&b->config->arena, value);
    else
        build_complain(b, "%s is not a name; give letters, digits, \".\", \"_\" and \"-\"",
                       build_shown(b, value));
}

static void store_workers(struct build *b, struct slice value, unsigned *to)
{
    uint64_t number = 0;
    if (slice_eq(value, SLICE("auto")) || build_number(b, value, &number))
        *to = (unsigned)number;
}

static void store_file_mode(struct build *b, struct slice value, unsigned *to)
{
    if (!value_file_mode(value, to))
        build_complain(b, "%s is not a file mode; give four octal digits, %s",
                       build_shown(b, value), b->option->allowed);
}

static void store_endpoint(struct build *b, struct slice value, struct listen_address *to)
{
    const char *why;
    if (!value_endpoint(value, &b->config->arena, to, &why))
        build_complain(b, "%s: %s; give ADDRESS:PORT or unix:/PATH", build_shown(b, value), why);
}

static void store_proxy_url(struct build *b, struct slice value, struct proxy_url *to)
{
    const char *why;
    /* What does not parse may hold a password: it is not repeated. */
    if (!value_proxy_url(value, to, &why))
        build_complain(b, "%s; give http://HOST:PORT or https://HOST:PORT", why);
}

/* Empty: back to unset, which all-zero means for the optional types. */
static void store_empty(struct build *b, void *to)
{
    const struct option *o = b->option;
    if (o->text[0])
        build_complain(b, "is empty; leave the key out for the default, %s", o->text);
    else if (o->type == OPTION_PATH || o->type == OPTION_FLAVOUR || o->type == OPTION_WORD)
        *(char **)to = NULL;
    else if (o->type == OPTION_DURATION)
        *(int64_t *)to = 0;
    else if (o->type == OPTION_PROXY_URL)
        *(struct proxy_url *)to = (struct proxy_url){.given = false};
    else
        *(unsigned *)to = 0;
}

void build_value(struct build *b, struct slice value)
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
            build_complain(b, "%s is not one of true|false", build_shown(b, value));
        return;
    case OPTION_CHOICE:
        read_choice(b, value, to);
        return;
    case OPTION_MODE:
        build_mode(b, value, to);
        return;
    case OPTION_FLAVOUR:
        store_flavour(b, value, to);
        return;
    case OPTION_PATH:
        store_path(b, value, to);
        return;
    case OPTION_WORD:
        store_word(b, value, to);
        return;
    case OPTION_WORKERS:
        store_workers(b, value, to);
        return;
    case OPTION_FILE_MODE:
        store_file_mode(b, value, to);
        return;
    case OPTION_ENDPOINT:
        store_endpoint(b, value, to);
        return;
    case OPTION_PROXY_URL:
        store_proxy_url(b, value, to);
        return;
    case OPTION_DURATION:
        if (build_number(b, value, &number))
            *(int64_t *)to = (int64_t)number;
        return;
    case OPTION_SIZE:
        if (build_number(b, value, &number))
            *(uint64_t *)to = number;
        return;
    default:
        if (build_number(b, value, &number))
            *(unsigned *)to = (unsigned)number;
        return;
    }
}

/* --- lists and maps --- */

/* Appends a copy of item; NULL (and a problem) when the list is full. */
void *build_push(struct build *b, const void *item, size_t bytes)
{
    void **v = at(b, b->option->offset);
    size_t *n = at(b, b->option->n_offset);
    if (*n == BUILD_LIST_MAX) {
        build_complain(b, "more than %d entries", BUILD_LIST_MAX);
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
        build_complain(b, "%s: %s; give 127.0.0.1:PORT or [::1]:PORT", build_shown(b, item), why);
        return;
    }
    for (size_t i = 0; i < c->n_listen; i++) {
        if (a.port && authority_eq(&a, &c->listen[i])) {
            build_complain(b, "%s is listed twice", build_shown(b, item));
            return;
        }
    }
    build_push(b, &a, sizeof a);
}

static void add_host(struct build *b, struct slice item)
{
    struct host_pattern p;
    const char *why;
    if (!value_host(item, &b->config->arena, &p, NULL, &why)) {
        build_complain(b, "%s: %s; give a host name or *.suffix", build_shown(b, item), why);
        return;
    }
    if (b->option->type == OPTION_OPEN_HOSTS && p.suffix && !strchr(p.text, '.')) {
        build_complain(b, "%s is a whole top-level domain; give at least two labels after \"*.\"",
                       build_shown(b, item));
        return;
    }
    build_push(b, &p, sizeof p);
}

static void add_port(struct build *b, struct slice item)
{
    uint16_t port;
    if (value_port(item, &port))
        build_push(b, &port, sizeof port);
    else
        build_complain(b, "%s is not a port; give 1..65535", build_shown(b, item));
}

static void add_cidr(struct build *b, struct slice item)
{
    struct cidr range;
    const char *why;
    if (value_cidr(item, &range, &why))
        build_push(b, &range, sizeof range);
    else
        build_complain(b, "%s: %s; give ADDRESS or ADDRESS/PREFIX", build_shown(b, item), why);
}

static void add_word(struct build *b, struct slice item)
{
    struct slice word = arena_copy(&b->config->arena, item);
    if (value_word(item))
        build_push(b, &word, sizeof word);
    else
        build_complain(b, "%s is not a name; give letters, digits, \".\", \"_\" and \"-\"",
                       build_shown(b, item));
}

static void add_key(struct build *b, struct slice item)
{
    struct slice key = arena_copy(&b->config->arena, item);
    if (value_key(item))
        build_push(b, &key, sizeof key);
    else
        build_complain(b, "is not an access key id; give letters and digits, or \"*\" and at "
                          "least the last four of them");
}

static void add_status(struct build *b, struct slice item)
{
    uint16_t status;
    if (value_status(item, &status))
        build_push(b, &status, sizeof status);
    else
        build_complain(b, "%s is not the status of a failure; give 300..599", build_shown(b, item));
}

static void add_address(struct build *b, struct slice item)
{
    struct authority a;
    const char *why = "a port does not belong here";
    if (value_address(item, &a, &why) && a.port == 0)
        build_push(b, &a, sizeof a);
    else
        build_complain(b, "%s: %s; give an address of this machine", build_shown(b, item), why);
}

static void add_no_proxy(struct build *b, struct slice item)
{
    struct slice entry;
    const char *why;
    if (value_no_proxy(item, &b->config->arena, &entry, &why))
        build_push(b, &entry, sizeof entry);
    else
        build_complain(b, "%s: %s; give a name, an address, a range or *", build_shown(b, item),
                       why);
}

static void add_budget_part(struct build *b, struct slice item)
{
    static const char parts[] = "service|region|access_key|operation|resource|host|peer|listener";
    int position;
    if (value_choice(item, SLICE(parts), &position))
        build_push(b, &(uint16_t){(uint16_t)position}, sizeof(uint16_t));
    else
        build_complain(b, "%s is not one of %s", build_shown(b, item), parts);
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
    case OPTION_WORDS:
        add_word(b, item);
        return;
    case OPTION_KEYS:
        add_key(b, item);
        return;
    case OPTION_STATUSES:
        add_status(b, item);
        return;
    case OPTION_ADDRESSES:
        add_address(b, item);
        return;
    case OPTION_NO_PROXY:
        add_no_proxy(b, item);
        return;
    case OPTION_BUDGET_PARTS:
        add_budget_part(b, item);
        return;
    default:
        add_host(b, item);
        return;
    }
}

void build_list(struct build *b, bool anew, struct slice index, struct slice value)
{
    bool whole = index.n == 0, done = false;
    struct slice item;
    if (anew || whole)
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
