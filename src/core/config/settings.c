/* Collecting settings and problems. Both are bounded: sources stop at SETTINGS_MAX, problems at
 * PROBLEMS_MAX. */
#include "core/config/settings.h"
#include "core/base/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROBLEMS_MAX = 64 };

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    arena_init(&s->arena);
}

void settings_fini(struct settings *s)
{
    free(s->v);
    arena_fini(&s->arena);
    *s = (struct settings){0};
}

void settings_add(struct settings *s, struct slice path, struct slice value, enum setting_rank rank,
                  const char *origin, unsigned line)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->v = xrealloc(s->v, s->cap * sizeof *s->v);
    }
    s->v[s->n++] = (struct setting){
        .path = arena_copy(&s->arena, path),
        .value = arena_copy(&s->arena, value),
        .rank = rank,
        .origin = arena_copy(&s->arena, slice_str(origin)),
        .line = line,
    };
}

void problems_add(struct problems *p, const char *fmt, ...)
{
    if (p->n == PROBLEMS_MAX)
        return;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->v = xrealloc(p->v, p->cap * sizeof *p->v);
    }
    struct problem *problem = &p->v[p->n++];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(problem->text, sizeof problem->text, fmt, ap);
    va_end(ap);
    if (p->n == PROBLEMS_MAX)
        snprintf(problem->text, sizeof problem->text, "more problems than are shown here");
    for (char *c = problem->text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
}

void problems_fini(struct problems *p)
{
    free(p->v);
    *p = (struct problems){0};
}
