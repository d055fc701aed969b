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
#include "io/tls/tlserr.h"
#include "io/tls/tlsinit.h"
#include "io/tls/truststore.h"
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#define DEPTH_MAX 8
#define CERT_LIST_MAX_BYTES 65536L
#define NAME_MAX_BYTES 253

struct tlsclient {
    SSL_CTX *ctx;
};

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
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) == 0;
}

struct tlsclient *tlsclient_new(bool system_trust, const char *ca_file, X509 *own_root,
                                struct err *err)
{
    tlsinit();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL || !set_rules(ctx)) {
        tlserr_set(err, "TLS client");
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (!load_store(SSL_CTX_get_cert_store(ctx), system_trust, ca_file, own_root, err)) {
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
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_ip)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *tlsclient_ssl(struct tlsclient *t, const char *host, bool is_ip, struct err *err)
{
    char name[NAME_MAX_BYTES + 1];
    if (!plain_name(host, name)) {
        err_set(err, "TLS needs the name of the origin, and has none that could be verified");
        return NULL;
    }
    SSL *ssl = SSL_new(t->ctx);
    if (ssl == NULL || !set_identity(ssl, name, is_ip)) {
        tlserr_set(err, name);
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}
