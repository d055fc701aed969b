/* Field lists. Lookups walk the list: a head has a few dozen fields and is looked at a few times,
 * so an index would cost more than it saves. */
#include "core/http/header.h"

/* clang-format off */
const unsigned char http_byte_class[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, /* 00 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 10 */
    4, 7, 6, 5, 7, 7, 7, 7, 6, 6, 7, 7, 6, 7, 7, 6, /* 20 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6, /* 30 */
    6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 40 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 4, 6, 7, 7, /* 50 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 60 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 7, 6, 7, 0, /* 70 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* 80 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* 90 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* A0 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* B0 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* C0 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* D0 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* E0 */
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* F0 */
};
/* clang-format on */

bool http_is_tchar(unsigned char c)
{
    return http_byte_class[c] & HTTP_TCHAR;
}

bool http_is_token(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!http_is_tchar((unsigned char)s.p[i]))
            return false;
    return s.n > 0;
}

void header_add(struct header_list *l, struct arena *a, struct slice name, struct slice value)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        struct header_field *v = arena_alloc(a, cap * sizeof *v);
        if (l->n)
            memcpy(v, l->v, l->n * sizeof *v);
        l->v = v;
        l->cap = cap;
    }
    l->v[l->n++] = (struct header_field){name, value};
}

static struct header_field *find(const struct header_list *l, struct slice name)
{
    for (size_t i = 0; i < l->n; i++)
        if (slice_eq_nocase(l->v[i].name, name))
            return &l->v[i];
    return NULL;
}

void header_set(struct header_list *l, struct arena *a, struct slice name, struct slice value)
{
    struct header_field *f = find(l, name);
    if (f)
        f->value = value;
    else
        header_add(l, a, name, value);
}

struct slice header_get(const struct header_list *l, struct slice name)
{
    const struct header_field *f = find(l, name);
    return f ? f->value : SLICE_NONE;
}

bool header_has(const struct header_list *l, struct slice name)
{
    return find(l, name) != NULL;
}

size_t header_count(const struct header_list *l, struct slice name)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += slice_eq_nocase(l->v[i].name, name);
    return n;
}

bool header_list_has_token(const struct header_list *l, struct slice name, struct slice token)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!slice_eq_nocase(l->v[i].name, name))
            continue;
        struct slice rest = l->v[i].value, part;
        for (bool done = false; slice_next(&rest, ',', &part, &done);)
            if (slice_eq_nocase(slice_trim(part), token))
                return true;
    }
    return false;
}
