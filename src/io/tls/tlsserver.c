/* Settings of the server side.
 *
 * The host is known from CONNECT before TLS begins, so nothing is looked up by SNI: it is only
 * compared with the leaf that is on the SSL already. Tickets are bound to the host by the session
 * id context. */
#include "io/tls/tlsserver.h"

#include "core/base/slice.h"
#include "io/tls/keyfile.h"
#include "io/tls/tlserr.h"
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <string.h>

#define NAME_MAX_BYTES 253

/* The leaves are ECDSA, so a TLS 1.2 suite is one of these or a weak one. */
#define TLS12_SUITES "ECDHE+ECDSA+AESGCM:ECDHE+ECDSA+CHACHA20"
/* A listener's certificate is whose it is. */
#define LISTENER_TLS12_SUITES "ECDHE+AESGCM:ECDHE+CHACHA20"

/* Some clients write an address as SNI, against RFC 6066; it has to be the right one all the same.
 */
static bool leaf_is_for(X509 *leaf, struct slice sni)
{
    char name[NAME_MAX_BYTES + 1];
    const unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS;
    if (sni.n > 0 && sni.p[sni.n - 1] == '.')
        sni.n--;
    if (leaf == NULL || sni.n == 0 || sni.n > NAME_MAX_BYTES)
        return false;
    memcpy(name, sni.p, sni.n);
    name[sni.n] = '\0';
    return X509_check_host(leaf, name, sni.n, flags, NULL) == 1 ||
           X509_check_ip_asc(leaf, name, 0) == 1;
}

static int on_servername(SSL *ssl, int *alert, void *arg)
{
    (void)arg;
    const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (sni == NULL || leaf_is_for(SSL_get_certificate(ssl), slice_str(sni)))
        return SSL_TLSEXT_ERR_OK;
    /* For the log: by itself OpenSSL only says that a callback failed. */
    ERR_raise(ERR_LIB_SSL, SSL_R_TLSV1_UNRECOGNIZED_NAME);
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Called only when the client sent ALPN. The offer is length-prefixed names, checked by OpenSSL. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *offer, unsigned offer_len, void *arg)
{
    static const struct slice spoken = {"http/1.1", 8};
    (void)ssl, (void)arg;
    for (unsigned at = 0; at < offer_len; at += 1U + offer[at]) {
        if (!slice_eq(slice_of((const char *)offer + at + 1, offer[at]), spoken))
            continue;
        *out = offer + at + 1;
        *out_len = offer[at];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* What holds for every server of ours (security requirements F6, F7). */
static bool set_rules(SSL_CTX *ctx, const char *tls12_suites)
{
    SSL_CTX_set_security_level(ctx, 2);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    /* No sessions but in stateless tickets. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, tls12_suites) == 1;
}

SSL_CTX *tlsserver_ctx(EVP_PKEY *key, X509 *intermediate, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    bool ok = ctx != NULL && set_rules(ctx, TLS12_SUITES) && SSL_CTX_set_num_tickets(ctx, 1) == 1 &&
              SSL_CTX_use_PrivateKey(ctx, key) == 1 && X509_up_ref(intermediate) == 1;
    if (ok)
        SSL_CTX_set_tlsext_servername_callback(ctx, on_servername);
    if (ok && SSL_CTX_add_extra_chain_cert(ctx, intermediate) != 1) {
        X509_free(intermediate);
        ok = false;
    }
    if (ok)
        return ctx;
    tlserr_set(err, "TLS server");
    SSL_CTX_free(ctx);
    return NULL;
}

SSL *tlsserver_ssl(SSL_CTX *ctx, X509 *leaf, const char *host, struct err *err)
{
    /* A session id context holds 32 bytes: the host itself may be longer. */
    unsigned char id[32];
    unsigned id_len = 0;
    SSL *ssl = SSL_new(ctx);
    if (ssl != NULL && SSL_use_certificate(ssl, leaf) == 1 &&
        EVP_Digest(host, strlen(host), id, &id_len, EVP_sha256(), NULL) == 1 &&
        SSL_set_session_id_context(ssl, id, id_len) == 1) {
        SSL_set_accept_state(ssl);
        return ssl;
    }
    tlserr_set(err, host);
    SSL_free(ssl);
    return NULL;
}

/* --- the proxy's own --- */

/* Nobody is there to type one. */
static int no_password(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static bool load_pair(SSL_CTX *ctx, const char *certificate, const char *key, struct err *err)
{
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1)
        return tlserr_set(err, certificate);
    if (!keyfile_is_private(key, err))
        return false;
    /* Compares the two as well. */
    return SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1 || tlserr_set(err, key);
}

SSL_CTX *tlsserver_listener_ctx(const char *certificate, const char *key, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL || !set_rules(ctx, LISTENER_TLS12_SUITES) ||
        SSL_CTX_set_num_tickets(ctx, 0) != 1) {
        tlserr_set(err, "TLS server");
    } else if (load_pair(ctx, certificate, key, err)) {
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        return ctx;
    }
    SSL_CTX_free(ctx);
    return NULL;
}

SSL *tlsserver_listener_ssl(SSL_CTX *ctx, struct err *err)
{
    SSL *ssl = SSL_new(ctx);
    if (ssl == NULL)
        tlserr_set(err, "TLS server");
    else
        SSL_set_accept_state(ssl);
    return ssl;
}
