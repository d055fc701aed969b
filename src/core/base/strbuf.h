/* A growing buffer that cannot be made without its maximum. Hitting the maximum is normal control
 * flow: the append is refused whole and `overflow` stays set. Not NUL-terminated. */
#ifndef RETRYD_CORE_BASE_STRBUF_H
#define RETRYD_CORE_BASE_STRBUF_H

#include "core/base/attr.h"
#include "core/base/slice.h"

struct strbuf {
    char *p;
    size_t n, cap, max;
    bool overflow;
};

void strbuf_init(struct strbuf *sb, size_t max_bytes);
void strbuf_fini(struct strbuf *sb);
/* Empties it, keeps the memory, clears `overflow`. */
void strbuf_reset(struct strbuf *sb);

/* False (and overflow set, nothing appended) when the result would pass the maximum. */
bool strbuf_put(struct strbuf *sb, struct slice s);
bool strbuf_putc(struct strbuf *sb, char c);
bool strbuf_printf(struct strbuf *sb, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline struct slice strbuf_slice(const struct strbuf *sb)
{
    return slice_of(sb->p, sb->n);
}

#endif
