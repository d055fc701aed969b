/* The bytes of one connected socket, plain or TLS: no events and no callbacks. This is the inside
 * of conn; other rooms use io/net/conn.h.
 *
 * A stream says what it waits for. Under TLS either direction may wait for either kind of
 * readiness. */
#ifndef RETRYD_IO_NET_STREAM_H
#define RETRYD_IO_NET_STREAM_H

#include "io/net/iobuf.h"
#include "io/net/netfail.h"
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

enum stream_io {
    STREAM_OK,
    STREAM_WANT_READ,
    STREAM_WANT_WRITE,
    STREAM_END,    /* FIN on plain, close_notify on TLS */
    STREAM_FAILED, /* see failure and detail */
};

struct stream_ops;

struct stream {
    int fd;
    const struct stream_ops *ops;
    SSL *ssl;           /* the topmost TLS; NULL: plain */
    SSL *outer;         /* the TLS that ssl runs inside: that with a parent proxy; NULL: none */
    bool up;            /* the handshake is finished */
    bool fin;           /* the socket has reported its end */
    struct iobuf early; /* received before TLS began: TLS reads them ahead of the socket */
    struct iobuf late;  /* written before TLS began: sent ahead of the first record */
    uint64_t rx, tx;    /* bytes taken from and given to the socket */
    uint64_t tls_rx;    /* rx at the first byte of TLS */
    int sys_errno;      /* of the socket, sticky: some ways of asking clear it in the kernel */
    enum net_fail failure;
    char *detail;
};

/* Takes fd. */
void stream_init(struct stream *s, int fd);
/* Closes the descriptor at once; reset: with RST. Memory stays for stream_fini. */
void stream_hang_up(struct stream *s, bool reset);
void stream_fini(struct stream *s);
/* Records the first failure; returns STREAM_FAILED. */
enum stream_io stream_fail(struct stream *s, enum net_fail kind, const char *detail);

/* Takes ssl and the contents of in and out (both from below it). stream_handshake is next. A second
 * call puts one TLS inside the other, once the first is up. */
void stream_start_tls(struct stream *s, SSL *ssl, struct iobuf *in, struct iobuf *out);
enum stream_io stream_handshake(struct stream *s);

enum stream_io stream_read(struct stream *s, char *p, size_t n, size_t *got);
/* After WANT_* it must be called again with the same bytes first, wherever they lie now, and maybe
 * more. */
enum stream_io stream_write(struct stream *s, const char *p, size_t n, size_t *put);
/* FIN, or close_notify. */
enum stream_io stream_shutdown(struct stream *s);

/* Looks for bytes or an end without taking anything. */
enum stream_peek { STREAM_SILENT, STREAM_BYTES, STREAM_FIN, STREAM_DEAD };
enum stream_peek stream_peek(struct stream *s);

#endif
