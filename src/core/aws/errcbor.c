/* A scan over CBOR: every item is stepped over once, nothing is built. What a peer declares
 * (lengths, counts) is compared with the bytes that are there and never allocated; the nesting has
 * a fixed stack, and tags need none.
 *
 * Well-formedness is that of RFC 8949 5.3.1 and appendix C; text is not checked to be UTF-8, since
 * a code has to be of plain characters anyway. A repeated member counts with its last value, as in
 * JSON. */
#include "core/aws/errcbor.h"

#include <stdint.h>

enum major {
    MAJOR_UINT,
    MAJOR_NEGATIVE,
    MAJOR_BYTES,
    MAJOR_TEXT,
    MAJOR_ARRAY,
    MAJOR_MAP,
    MAJOR_TAG,
    MAJOR_SIMPLE,
};

/* Longest text looked at; a longer one is no code of ours. */
enum { TEXT_MAX = 4 * ERRCODE_MAX };

enum step {
    STEP_OK,
    STEP_CUT, /* the bytes end within an item */
    STEP_BAD,
};

struct scan {
    const unsigned char *p, *end;
};

struct head {
    enum major major;
    bool indefinite; /* of a simple value: the break */
    uint64_t n;
};

/* A text of up to TEXT_MAX bytes; is_text false: another item, or a longer text. */
struct text {
    bool is_text;
    size_t n;
    char bytes[TEXT_MAX];
};

static size_t left(const struct scan *s)
{
    return (size_t)(s->end - s->p);
}

static bool is_break(const struct head *h)
{
    return h->major == MAJOR_SIMPLE && h->indefinite;
}

static bool may_be_indefinite(enum major m)
{
    return m == MAJOR_BYTES || m == MAJOR_TEXT || m == MAJOR_ARRAY || m == MAJOR_MAP ||
           m == MAJOR_SIMPLE;
}

static enum step read_head(struct scan *s, struct head *h)
{
    if (left(s) == 0)
        return STEP_CUT;
    unsigned info = *s->p & 31;
    *h = (struct head){(enum major)(*s->p >> 5), info == 31, info};
    s->p++;
    if (info < 24)
        return STEP_OK;
    if (info == 31)
        return may_be_indefinite(h->major) ? STEP_OK : STEP_BAD;
    if (info > 27)
        return STEP_BAD;
    size_t bytes = (size_t)1 << (info - 24);
    if (left(s) < bytes)
        return STEP_CUT;
    h->n = 0;
    while (bytes-- > 0)
        h->n = h->n << 8 | *s->p++;
    return h->major == MAJOR_SIMPLE && info == 24 && h->n < 32 ? STEP_BAD : STEP_OK;
}

/* The head of the next item, behind its tags. */
static enum step read_untagged(struct scan *s, struct head *h)
{
    bool tagged = false;
    for (;;) {
        enum step step = read_head(s, h);
        if (step != STEP_OK)
            return step;
        if (h->major != MAJOR_TAG)
            return tagged && is_break(h) ? STEP_BAD : STEP_OK;
        tagged = true;
    }
}

static enum step take_bytes(struct scan *s, uint64_t n, struct text *t)
{
    if (n > left(s))
        return STEP_CUT;
    if (t) {
        t->is_text = t->is_text && n <= TEXT_MAX - t->n;
        if (t->is_text && n > 0)
            memcpy(t->bytes + t->n, s->p, (size_t)n);
        t->n += t->is_text ? (size_t)n : 0;
    }
    s->p += n;
    return STEP_OK;
}

/* The rest of a string, appended to t unless that is NULL. */
static enum step read_string(struct scan *s, const struct head *h, struct text *t)
{
    if (!h->indefinite)
        return take_bytes(s, h->n, t);
    for (;;) {
        struct head chunk;
        enum step step = read_head(s, &chunk);
        if (step != STEP_OK)
            return step;
        if (is_break(&chunk))
            return STEP_OK;
        if (chunk.major != h->major || chunk.indefinite)
            return STEP_BAD;
        step = take_bytes(s, chunk.n, t);
        if (step != STEP_OK)
            return step;
    }
}

/* An open array or map: how many items are to come, or, until the break, how many came. */
struct level {
    bool is_map, indefinite;
    uint64_t items;
};

/* A count beyond what any body can hold stays beyond it. */
static struct level level_of(const struct head *h)
{
    bool is_map = h->major == MAJOR_MAP;
    uint64_t items = h->indefinite ? 0 : h->n;
    if (is_map)
        items = items > UINT64_MAX / 2 ? UINT64_MAX : 2 * items;
    return (struct level){is_map, h->indefinite, items};
}

static bool may_end(const struct level *l)
{
    return l->indefinite && (!l->is_map || l->items % 2 == 0);
}

/* An item ended: counts it in the innermost level, and that level as an item of the next one when
 * it was the last. */
static void count_item(struct level *levels, size_t *depth)
{
    while (*depth > 0) {
        struct level *l = &levels[*depth - 1];
        if (l->indefinite) {
            l->items++;
            return;
        }
        if (--l->items > 0)
            return;
        --*depth;
    }
}

/* The rest of an item whose head was read; it lies within the top-level map. */
static enum step skip_rest(struct scan *s, struct head h)
{
    struct level levels[ERRCBOR_DEPTH_MAX - 1];
    size_t depth = 0;
    for (;;) {
        enum step step = STEP_OK;
        if (is_break(&h)) {
            if (depth == 0 || !may_end(&levels[depth - 1]))
                return STEP_BAD;
            depth--;
            count_item(levels, &depth);
        } else if (h.major == MAJOR_ARRAY || h.major == MAJOR_MAP) {
            struct level l = level_of(&h);
            if (depth == ERRCBOR_DEPTH_MAX - 1)
                return STEP_BAD;
            if (l.indefinite || l.items > 0)
                levels[depth++] = l;
            else
                count_item(levels, &depth);
        } else {
            if (h.major == MAJOR_BYTES || h.major == MAJOR_TEXT)
                step = read_string(s, &h, NULL);
            count_item(levels, &depth);
        }
        if (step == STEP_OK && depth > 0)
            step = read_untagged(s, &h);
        if (step != STEP_OK || depth == 0)
            return step;
    }
}

/* An item of the top-level map, as text if it is one. */
static enum step read_item(struct scan *s, struct head h, struct text *t)
{
    t->is_text = h.major == MAJOR_TEXT;
    t->n = 0;
    return t->is_text ? read_string(s, &h, t) : skip_rest(s, h);
}

/* One member: *type becomes its value when its key is __type. */
static enum step read_member(struct scan *s, struct head key, struct text *type)
{
    struct text text;
    struct head value;
    enum step step = read_item(s, key, &text);
    bool is_type = text.is_text && slice_eq(slice_of(text.bytes, text.n), SLICE("__type"));
    if (step == STEP_OK)
        step = read_untagged(s, &value);
    if (step != STEP_OK)
        return step;
    if (is_break(&value))
        return STEP_BAD;
    step = read_item(s, value, &text);
    if (step == STEP_OK && is_type)
        *type = text;
    return step;
}

/* STEP_OK: the body is one map. */
static enum step read_map(struct scan *s, struct text *type)
{
    struct head h;
    enum step step = read_untagged(s, &h);
    if (step != STEP_OK)
        return step;
    if (h.major != MAJOR_MAP)
        return STEP_BAD;
    bool indefinite = h.indefinite;
    for (uint64_t pairs = h.n; indefinite || pairs > 0; pairs--) {
        step = read_untagged(s, &h);
        if (step == STEP_OK && is_break(&h)) {
            if (!indefinite)
                return STEP_BAD;
            break;
        }
        if (step == STEP_OK)
            step = read_member(s, h, type);
        if (step != STEP_OK)
            return step;
    }
    return left(s) == 0 ? STEP_OK : STEP_BAD;
}

void errcbor_read(struct slice body, bool whole, struct arena *a, struct errcode *out)
{
    const unsigned char *p = (const unsigned char *)body.p;
    struct scan s = {p, body.n > 0 ? p + body.n : p};
    struct text type = {.is_text = false};
    enum step step = read_map(&s, &type);
    out->parsed = step == STEP_OK || (step == STEP_CUT && !whole);
    if (!out->parsed || !type.is_text)
        return;
    struct slice code = errcode_clean(slice_of(type.bytes, type.n));
    if (code.n > 0) {
        out->code = arena_copy(a, code);
        out->source = ERRCODE_CBOR;
    }
}
