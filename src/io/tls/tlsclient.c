/* The one client context and its settings, each of which closes a measured hole (security
 * requirement G2): there is no verify callback that could turn a failure into success, a
 * certificate without SAN does not pass by its CN, partial wildcards do not match, the security
 * level does not come from a file, and an empty host cannot switch the check of the name off.
 *
 * Must-staple certificates are accepted without a staple, as OpenSSL does; truncation stays
 * visible, since SSL_OP_IGNORE_UNEXPECTED_EOF is not set. */
#include "io/tls/tlsclient.h"

#include "core/base/slice.h"
#include "core/base/xalloc.h"
#include "io/tls/keyfile.h"
#include "io/tls/sessions.h"
#include "io/tls/staple.h"
#include "io/tls/tlserr.h"
#include "io/tls/tlsinit.h"
#include "io/tls/truststore.h"
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX 8
#define CERT_LIST_MAX_BYTES 65536L
#define NAME_MAX_BYTES 253
#define HOST_FLAGS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

#define ORIGIN_MAX_BYTES (NAME_MAX_BYTES + sizeof ":65535")

struct tlsclient {
    SSL_CTX *ctx;
};

/* Whom an SSL is meant for: goes with it and is freed with it. */
struct identity {
    bool is_ip;
    char name[NAME_MAX_BYTES + 1];
    char origin[ORIGIN_MAX_BYTES]; /* name:port, the key of its sessions */
    /* Wall clock: when it was made; when the chain behind the session on offer was verified. */
    int64_t began_s, offered_s;
};

/* Places for what goes with an SSL_CTX (its sessions, which live as long as any connection of it)
 * and with an SSL. */
static int sessions_at = -1, identity_at = -1;

static void free_sessions(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx, long argl,
                          void *argp)
{
    (void)parent, (void)ad, (void)idx, (void)argl, (void)argp;
    sessions_free(ptr);
}

static void free_identity(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx, long argl,
                          void *argp)
{
    (void)parent, (void)ad, (void)idx, (void)argl, (void)argp;
    free(ptr);
}

static bool find_places(void)
{
    if (sessions_at < 0)
        sessions_at = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_sessions);
    if (identity_at < 0)
        identity_at = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_identity);
    return sessions_at >= 0 && identity_at >= 0;
}

/* A session was made; of TLS 1.3 there may be several, at any time. 1: the reference is kept. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct sessions *s = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), sessions_at);
    const struct identity *id = SSL_get_ex_data(ssl, identity_at);
    if (s == NULL || id == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
        return 0;
    sessions_put(s, id->origin, session, SSL_session_reused(ssl) ? id->offered_s : id->began_s);
    return 1;
}

static bool load_store(X509_STORE *store, bool system_trust, const char *ca_file, X509 *own_root,
                       struct err *err)
{
    size_t anchors = 0;
    const char *system_file = system_trust ? truststore_system_file() : NULL;
    if (system_trust && system_file == NULL && ca_file == NULL)
        return err_set(err, "no system trust store found: name a file of trusted certificates");
    if (system_file && !truststore_add(store, system_file, own_root, &anchors, err))
        return false;
    size_t before = anchors;
    if (ca_file && !truststore_add(store, ca_file, own_root, &anchors, err))
        return false;
    if (ca_file && anchors == before) /* named, so it was meant to say something (G5) */
        return err_set(err, "trust store is empty: %s: no certificate in it may be trusted",
                       ca_file);
    if (anchors == 0)
        return err_set(err, "trust store is empty%s%s: no origin could be verified",
                       ca_file ? ": " : "", ca_file ? ca_file : "");
    return true;
}

static bool set_rules(SSL_CTX *ctx)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    SSL_CTX_set_security_level(ctx, 2);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(ctx, DEPTH_MAX);
    SSL_CTX_set_max_cert_list(ctx, CERT_LIST_MAX_BYTES);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    staple_require_good(ctx);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) == 0;
}

static bool find_trust(SSL_CTX *ctx, const struct tlsclient_spec *spec, struct err *err)
{
    if (spec->same_trust == NULL)
        return load_store(SSL_CTX_get_cert_store(ctx), spec->system_trust, spec->ca_file,
                          spec->own_root, err);
    SSL_CTX_set1_cert_store(ctx, SSL_CTX_get_cert_store(spec->same_trust->ctx));
    return true;
}

/* Instead of asking at the terminal. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
    (void)buf, (void)size, (void)rwflag, (void)arg;
    return -1;
}

static bool load_own(SSL_CTX *ctx, const char *certificate, const char *key, struct err *err)
{
    if (certificate == NULL)
        return true;
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1)
        return tlserr_set(err, certificate);
    if (key != NULL && !keyfile_is_private(key, err))
        return false;
    /* Compares the two as well. */
    if (key == NULL || SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return tlserr_set(err, key ? key : certificate);
    return true;
}

struct tlsclient *tlsclient_new(const struct tlsclient_spec *spec, struct err *err)
{
    tlsinit();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct sessions *sessions = sessions_new();
    if (ctx == NULL || !find_places() || !set_rules(ctx) ||
        SSL_CTX_set_ex_data(ctx, sessions_at, sessions) != 1) {
        tlserr_set(err, "TLS client");
        sessions_free(sessions);
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (!find_trust(ctx, spec, err) || !load_own(ctx, spec->certificate, spec->key, err)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    struct tlsclient *t = xcalloc(1, sizeof *t);
    t->ctx = ctx;
    return t;
}

void tlsclient_free(struct tlsclient *t)
{
    if (t == NULL)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

/* Lower case, without the one trailing dot that a name may have. False when nothing is left, or it
 * is longer than a name can be. */
static bool plain_name(const char *host, char out[NAME_MAX_BYTES + 1])
{
    struct slice name = slice_str(host);
    if (name.n > 0 && name.p[name.n - 1] == '.')
        name.n--;
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.n; i++)
        out[i] = ascii_lower(name.p[i]);
    out[name.n] = '\0';
    return true;
}

/* What the certificate must say. Host flags are set here and not once on the context, because a
 * context hands them down only together with a host. */
static bool set_identity(SSL *ssl, const char *name, bool is_ip)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, HOST_FLAGS);
    if (is_ip)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* A session that cannot be used costs a full handshake, no more. */
static void resume(SSL_CTX *ctx, SSL *ssl, struct identity *id)
{
    struct sessions *s = SSL_CTX_get_ex_data(ctx, sessions_at);
    SSL_SESSION *session = sessions_take(s, id->origin, id->began_s, &id->offered_s);
    if (session == NULL)
        return;
    if (SSL_set_session(ssl, session) != 1)
        ERR_clear_error();
    SSL_SESSION_free(session);
}

SSL *tlsclient_ssl(struct tlsclient *t, const char *host, bool is_ip, uint16_t port,
                   struct err *err)
{
    struct identity *id = xcalloc(1, sizeof *id);
    if (!plain_name(host, id->name)) {
        err_set(err, "TLS needs the name of the origin, and has none that could be verified");
        free(id);
        return NULL;
    }
    id->is_ip = is_ip;
    snprintf(id->origin, sizeof id->origin, "%s:%u", id->name, port);
    SSL *ssl = SSL_new(t->ctx);
    if (ssl == NULL || !set_identity(ssl, id->name, is_ip) ||
        SSL_set_ex_data(ssl, identity_at, id) != 1) {
        tlserr_set(err, id->name);
        SSL_free(ssl);
        free(id);
        return NULL;
    }
    id->began_s = (int64_t)time(NULL);
    resume(t->ctx, ssl, id);
    SSL_set_connect_state(ssl);
    return ssl;
}

bool tlsclient_verified(SSL *ssl, struct err *err)
{
    const struct identity *id = SSL_get_ex_data(ssl, identity_at);
    long verdict = SSL_get_verify_result(ssl);
    X509 *cert = SSL_get0_peer_certificate(ssl);
    if (cert == NULL)
        return err_set(err, "certificate: there is none");
    if (verdict == X509_V_OK && SSL_session_reused(ssl)) {
        int fits = id->is_ip ? X509_check_ip_asc(cert, id->name, 0)
                             : X509_check_host(cert, id->name, 0, HOST_FLAGS, NULL);
        if (fits != 1)
            verdict = X509_V_ERR_HOSTNAME_MISMATCH;
        else if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0)
            verdict = X509_V_ERR_CERT_HAS_EXPIRED;
    }
    if (verdict != X509_V_OK)
        return err_set(err, "certificate: %s", X509_verify_cert_error_string(verdict));
    return true;
}
