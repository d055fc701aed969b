/* Plain and TLS transport by an ops table.
 *
 * TLS runs over a BIO of our own instead of OpenSSL's socket BIO, for four things: bytes that
 * arrived before TLS began are read first; SIGPIPE cannot happen; the errno of the socket is kept;
 * and a bare FIN is told from close_notify (security requirement D5) by what the socket said, not
 * by OpenSSL's wording. */
#include "io/net/stream.h"

#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include "io/tls/tlserr.h"
#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENT_HANDSHAKE_MAX = 64 * 1024 }; /* security requirement F10 */

struct stream_ops {
    enum stream_io (*read)(struct stream *s, char *p, size_t n, size_t *got);
    enum stream_io (*write)(struct stream *s, const char *p, size_t n, size_t *put);
    enum stream_io (*shutdown)(struct stream *s);
};

enum stream_io stream_fail(struct stream *s, enum net_fail kind, const char *detail)
{
    if (s->failure == NET_OK) {
        s->failure = kind;
        s->detail = xstrdup(detail);
    }
    return STREAM_FAILED;
}

/* --- the socket --- */

static enum stream_io socket_error(struct stream *s, enum stream_io when_blocked)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return when_blocked;
    s->sys_errno = errno;
    return STREAM_FAILED;
}

static enum stream_io socket_recv(struct stream *s, char *p, size_t n, size_t *got)
{
    ssize_t k;
    do
        k = recv(s->fd, p, n, 0);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return socket_error(s, STREAM_WANT_READ);
    if (k == 0) {
        s->fin = true;
        return s->sys_errno ? STREAM_FAILED : STREAM_END;
    }
    s->rx += (uint64_t)k;
    *got = (size_t)k;
    return STREAM_OK;
}

static enum stream_io socket_send(struct stream *s, const char *p, size_t n, size_t *put)
{
    ssize_t k;
    do
        k = send(s->fd, p, n, MSG_NOSIGNAL);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return socket_error(s, STREAM_WANT_WRITE);
    s->tx += (uint64_t)k;
    *put = (size_t)k;
    return STREAM_OK;
}

static enum stream_io fail_socket(struct stream *s)
{
    return stream_fail(s, NET_RESET, strerror(s->sys_errno));
}

/* --- plain --- */

static enum stream_io plain_read(struct stream *s, char *p, size_t n, size_t *got)
{
    enum stream_io r = socket_recv(s, p, n, got);
    return r == STREAM_FAILED ? fail_socket(s) : r;
}

static enum stream_io plain_write(struct stream *s, const char *p, size_t n, size_t *put)
{
    enum stream_io r = socket_send(s, p, n, put);
    return r == STREAM_FAILED ? fail_socket(s) : r;
}

static enum stream_io plain_shutdown(struct stream *s)
{
    if (shutdown(s->fd, SHUT_WR) == 0)
        return STREAM_OK;
    s->sys_errno = errno;
    return fail_socket(s);
}

static const struct stream_ops plain_ops = {plain_read, plain_write, plain_shutdown};

/* --- the BIO under TLS --- */

/* What lies under a BIO: the other TLS if it is that of the inner one, else the socket. */
static bool is_inner(const struct stream *s, const BIO *b)
{
    return s->outer != NULL && b == SSL_get_rbio(s->ssl);
}

/* A result of the outer TLS, for the inner one. The outer may have to write in order to read. */
static enum stream_io outer_result(struct stream *s, int rc)
{
    switch (SSL_get_error(s->outer, rc)) {
    case SSL_ERROR_NONE:
        return STREAM_OK;
    case SSL_ERROR_WANT_READ:
        return STREAM_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return STREAM_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        s->fin = true;
        return STREAM_END;
    default:
        return STREAM_FAILED;
    }
}

static enum stream_io lower_read(struct stream *s, const BIO *b, char *p, size_t n, size_t *got)
{
    if (!is_inner(s, b))
        return socket_recv(s, p, n, got);
    return outer_result(s, SSL_read_ex(s->outer, p, n, got));
}

static enum stream_io lower_write(struct stream *s, const BIO *b, const char *p, size_t n,
                                  size_t *put)
{
    if (!is_inner(s, b))
        return socket_send(s, p, n, put);
    return outer_result(s, SSL_write_ex(s->outer, p, n, put));
}

static int bio_read(BIO *b, char *p, int n)
{
    struct stream *s = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (n <= 0)
        return 0;
    if (iobuf_len(&s->early) > 0 && b == SSL_get_rbio(s->ssl)) {
        struct slice in = iobuf_slice(&s->early);
        size_t k = in.n < (size_t)n ? in.n : (size_t)n;
        memcpy(p, in.p, k);
        iobuf_drop(&s->early, k);
        return (int)k;
    }
    size_t got = 0;
    switch (lower_read(s, b, p, (size_t)n, &got)) {
    case STREAM_OK:
        return (int)got;
    case STREAM_WANT_READ:
        BIO_set_retry_read(b);
        return -1;
    case STREAM_WANT_WRITE:
        BIO_set_retry_write(b);
        return -1;
    case STREAM_END:
        return 0;
    default:
        return -1;
    }
}

static int bio_write(BIO *b, const char *p, int n)
{
    struct stream *s = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (n <= 0)
        return 0;
    size_t put = 0;
    switch (lower_write(s, b, p, (size_t)n, &put)) {
    case STREAM_OK:
        return (int)put;
    case STREAM_WANT_WRITE:
        BIO_set_retry_write(b);
        return -1;
    case STREAM_WANT_READ:
        BIO_set_retry_read(b);
        return -1;
    default:
        return -1;
    }
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)num;
    (void)ptr;
    const struct stream *s = BIO_get_data(b);
    if (cmd == BIO_CTRL_FLUSH)
        return 1;
    if (cmd == BIO_CTRL_EOF)
        return s->fin && iobuf_len(&s->early) == 0;
    return 0;
}

static int bio_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

/* One method table for the life of the process. */
static BIO *bio_over(struct stream *s)
{
    static BIO_METHOD *method;
    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
        ASSERT(method);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
        BIO_meth_set_create(method, bio_create);
    }
    BIO *b = BIO_new(method);
    ASSERT(b);
    BIO_set_data(b, s);
    return b;
}

/* --- TLS --- */

/* A client that looked at our certificate and left. With TLS 1.3 it may say so after the handshake.
 */
static bool distrusted(const struct stream *s)
{
    return SSL_is_server(s->ssl) && tlserr_is_distrust();
}

/* A failed call of an established stream. */
static enum stream_io tls_failed(struct stream *s)
{
    struct err why = {.text = ""};
    bool distrust = distrusted(s);
    tlserr_explain(s->ssl, &why); /* empties the queue */
    if (distrust)
        return stream_fail(s, NET_DISTRUSTED, why.text);
    if (s->sys_errno)
        return fail_socket(s);
    if (s->fin)
        return stream_fail(s, NET_TRUNCATED, "connection closed without close_notify");
    return stream_fail(s, NET_RESET, why.text);
}

static enum stream_io tls_result(struct stream *s, int rc)
{
    switch (SSL_get_error(s->ssl, rc)) {
    case SSL_ERROR_NONE:
        return STREAM_OK;
    case SSL_ERROR_WANT_READ:
        return STREAM_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return STREAM_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return STREAM_END;
    default:
        return STREAM_FAILED;
    }
}

static enum stream_io tls_read(struct stream *s, char *p, size_t n, size_t *got)
{
    ERR_clear_error();
    enum stream_io r = tls_result(s, SSL_read_ex(s->ssl, p, n, got));
    return r == STREAM_FAILED ? tls_failed(s) : r;
}

static enum stream_io tls_write(struct stream *s, const char *p, size_t n, size_t *put)
{
    ERR_clear_error();
    enum stream_io r = tls_result(s, SSL_write_ex(s->ssl, p, n, put));
    /* An end can only be the peer's close_notify met by a write that had to read first. */
    return r == STREAM_FAILED || r == STREAM_END ? tls_failed(s) : r;
}

static enum stream_io tls_shutdown(struct stream *s)
{
    ERR_clear_error();
    int rc = SSL_shutdown(s->ssl);
    if (rc >= 0) {
        if (s->outer)
            SSL_shutdown(s->outer); /* as far as the socket takes it: the parent's loss only */
        ERR_clear_error();
        return STREAM_OK; /* sent; the peer's own may come later */
    }
    enum stream_io r = tls_result(s, rc);
    return r == STREAM_FAILED || r == STREAM_END ? tls_failed(s) : r;
}

static const struct stream_ops tls_ops = {tls_read, tls_write, tls_shutdown};

void stream_start_tls(struct stream *s, SSL *ssl, struct iobuf *in, struct iobuf *out)
{
    ASSERT(!s->outer && (!s->ssl || s->up));
    s->outer = s->ssl; /* which has read all there was before itself */
    s->up = false;
    iobuf_fini(&s->early);
    iobuf_fini(&s->late);
    s->tls_rx = s->rx - iobuf_len(in);
    s->early = *in;
    s->late = *out;
    *in = *out = (struct iobuf){0};
    s->ssl = ssl;
    s->ops = &tls_ops;
    BIO *b = bio_over(s);
    SSL_set_bio(ssl, b, b);
    /* Idle connections hold no record buffers; one recv fetches a record with its header. Buffered
     * output moves in memory, and a record that was sent counts even if the next one has to wait.
     */
    SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_read_ahead(ssl, 1);
}

static enum stream_io handshake_failed(struct stream *s)
{
    struct err why = {.text = ""};
    bool distrust = distrusted(s);
    if (tlserr_explain(s->ssl, &why))
        return stream_fail(s, NET_CERTIFICATE, why.text);
    if (distrust)
        return stream_fail(s, NET_DISTRUSTED, why.text);
    if (s->sys_errno) {
        err_set(&why, "handshake: %s", strerror(s->sys_errno));
        return stream_fail(s, NET_TLS, why.text);
    }
    return stream_fail(s, NET_TLS, s->fin ? "handshake: connection closed by the peer" : why.text);
}

enum stream_io stream_handshake(struct stream *s)
{
    while (iobuf_len(&s->late) > 0) {
        struct slice out = iobuf_slice(&s->late);
        size_t put = 0;
        enum stream_io r = s->outer ? outer_result(s, SSL_write_ex(s->outer, out.p, out.n, &put))
                                    : socket_send(s, out.p, out.n, &put);
        if (r != STREAM_OK)
            return r == STREAM_FAILED ? handshake_failed(s) : r;
        iobuf_drop(&s->late, put);
    }
    ERR_clear_error();
    enum stream_io r = tls_result(s, SSL_do_handshake(s->ssl));
    if (r == STREAM_FAILED || r == STREAM_END)
        return handshake_failed(s);
    if (r == STREAM_WANT_READ && SSL_is_server(s->ssl) && s->rx - s->tls_rx > CLIENT_HANDSHAKE_MAX)
        return stream_fail(s, NET_TLS, "handshake: more than 64 KiB from the client");
    s->up = r == STREAM_OK;
    return r;
}

/* --- both --- */

void stream_init(struct stream *s, int fd)
{
    *s = (struct stream){.fd = fd, .ops = &plain_ops};
}

void stream_hang_up(struct stream *s, bool reset)
{
    if (reset) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    close(s->fd);
    s->fd = -1;
}

void stream_fini(struct stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    SSL_free(s->ssl);
    SSL_free(s->outer);
    iobuf_fini(&s->early);
    iobuf_fini(&s->late);
    free(s->detail);
}

enum stream_io stream_read(struct stream *s, char *p, size_t n, size_t *got)
{
    return s->ops->read(s, p, n, got);
}

enum stream_io stream_write(struct stream *s, const char *p, size_t n, size_t *put)
{
    return s->ops->write(s, p, n, put);
}

enum stream_io stream_shutdown(struct stream *s)
{
    return s->ops->shutdown(s);
}

enum stream_peek stream_peek(struct stream *s)
{
    if (s->ssl && (iobuf_len(&s->early) > 0 || SSL_has_pending(s->ssl) ||
                   (s->outer && SSL_has_pending(s->outer))))
        return STREAM_BYTES;
    char byte;
    ssize_t k = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (k > 0)
        return STREAM_BYTES;
    if (k < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return STREAM_SILENT;
        s->sys_errno = errno;
    } else {
        /* After a FIN the socket keeps the reset that followed to itself unless asked. */
        int pending = 0;
        socklen_t len = sizeof pending;
        if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &pending, &len) == 0 && pending != 0)
            s->sys_errno = pending;
        if (s->sys_errno == 0)
            return STREAM_FIN;
    }
    fail_socket(s);
    return STREAM_DEAD;
}
