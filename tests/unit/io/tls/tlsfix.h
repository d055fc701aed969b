/* What the tests of this room share: a directory to throw away, certificates good and bad, and a
 * handshake in memory. */
#ifndef RETRYD_TESTS_TLSFIX_H
#define RETRYD_TESTS_TLSFIX_H

#include "unit.h"

#include "core/base/attr.h"
#include "core/base/slice.h"
#include "io/tls/ca.h"
#include "io/tls/tlserr.h"
#include "io/tls/tlsinit.h"
#include <ftw.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S 86400

/* --- a directory --- */

static char fix_dir[64];

static inline void fix_setup(void)
{
    tlsinit();
    snprintf(fix_dir, sizeof fix_dir, "/tmp/retryd-test-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fix_dir));
}

static inline int fix_on_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void fix_remove(const char *dir)
{
    nftw(dir, fix_on_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void fix_teardown(void)
{
    fix_remove(fix_dir);
}

/* fix_dir/name; good for sixteen calls. */
static inline const char *fix_path(const char *name)
{
    static char paths[16][160];
    static unsigned at;
    char *p = paths[at++ % 16];
    snprintf(p, sizeof paths[0], "%s/%s", fix_dir, name);
    return p;
}

static inline void fix_write(const char *path, const char *content, size_t n)
{
    FILE *out = fopen(path, "w");
    ck_assert_msg(out != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(content, 1, n, out), n);
    fclose(out);
}

static inline size_t fix_read(const char *path, char *buf, size_t size)
{
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    size_t n = fread(buf, 1, size - 1, in);
    fclose(in);
    buf[n] = '\0';
    return n;
}

static inline void fix_write_cert(const char *path, X509 *cert, bool append)
{
    FILE *out = fopen(path, append ? "a" : "w");
    ck_assert_msg(out != NULL, "%s", path);
    ck_assert_int_eq(PEM_write_X509(out, cert), 1);
    fclose(out);
}

/* --- the authority under test --- */

static const struct slice fix_names[] = {{"amazonaws.com", 13}, {"api.aws", 7}};

static inline struct ca *fix_ca(const char *name, bool ip_literals, time_t now)
{
    struct err note = {""}, err = {""};
    struct ca *ca = ca_open(fix_path(name), fix_names, 2, ip_literals, now, &note, &err);
    ck_assert_msg(ca != NULL, "%s", err.text);
    return ca;
}

/* Verifies leaf <- n others <- root as the strictest client would; returns the X509_V_ code. */
static inline int fix_verify_chain(X509 *leaf, X509 *const *others, size_t n, X509 *root, time_t at)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    STACK_OF(X509) *chain = sk_X509_new_null();
    ck_assert_int_eq(X509_STORE_add_cert(store, root), 1);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_gt(sk_X509_push(chain, others[i]), 0);
    ck_assert_int_eq(X509_STORE_CTX_init(ctx, store, leaf, chain), 1);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    if (!X509_check_ca(leaf))
        X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_auth_level(param, 2);
    X509_VERIFY_PARAM_set_time(param, at);
    X509_verify_cert(ctx);
    int code = X509_STORE_CTX_get_error(ctx);
    sk_X509_free(chain);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    ERR_clear_error();
    return code;
}

static inline int fix_verify(X509 *leaf, X509 *intermediate, X509 *root, time_t at)
{
    return fix_verify_chain(leaf, &intermediate, intermediate != NULL, root, at);
}

/* --- certificates of all kinds --- */

struct cert {
    X509 *x;
    EVP_PKEY *key;
};

/* All-zero: an end-entity certificate without SAN, P-256, SHA-256, serverAuth, valid now. */
struct cert_spec {
    const char *cn;
    const char *san;         /* as in x509v3_config(5) */
    struct slice raw_dns;    /* a SAN no configuration can express */
    const char *eku;         /* "" for none */
    const char *bc;          /* default CA:FALSE */
    const char *ku;          /* default: none */
    const char *constraints; /* nameConstraints */
    bool unknown_critical;
    int rsa_bits;
    const EVP_MD *(*md)(void);
    long begin_s, end_s; /* from now */
};

static inline void cert_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
    ck_assert_msg(ext != NULL, "extension %s", value);
    ck_assert_int_eq(X509_add_ext(x, ext, -1), 1);
    X509_EXTENSION_free(ext);
}

static inline void cert_raw_dns(X509 *x, struct slice dns)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, dns.p, (int)dns.n);
    GENERAL_NAME_set0_value(name, GEN_DNS, text);
    sk_GENERAL_NAME_push(names, name);
    ck_assert_int_eq(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0), 1);
    GENERAL_NAMES_free(names);
}

static inline void cert_unknown_critical(X509 *x)
{
    ASN1_OBJECT *oid = OBJ_txt2obj("1.2.3.4.5.6.7", 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    ASN1_STRING_set(value, "\x05", 2);
    X509_EXTENSION *ext = X509_EXTENSION_create_by_OBJ(NULL, oid, 1, value);
    ck_assert_int_eq(X509_add_ext(x, ext, -1), 1);
    X509_EXTENSION_free(ext);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(oid);
}

/* issuer NULL: self-signed. */
static inline struct cert cert_make(const struct cert_spec *s, const struct cert *issuer)
{
    static long serial = 1000;
    struct cert c = {X509_new(),
                     s->rsa_bits ? EVP_RSA_gen((unsigned)s->rsa_bits) : EVP_EC_gen("P-256")};
    time_t now = time(NULL);
    X509 *by = issuer ? issuer->x : c.x;
    X509_set_version(c.x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), serial++);
    ASN1_TIME_set(X509_getm_notBefore(c.x), now + (s->begin_s ? s->begin_s : -DAY_S));
    ASN1_TIME_set(X509_getm_notAfter(c.x), now + (s->end_s ? s->end_s : DAY_S));
    X509_set_pubkey(c.x, c.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c.x), "CN", MBSTRING_ASC,
                               (const unsigned char *)(s->cn ? s->cn : "origin.test"), -1, -1, 0);
    X509_set_issuer_name(c.x, X509_get_subject_name(by));
    cert_ext(c.x, by, NID_basic_constraints, s->bc ? s->bc : "critical,CA:FALSE");
    cert_ext(c.x, by, NID_subject_key_identifier, "hash");
    if (issuer)
        cert_ext(c.x, by, NID_authority_key_identifier, "keyid:always");
    if (s->ku)
        cert_ext(c.x, by, NID_key_usage, s->ku);
    if (!s->eku || s->eku[0])
        cert_ext(c.x, by, NID_ext_key_usage, s->eku ? s->eku : "serverAuth");
    if (s->san)
        cert_ext(c.x, by, NID_subject_alt_name, s->san);
    if (s->raw_dns.n)
        cert_raw_dns(c.x, s->raw_dns);
    if (s->constraints)
        cert_ext(c.x, by, NID_name_constraints, s->constraints);
    if (s->unknown_critical)
        cert_unknown_critical(c.x);
    ck_assert_int_gt(X509_sign(c.x, issuer ? issuer->key : c.key, s->md ? s->md() : EVP_sha256()),
                     0);
    return c;
}

static inline struct cert cert_authority(const char *cn, const struct cert *issuer)
{
    struct cert_spec s = {
        .cn = cn, .eku = "", .bc = "critical,CA:TRUE", .ku = "critical,keyCertSign,cRLSign"};
    return cert_make(&s, issuer);
}

static inline void cert_free(struct cert *c)
{
    X509_free(c->x);
    EVP_PKEY_free(c->key);
    *c = (struct cert){NULL, NULL};
}

/* --- a handshake --- */

struct shake {
    bool client_ok, server_ok;
    bool client_blames_cert;
    struct err client_err, server_err;
};

/* Joins the two with buffers in memory; end of input is end of stream. */
static inline void shake_join(SSL *client, SSL *server)
{
    BIO *up = BIO_new(BIO_s_mem()), *down = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(up, -1);
    BIO_set_mem_eof_return(down, -1);
    BIO_up_ref(up);
    BIO_up_ref(down);
    SSL_set_bio(client, down, up);
    SSL_set_bio(server, up, down);
}

/* One turn of one side: true when it can go no further. */
static inline bool shake_turn(SSL *ssl, bool *ok, bool *blames, struct err *err)
{
    ERR_clear_error();
    int r = SSL_do_handshake(ssl);
    *ok = r == 1;
    if (r == 1 || SSL_get_error(ssl, r) == SSL_ERROR_WANT_READ)
        return r == 1;
    *blames = tlserr_explain(ssl, err);
    return true;
}

static inline struct shake shake(SSL *client, SSL *server)
{
    struct shake s = {.client_err = {""}, .server_err = {""}};
    bool client_end = false, server_end = false, ignored;
    shake_join(client, server);
    for (int turn = 0; turn < 10 && !(client_end && server_end); turn++) {
        if (!client_end)
            client_end = shake_turn(client, &s.client_ok, &s.client_blames_cert, &s.client_err);
        if (!server_end)
            server_end = shake_turn(server, &s.server_ok, &ignored, &s.server_err);
    }
    return s;
}

#endif
