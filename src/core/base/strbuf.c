/* Bounded growing buffer. */
#include "core/base/strbuf.h"
#include "core/base/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void strbuf_init(struct strbuf *sb, size_t max_bytes)
{
    *sb = (struct strbuf){.max = max_bytes};
}

void strbuf_fini(struct strbuf *sb)
{
    free(sb->p);
    *sb = (struct strbuf){.max = sb->max};
}

void strbuf_reset(struct strbuf *sb)
{
    sb->n = 0;
    sb->overflow = false;
}

static bool reserve(struct strbuf *sb, size_t more)
{
    if (more > sb->max - sb->n) {
        sb->overflow = true;
        return false;
    }
    if (more > sb->cap - sb->n) {
        size_t cap = sb->cap ? sb->cap : 128;
        while (cap < sb->n + more)
            cap *= 2;
        if (cap > sb->max)
            cap = sb->max;
        sb->p = xrealloc(sb->p, cap);
        sb->cap = cap;
    }
    return true;
}

bool strbuf_put(struct strbuf *sb, struct slice s)
{
    if (!reserve(sb, s.n))
        return false;
    if (s.n)
        memcpy(sb->p + sb->n, s.p, s.n);
    sb->n += s.n;
    return true;
}

bool strbuf_putc(struct strbuf *sb, char c)
{
    return strbuf_put(sb, slice_of(&c, 1));
}

bool strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    bool ok;
    if ((size_t)n < sizeof small) {
        ok = strbuf_put(sb, slice_of(small, (size_t)n));
    } else {
        char *big = xmalloc((size_t)n + 1);
        vsnprintf(big, (size_t)n + 1, fmt, again);
        ok = strbuf_put(sb, slice_of(big, (size_t)n));
        free(big);
    }
    va_end(again);
    return ok;
}
