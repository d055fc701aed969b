/* Arena: a stack of malloc blocks, newest first. */
#include "core/base/arena.h"
#include "core/base/xalloc.h"

#include <stdalign.h>
#include <stdlib.h>

enum { FIRST_BLOCK_BYTES = 4096, ALIGN = alignof(max_align_t) };

struct arena_block {
    struct arena_block *next;
    size_t cap;
    alignas(max_align_t) char mem[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

static void drop_until(struct arena *a, struct arena_block *keep)
{
    while (a->head != keep) {
        struct arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
}

void arena_fini(struct arena *a)
{
    drop_until(a, NULL);
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    struct arena_block *first = a->head;
    while (first != NULL && first->next != NULL)
        first = first->next;
    drop_until(a, first);
    a->used = 0;
    a->total_bytes = 0;
    a->cap = first ? first->cap : 0;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    size_t need = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (need > a->cap - a->used) {
        size_t cap = a->head ? a->head->cap * 2 : FIRST_BLOCK_BYTES;
        if (cap < need)
            cap = need;
        struct arena_block *b = xmalloc(sizeof *b + cap);
        b->next = a->head;
        b->cap = cap;
        a->head = b;
        a->used = 0;
        a->cap = cap;
    }
    void *p = a->head->mem + a->used;
    a->used += need;
    a->total_bytes += need;
    memset(p, 0, bytes);
    return p;
}

char *arena_strdup(struct arena *a, struct slice s)
{
    char *p = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    return slice_of(arena_strdup(a, s), s.n);
}
