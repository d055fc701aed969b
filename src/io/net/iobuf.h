/* A linear byte buffer: filled behind tail, emptied at head. It has memory only while it has bytes,
 * so that an idle connection costs none (security requirement J12). The bound is the caller's,
 * given on each growth. */
#ifndef RETRYD_IO_NET_IOBUF_H
#define RETRYD_IO_NET_IOBUF_H

#include "core/base/slice.h"

struct iobuf {
    char *p;
    size_t head, tail, cap;
};

static inline size_t iobuf_len(const struct iobuf *b)
{
    return b->tail - b->head;
}

static inline struct slice iobuf_slice(const struct iobuf *b)
{
    return iobuf_len(b) ? slice_of(b->p + b->head, iobuf_len(b)) : SLICE_NONE;
}

/* The room behind the tail, as far as the buffer may hold max bytes in all; 0 where it holds more
 * already, since bounds may have been narrowed. */
size_t iobuf_room(const struct iobuf *b, size_t max);
/* Makes room for want bytes behind the tail, moving or growing as needed. Returns iobuf_room():
 * less than want only near max. */
size_t iobuf_reserve(struct iobuf *b, size_t want, size_t max);
/* n bytes were written behind the tail; 0 gives unused memory back. */
void iobuf_filled(struct iobuf *b, size_t n);
void iobuf_append(struct iobuf *b, struct slice s);
/* Drops n bytes at the head; the memory too when they were the last. */
void iobuf_drop(struct iobuf *b, size_t n);
void iobuf_fini(struct iobuf *b);

#endif
