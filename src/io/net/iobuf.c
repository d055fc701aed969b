/* Linear buffer; see iobuf.h. Bytes move only when the room behind them is too small for the next
 * read. */
#include "io/net/iobuf.h"

#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include <stdint.h>
#include <stdlib.h>

size_t iobuf_room(const struct iobuf *b, size_t max)
{
    size_t len = iobuf_len(b), behind = b->cap - b->tail;
    size_t left = len < max ? max - len : 0;
    return behind < left ? behind : left;
}

size_t iobuf_reserve(struct iobuf *b, size_t want, size_t max)
{
    size_t len = iobuf_len(b);
    size_t left = len < max ? max - len : 0;
    if (want > left)
        want = left;
    if (b->cap - b->tail >= want)
        return iobuf_room(b, max);
    if (b->cap - len >= want) {
        memmove(b->p, b->p + b->head, len);
    } else {
        size_t cap = b->cap * 2 > len + want ? b->cap * 2 : len + want;
        b->cap = cap < max ? cap : max;
        char *grown = xmalloc(b->cap);
        if (len)
            memcpy(grown, b->p + b->head, len);
        free(b->p);
        b->p = grown;
    }
    b->head = 0;
    b->tail = len;
    return iobuf_room(b, max);
}

void iobuf_filled(struct iobuf *b, size_t n)
{
    ASSERT(n <= b->cap - b->tail);
    b->tail += n;
    if (b->head == b->tail)
        iobuf_fini(b);
}

void iobuf_append(struct iobuf *b, struct slice s)
{
    if (s.n == 0)
        return;
    iobuf_reserve(b, s.n, SIZE_MAX / 4);
    memcpy(b->p + b->tail, s.p, s.n);
    b->tail += s.n;
}

void iobuf_drop(struct iobuf *b, size_t n)
{
    ASSERT(n <= iobuf_len(b));
    b->head += n;
    if (b->head == b->tail)
        iobuf_fini(b);
}

void iobuf_fini(struct iobuf *b)
{
    free(b->p);
    *b = (struct iobuf){0};
}
