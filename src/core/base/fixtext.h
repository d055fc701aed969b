/* Short text put together in a buffer of fixed size, for what is made once a request: cheaper than
 * formatted printing. What does not fit is cut; the result is always NUL-terminated. */
#ifndef RETRYD_CORE_BASE_FIXTEXT_H
#define RETRYD_CORE_BASE_FIXTEXT_H

#include "core/base/slice.h"

struct fixtext {
    char *p;
    size_t n, cap; /* cap: bytes at p, the NUL among them */
};

/* Borrows buf, of cap > 0 bytes. */
static inline struct fixtext fixtext_in(char *buf, size_t cap)
{
    buf[0] = '\0';
    return (struct fixtext){buf, 0, cap};
}

static inline void fixtext_put(struct fixtext *t, struct slice s)
{
    size_t room = t->cap - 1 - t->n;
    size_t n = s.n < room ? s.n : room;
    if (n > 0)
        memcpy(t->p + t->n, s.p, n);
    t->n += n;
    t->p[t->n] = '\0';
}

/* In decimal. */
static inline void fixtext_number(struct fixtext *t, unsigned long number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    fixtext_put(t, slice_of(digits + at, sizeof digits - at));
}

static inline struct slice fixtext_slice(const struct fixtext *t)
{
    return slice_of(t->p, t->n);
}

#endif
