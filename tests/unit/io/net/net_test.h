/* Help for the tests of io/net: socket pairs, a loop that cannot hang, and an owner that writes
 * down what it is told. */
#ifndef RETRYD_TESTS_NET_TEST_H
#define RETRYD_TESTS_NET_TEST_H

#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/net/conn.h"
#include "io/net/sockopt.h"
#include "unit.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* --- loop --- */

static UNUSED void on_guard(void *arg)
{
    (void)arg;
    ck_abort_msg("the loop waited for something that did not come");
}

/* Until somebody calls loop_stop; at most 10 s. */
static UNUSED void run(struct loop *l)
{
    struct loop_timer guard;
    loop_timer_init(&guard, l, on_guard, NULL);
    loop_timer_arm(&guard, 10 * NS_PER_S);
    loop_run(l);
    loop_timer_fini(&guard);
}

static UNUSED void on_stop(void *arg)
{
    loop_stop(arg);
}

static UNUSED void run_for(struct loop *l, int64_t ns)
{
    struct loop_timer t;
    loop_timer_init(&t, l, on_stop, l);
    loop_timer_arm(&t, ns);
    run(l);
    loop_timer_fini(&t);
}

/* Long enough for everything that loopback has under way. */
static UNUSED void settle(struct loop *l)
{
    run_for(l, 20 * NS_PER_MS);
}

static UNUSED struct loop *make_loop(void)
{
    struct err err;
    struct loop *l = loop_new(&err);
    ck_assert_ptr_nonnull(l);
    return l;
}

/* --- sockets --- */

static UNUSED int listen_on_loopback(uint16_t *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *port = ntohs(sa.sin_port);
    return fd;
}

static UNUSED struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static UNUSED void set_nonblocking(int fd)
{
    ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/* fd[0] non-blocking, for a conn; fd[1] blocking, for the test. */
static UNUSED void tcp_pair(int fd[2])
{
    uint16_t port;
    int listening = listen_on_loopback(&port);
    struct sockaddr_in sa = loopback(port);
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd[0], (struct sockaddr *)&sa, sizeof sa), 0);
    fd[1] = accept(listening, NULL, NULL);
    ck_assert_int_ge(fd[1], 0);
    close(listening);
    set_nonblocking(fd[0]);
    sockopt_tune(fd[0]); /* small writes leave at once, as in the program */
    sockopt_tune(fd[1]);
}

static UNUSED void send_all(int fd, const void *p, size_t n)
{
    ck_assert_int_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

static UNUSED void reset(int fd)
{
    struct linger now = {1, 0};
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}

/* --- an owner --- */

struct owner {
    struct loop *loop;
    struct conn *c;
    char log[256]; /* U R D E B T, a run of R as one */
    char *got;
    size_t n_got;
    bool keep;         /* leave the input unread */
    const char *stop;  /* loop_stop on one of these */
    const char *close; /* conn_close on one of these */
    size_t stop_at;    /* loop_stop once that many bytes were received */
    void (*also)(struct owner *o, enum conn_event ev);
    void *data;
};

static UNUSED void owner_take(struct owner *o)
{
    struct slice in = conn_in(o->c);
    o->got = xrealloc(o->got, o->n_got + in.n + 1);
    if (in.n)
        memcpy(o->got + o->n_got, in.p, in.n);
    o->n_got += in.n;
    o->got[o->n_got] = '\0';
    conn_consume(o->c, in.n);
}

static UNUSED void on_owner(struct conn *c, enum conn_event ev, void *arg)
{
    struct owner *o = arg;
    static const char letters[] = "URDEBT";
    char letter = letters[ev];
    size_t n = strlen(o->log);
    ck_assert_ptr_eq(c, o->c);
    ck_assert_uint_lt(n, sizeof o->log - 1);
    if (!(letter == 'R' && n > 0 && o->log[n - 1] == 'R'))
        o->log[n] = letter;
    if (ev == CONN_READABLE) {
        ck_assert_uint_gt(conn_in(c).n, 0);
        if (!o->keep)
            owner_take(o);
    }
    if (o->also)
        o->also(o, ev);
    if (o->stop && strchr(o->stop, letter))
        loop_stop(o->loop);
    if (o->stop_at && o->n_got >= o->stop_at)
        loop_stop(o->loop);
    if (o->close && o->c && strchr(o->close, letter)) {
        conn_close(o->c, false);
        o->c = NULL;
        loop_stop(o->loop);
    }
}

static const struct conn_limits LIMITS = {64 * 1024, 256 * 1024, 64 * 1024};

static UNUSED void owner_start(struct owner *o, struct loop *l, int fd,
                               const struct conn_limits *lim)
{
    o->loop = l;
    o->got = xcalloc(1, 1);
    o->c = conn_new(l, fd, lim ? lim : &LIMITS, on_owner, o);
}

static UNUSED void owner_end(struct owner *o)
{
    if (o->c)
        conn_close(o->c, false);
    o->c = NULL;
    free(o->got);
}

/* --- a long stream that is checked --- */

static UNUSED char pattern_at(size_t i)
{
    return (char)(i * 2654435761u >> 13);
}

/* How many bytes are as they should be. */
static UNUSED size_t pattern_length(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] == pattern_at(i))
        i++;
    return i;
}

/* --- TLS --- */

/* A server context with a fresh self-signed certificate for "localhost". */
static UNUSED SSL_CTX *make_server_ctx(X509 **cert_out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    ck_assert(key && cert);
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(cert, name);
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(cert, san, -1);
    X509_EXTENSION_free(san);
    X509_set_pubkey(cert, key);
    ck_assert_int_gt(X509_sign(cert, key, EVP_sha256()), 0);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, key), 1);
    EVP_PKEY_free(key);
    if (cert_out)
        *cert_out = cert;
    else
        X509_free(cert);
    return ctx;
}

static UNUSED SSL *server_ssl(void)
{
    SSL_CTX *ctx = make_server_ctx(NULL);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_accept_state(ssl);
    return ssl;
}

static UNUSED SSL *client_ssl(int max_version, bool verify)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, max_version);
    SSL_CTX_set_verify(ctx, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_connect_state(ssl);
    return ssl;
}

#endif
