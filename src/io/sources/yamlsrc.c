/* YAML events -> settings (security requirement K5).
 *
 * The small part of YAML that a configuration needs: one document, mappings, sequences and scalars.
 * What would let a file say one thing and mean another is a problem: anchors, aliases, tags,
 * duplicate keys. Nothing is typed here: a scalar is text, and its option knows how to read it. */
#include "io/sources/yamlsrc.h"
#include "core/base/xalloc.h"
#include "core/config/option.h"
#include "io/sources/readfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

enum {
    DEPTH_MAX = 16,
    PATH_MAX_BYTES = 512,
};

struct reader {
    yaml_parser_t parser;
    const char *name; /* of the file */
    struct settings *settings;
    struct problems *problems;
    struct slice *seen; /* paths of all keys, for duplicates; on the settings' arena */
    size_t n_seen;
    unsigned depth;
};

static unsigned line_of(const yaml_mark_t *mark)
{
    return (unsigned)mark->line + 1;
}

/* Says so and returns false: reading ends here. */
static bool stop(struct reader *r, const yaml_mark_t *mark, const char *what)
{
    problems_add(r->problems, "%s:%u: %s", r->name, line_of(mark), what);
    return false;
}

static bool next_event(struct reader *r, yaml_event_t *e)
{
    if (yaml_parser_parse(&r->parser, e))
        return true;
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_READER_ERROR)
        problems_add(r->problems, "%s: not a text in UTF-8: %s at byte %zu", r->name,
                     p->problem ? p->problem : "bad byte", p->problem_offset);
    else
        problems_add(r->problems, "%s:%u: not YAML: %s", r->name, line_of(&p->problem_mark),
                     p->problem ? p->problem : "out of memory");
    return false;
}

/* Anchors and tags are problems, but reading goes on. */
static void refuse_properties(struct reader *r, const yaml_event_t *e, struct slice path,
                              const yaml_char_t *anchor, const yaml_char_t *tag)
{
    unsigned line = line_of(&e->start_mark);
    if (anchor)
        problems_add(r->problems, "%s:%u: %.*s: anchors (&) are not allowed; write it out", r->name,
                     line, SLICE_FMT(path));
    if (tag)
        problems_add(r->problems, "%s:%u: %.*s: tags (!) are not allowed; give the value alone",
                     r->name, line, SLICE_FMT(path));
}

static struct slice scalar_text(const yaml_event_t *e)
{
    return slice_of((const char *)e->data.scalar.value, e->data.scalar.length);
}

static bool is_null(const yaml_event_t *e)
{
    struct slice s = scalar_text(e);
    return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (s.n == 0 || slice_eq(s, SLICE("~")) || slice_eq(s, SLICE("null")));
}

static bool add(struct reader *r, const yaml_event_t *e, struct slice path, struct slice value)
{
    if (r->settings->n >= SETTINGS_MAX)
        return stop(r, &e->start_mark, "too many values");
    settings_add(r->settings, path, value, SETTING_FILE, r->name, line_of(&e->start_mark));
    return true;
}

/* A path made of two parts, on the arena; the empty slice when it would be too long. */
static struct slice keep_path(struct reader *r, const char *text, int n)
{
    if (n < 0 || n >= PATH_MAX_BYTES)
        return SLICE_NONE;
    return arena_copy(&r->settings->arena, slice_of(text, (size_t)n));
}

static struct slice item_path(struct reader *r, struct slice list, unsigned i)
{
    char text[PATH_MAX_BYTES];
    return keep_path(r, text, snprintf(text, sizeof text, "%.*s[%u]", SLICE_FMT(list), i));
}

static struct slice key_path(struct reader *r, struct slice mapping, struct slice key)
{
    char text[PATH_MAX_BYTES];
    const char *dot = mapping.n ? "." : "";
    return keep_path(
        r, text,
        snprintf(text, sizeof text, "%.*s%s%.*s", SLICE_FMT(mapping), dot, SLICE_FMT(key)));
}

/* Letters, digits, "_" and "-"; where users name things, any visible ASCII. A key never looks like
 * a path. */
static bool key_is_plain(struct slice key, bool free_keys)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        bool word = ascii_is_alpha(c) || ascii_is_digit(c) || c == '_' || c == '-';
        if (!word && !(free_keys && c > ' ' && c < 0x7f))
            return false;
    }
    return key.n > 0;
}

static bool seen_before(struct reader *r, struct slice path)
{
    for (size_t i = 0; i < r->n_seen; i++) {
        if (slice_eq(r->seen[i], path))
            return true;
    }
    r->seen[r->n_seen++] = path;
    return false;
}

/* The path of a key; the empty slice when reading cannot go on. */
static struct slice read_key(struct reader *r, const yaml_event_t *e, struct slice mapping)
{
    if (e->type != YAML_SCALAR_EVENT) {
        stop(r, &e->start_mark, "a key must be a word");
        return SLICE_NONE;
    }
    struct slice key = scalar_text(e);
    struct slice path = key_path(r, mapping, key);
    const char *what = NULL;
    if (!key_is_plain(key, option_has_free_keys(mapping)))
        what = "not a key: letters, digits, \"_\" and \"-\" only";
    else if (path.n == 0)
        what = "a key too long";
    else if (r->n_seen == SETTINGS_MAX)
        what = "too many keys";
    if (what) {
        stop(r, &e->start_mark, what);
        return SLICE_NONE;
    }
    refuse_properties(r, e, path, e->data.scalar.anchor, e->data.scalar.tag);
    if (seen_before(r, path))
        problems_add(r->problems, "%s:%u: %.*s: given twice; keep one", r->name,
                     line_of(&e->start_mark), SLICE_FMT(path));
    return path;
}

static bool read_node(struct reader *r, const yaml_event_t *e, struct slice path);

/* Reads the next event as the node at this path. */
static bool read_next(struct reader *r, struct slice path)
{
    yaml_event_t e;
    if (!next_event(r, &e))
        return false;
    bool ok = read_node(r, &e, path);
    yaml_event_delete(&e);
    return ok;
}

static bool read_mapping(struct reader *r, const yaml_event_t *start, struct slice path)
{
    for (size_t n = 0;; n++) {
        yaml_event_t e;
        if (!next_event(r, &e))
            return false;
        bool end = e.type == YAML_MAPPING_END_EVENT;
        struct slice key = end ? SLICE_NONE : read_key(r, &e, path);
        yaml_event_delete(&e);
        if (end)
            return n > 0 || path.n == 0 || add(r, start, path, SLICE("{}"));
        if (key.n == 0 || !read_next(r, key))
            return false;
    }
}

static bool read_sequence(struct reader *r, const yaml_event_t *start, struct slice path)
{
    for (unsigned i = 0;; i++) {
        yaml_event_t e;
        struct slice item = item_path(r, path, i);
        if (!next_event(r, &e))
            return false;
        bool end = e.type == YAML_SEQUENCE_END_EVENT;
        bool ok = end || (item.n && read_node(r, &e, item));
        yaml_event_delete(&e);
        if (end)
            return i > 0 || add(r, start, path, SLICE("[]"));
        if (!ok)
            return false;
    }
}

static bool read_container(struct reader *r, const yaml_event_t *e, struct slice path)
{
    bool ok;
    if (r->depth == DEPTH_MAX)
        return stop(r, &e->start_mark, "nested too deeply; 16 levels at most");
    r->depth++;
    if (e->type == YAML_MAPPING_START_EVENT) {
        refuse_properties(r, e, path, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        ok = read_mapping(r, e, path);
    } else {
        refuse_properties(r, e, path, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        ok = read_sequence(r, e, path);
    }
    r->depth--;
    return ok;
}

static bool read_node(struct reader *r, const yaml_event_t *e, struct slice path)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        refuse_properties(r, e, path, e->data.scalar.anchor, e->data.scalar.tag);
        return add(r, e, path, is_null(e) ? SLICE_NONE : scalar_text(e));
    case YAML_ALIAS_EVENT:
        problems_add(r->problems, "%s:%u: %.*s: aliases (*) are not allowed; write it out", r->name,
                     line_of(&e->start_mark), SLICE_FMT(path));
        return true;
    default:
        return read_container(r, e, path);
    }
}

/* The root: a mapping, or nothing at all. */
static bool read_root(struct reader *r, const yaml_event_t *e)
{
    if (e->type == YAML_MAPPING_START_EVENT)
        return read_node(r, e, SLICE_NONE);
    if (e->type == YAML_SCALAR_EVENT && is_null(e))
        return true;
    return stop(r, &e->start_mark, "the file must be a mapping, one \"key: value\" a line");
}

static bool read_stream(struct reader *r)
{
    bool had_document = false;
    for (;;) {
        yaml_event_t e;
        bool ok = true;
        if (!next_event(r, &e))
            return false;
        bool end = e.type == YAML_STREAM_END_EVENT;
        if (e.type == YAML_DOCUMENT_START_EVENT) {
            ok = !had_document || stop(r, &e.start_mark, "a second document; one is allowed");
            had_document = true;
        } else if (!end && e.type != YAML_STREAM_START_EVENT && e.type != YAML_DOCUMENT_END_EVENT) {
            ok = read_root(r, &e);
        }
        yaml_event_delete(&e);
        if (end || !ok)
            return ok;
    }
}

bool yamlsrc_text(struct slice text, const char *name, struct settings *s,
                  struct problems *problems)
{
    struct reader r = {.name = name, .settings = s, .problems = problems};
    size_t problems_before = problems->n;
    if (text.n > READFILE_MAX_BYTES) {
        problems_add(problems, "%s: larger than 1 MiB", name);
        return false;
    }
    if (!yaml_parser_initialize(&r.parser)) {
        problems_add(problems, "%s: out of memory", name);
        return false;
    }
    r.seen = xcalloc(SETTINGS_MAX, sizeof *r.seen);
    yaml_parser_set_input_string(&r.parser, (const yaml_char_t *)text.p, text.n);
    read_stream(&r);
    yaml_parser_delete(&r.parser);
    free(r.seen);
    return problems->n == problems_before;
}

/* --- files --- */

/* Who may write it may choose where requests with live credentials go. */
static bool trust_file(int fd, const char *path, struct problems *problems)
{
    struct stat st;
    const char *what = NULL;
    if (fstat(fd, &st) != 0)
        what = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        what = "not a regular file";
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        what = "belongs to another user; root or the user of retryd must own it";
    else if (st.st_mode & S_IWOTH)
        what = "anyone may write it; chmod o-w";
    else if (st.st_size > READFILE_MAX_BYTES)
        what = "larger than 1 MiB";
    if (what)
        problems_add(problems, "%s: %s", path, what);
    return what == NULL;
}

bool yamlsrc_file(const char *path, struct settings *s, struct problems *problems)
{
    int fd = readfile_open(path);
    if (fd < 0) {
        problems_add(problems, "%s: %s", path, strerror(errno));
        return false;
    }
    bool ok = trust_file(fd, path, problems);
    if (ok) {
        size_t n;
        char *text = readfile_all(fd, &n);
        ok = text && yamlsrc_text(slice_of(text, n), path, s, problems);
        if (!text)
            problems_add(problems, "%s: %s", path, strerror(errno));
        free(text);
    }
    close(fd);
    return ok;
}
