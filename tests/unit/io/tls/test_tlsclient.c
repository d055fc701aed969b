/* Good and bad origins (security requirements G2-G5, G9): a server in memory, the client as the
 * daemon uses it, and what it says about the certificate. */
#include "tlsfix.h"

#include "io/tls/leafcache.h"
#include "io/tls/tlsclient.h"
#include "io/tls/truststore.h"

static struct cert root, sub, other_root;
static struct err err;

static void setup(void)
{
    fix_setup();
    root = cert_authority("good root", NULL);
    sub = cert_authority("good sub", &root);
    other_root = cert_authority("other root", NULL);
    fix_write_cert(fix_path("roots.pem"), root.x, false);
}

static void teardown(void)
{
    cert_free(&root);
    cert_free(&sub);
    cert_free(&other_root);
    fix_teardown();
}

/* A server that accepts everything, so that only the client can object. */
static SSL_CTX *server_ctx(const struct cert *leaf, X509 *intermediate)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0");
    if (leaf) {
        ck_assert_int_eq(SSL_CTX_use_certificate(ctx, leaf->x), 1);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, leaf->key), 1);
    }
    if (intermediate)
        ck_assert_int_eq(SSL_CTX_add1_chain_cert(ctx, intermediate), 1);
    return ctx;
}

static struct tlsclient *client_new(void)
{
    struct tlsclient *t =
        tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path("roots.pem")}, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    return t;
}

static struct shake meet(SSL_CTX *ctx, const char *host, bool is_ip)
{
    struct tlsclient *t = client_new();
    SSL *client = tlsclient_ssl(t, host, is_ip, 443, &err);
    ck_assert_msg(client != NULL, "%s", err.text);
    SSL *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    struct shake s = shake(client, server);
    if (s.client_ok)
        ck_assert_int_eq(SSL_get_verify_result(client), X509_V_OK);
    SSL_free(client);
    SSL_free(server);
    tlsclient_free(t);
    return s;
}

/* verdict NULL: accepted. */
static void expect(struct shake s, const char *verdict)
{
    if (verdict == NULL) {
        ck_assert_msg(s.client_ok && s.server_ok, "client %s, server %s", s.client_err.text,
                      s.server_err.text);
        return;
    }
    ck_assert(!s.client_ok);
    ck_assert_msg(s.client_blames_cert, "%s", s.client_err.text);
    ck_assert_msg(strstr(s.client_err.text, verdict) != NULL, "\"%s\" not in: %s", verdict,
                  s.client_err.text);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}

#define HOSTNAME "hostname mismatch"
#define IP "IP address mismatch"

static const struct {
    struct cert_spec spec;
    const char *host; /* default origin.test */
    bool is_ip;
    const char *verdict;
} table[] = {
    {{.san = "DNS:origin.test"}, NULL, false, NULL},
    {{.san = "DNS:Origin.TEST"}, NULL, false, NULL},
    {{.san = "DNS:other.test,DNS:origin.test"}, NULL, false, NULL},
    {{.san = "DNS:*.origin.test"}, "a.origin.test", false, NULL},
    {{.san = "DNS:origin.test"}, "ORIGIN.test.", false, NULL},
    {{.san = "DNS:other.test"}, NULL, false, HOSTNAME},
    {{.cn = "origin.test", .san = "DNS:other.test"}, NULL, false, HOSTNAME},
    {{.san = "DNS:*.test"}, NULL, false, HOSTNAME},
    {{.san = "DNS:o*n.test"}, NULL, false, HOSTNAME},
    {{.san = "DNS:o*.origin.test"}, "ok.origin.test", false, HOSTNAME},
    {{.san = "DNS:*"}, NULL, false, HOSTNAME},
    {{.san = "DNS:*.origin.test"}, NULL, false, HOSTNAME},
    {{.san = "DNS:*.origin.test"}, "a.b.origin.test", false, HOSTNAME},
    {{.raw_dns = {"origin.test\0.evil.test", 22}}, NULL, false, HOSTNAME},
    {{.cn = "origin.test"}, NULL, false, HOSTNAME},
    {{.san = "IP:192.0.2.1"}, NULL, false, HOSTNAME},
    {{.san = "IP:192.0.2.1"}, "192.0.2.1", true, NULL},
    {{.san = "IP:2001:db8::1"}, "2001:db8::1", true, NULL},
    {{.san = "IP:192.0.2.2"}, "192.0.2.1", true, IP},
    {{.san = "DNS:192.0.2.1"}, "192.0.2.1", true, IP},
    {{.cn = "192.0.2.1"}, "192.0.2.1", true, IP},
    {{.san = "DNS:origin.test", .begin_s = -2 * DAY_S, .end_s = -DAY_S},
     NULL,
     false,
     "certificate has expired"},
    {{.san = "DNS:origin.test", .begin_s = DAY_S, .end_s = 2 * DAY_S},
     NULL,
     false,
     "not yet valid"},
    {{.san = "DNS:origin.test", .eku = "clientAuth"},
     NULL,
     false,
     "unsuitable certificate purpose"},
    {{.san = "DNS:origin.test", .eku = ""}, NULL, false, NULL},
    {{.san = "DNS:origin.test", .unknown_critical = true},
     NULL,
     false,
     "unhandled critical extension"},
    {{.san = "DNS:origin.test", .rsa_bits = 2048}, NULL, false, NULL},
    {{.san = "DNS:origin.test", .rsa_bits = 1024}, NULL, false, "EE certificate key too weak"},
    {{.san = "DNS:origin.test", .md = EVP_sha1},
     NULL,
     false,
     "CA signature digest algorithm too weak"},
};

START_TEST(end_entity)
{
    struct cert leaf = cert_make(&table[_i].spec, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    const char *host = table[_i].host ? table[_i].host : "origin.test";
    expect(meet(ctx, host, table[_i].is_ip), table[_i].verdict);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

/* --- chains --- */

static const struct cert_spec good_leaf = {.san = "DNS:origin.test"};

static void expect_chain(const struct cert *leaf, X509 *intermediate, const char *verdict)
{
    SSL_CTX *ctx = server_ctx(leaf, intermediate);
    expect(meet(ctx, "origin.test", false), verdict);
    SSL_CTX_free(ctx);
}

START_TEST(chains)
{
    struct cert self = cert_make(&good_leaf, NULL);
    struct cert stranger = cert_make(&good_leaf, &other_root);
    struct cert deep = cert_make(&good_leaf, &sub);
    expect_chain(&deep, sub.x, NULL);
    expect_chain(&deep, NULL, "unable to get local issuer");
    expect_chain(&self, NULL, "self-signed certificate");
    expect_chain(&stranger, NULL, "unable to get local issuer");
    expect_chain(&stranger, other_root.x, "self-signed certificate in certificate chain");
    cert_free(&self);
    cert_free(&stranger);
    cert_free(&deep);
}
END_TEST

START_TEST(issuers)
{
    static const struct {
        struct cert_spec issuer;
        const char *verdict;
    } cases[] = {
        {{.cn = "no ca", .eku = ""}, "invalid CA certificate"},
        {{.cn = "narrow",
          .eku = "",
          .bc = "critical,CA:TRUE",
          .ku = "keyCertSign",
          .constraints = "critical,permitted;DNS:elsewhere.test"},
         "permitted subtree violation"},
        {{.cn = "weak", .eku = "", .bc = "critical,CA:TRUE", .ku = "keyCertSign", .rsa_bits = 1024},
         "CA certificate key too weak"},
    };
    struct cert issuer = cert_make(&cases[_i].issuer, &root);
    struct cert leaf = cert_make(&good_leaf, &issuer);
    expect_chain(&leaf, issuer.x, cases[_i].verdict);
    cert_free(&issuer);
    cert_free(&leaf);
}
END_TEST

START_TEST(path_length)
{
    struct cert_spec spec = {
        .cn = "short", .eku = "", .bc = "critical,CA:TRUE,pathlen:0", .ku = "keyCertSign"};
    struct cert outer = cert_make(&spec, &root);
    struct cert inner = cert_authority("inner", &outer);
    struct cert leaf = cert_make(&good_leaf, &inner);
    SSL_CTX *ctx = server_ctx(&leaf, inner.x);
    ck_assert_int_eq(SSL_CTX_add1_chain_cert(ctx, outer.x), 1);
    expect(meet(ctx, "origin.test", false), "path length constraint exceeded");
    SSL_CTX_free(ctx);
    cert_free(&outer);
    cert_free(&inner);
    cert_free(&leaf);
}
END_TEST

/* --- servers --- */

static void refuses(SSL_CTX *ctx, const char *word)
{
    struct shake s = meet(ctx, "origin.test", false);
    ck_assert(!s.client_ok);
    ck_assert(!s.client_blames_cert);
    ck_assert_msg(strstr(s.client_err.text, word) != NULL, "\"%s\" not in: %s", word,
                  s.client_err.text);
}

START_TEST(old_versions)
{
    static const int versions[] = {TLS1_VERSION, TLS1_1_VERSION};
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_max_proto_version(ctx, versions[_i]);
    refuses(ctx, "protocol version");
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

START_TEST(new_versions)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_min_proto_version(ctx, versions[_i]);
    SSL_CTX_set_max_proto_version(ctx, versions[_i]);
    expect(meet(ctx, "origin.test", false), NULL);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

/* Nobody to verify, or nothing to keep secret. */
START_TEST(anonymous_and_null_ciphers)
{
    static const char *const suites[] = {"aNULL:@SECLEVEL=0", "eNULL:@SECLEVEL=0"};
    struct cert_spec spec = {.san = "DNS:origin.test", .rsa_bits = 2048};
    struct cert leaf = cert_make(&spec, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    ck_assert_int_eq(SSL_CTX_set_cipher_list(ctx, suites[_i]), 1);
    refuses(ctx, "handshake failure");
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

START_TEST(endless_chain)
{
    enum { PADDING = 300 }; /* some 150 KiB */
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    for (int i = 0; i < PADDING; i++)
        ck_assert_int_eq(SSL_CTX_add1_chain_cert(ctx, sub.x), 1);
    refuses(ctx, "excessive message size");
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

/* A server that asks for a client certificate gets none, and goes on. */
START_TEST(client_certificate_wanted)
{
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    expect(meet(ctx, "origin.test", false), NULL);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

/* Clear text where TLS belongs (G9). */
START_TEST(clear_text_answer)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    struct tlsclient *t = client_new();
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err);
    BIO *in = BIO_new_mem_buf(answer, sizeof answer - 1), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(client, in, out);
    ck_assert_int_le(SSL_do_handshake(client), 0);
    ck_assert(!tlserr_explain(client, &err));
    ck_assert_str_eq(err.text, "handshake: wrong version number");
    ck_assert_uint_eq(ERR_peek_error(), 0);
    SSL_free(client);
    tlsclient_free(t);
}
END_TEST

/* The stream that ends without close_notify was cut; the one with it was not. */
START_TEST(truncation_is_visible)
{
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    struct tlsclient *t = client_new();
    for (int cut = 0; cut < 2; cut++) {
        char byte;
        SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
        SSL_set_accept_state(server);
        ck_assert(shake(client, server).client_ok);
        ck_assert_int_eq(SSL_write(server, "x", 1), 1);
        if (!cut)
            SSL_shutdown(server);
        BIO_set_mem_eof_return(SSL_get_rbio(client), 0);
        ck_assert_int_eq(SSL_read(client, &byte, 1), 1);
        int r = SSL_read(client, &byte, 1);
        ck_assert_int_eq(SSL_get_error(client, r), cut ? SSL_ERROR_SSL : SSL_ERROR_ZERO_RETURN);
        ERR_clear_error();
        SSL_free(client);
        SSL_free(server);
    }
    tlsclient_free(t);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

START_TEST(renegotiation_is_refused)
{
    char byte;
    struct cert leaf = cert_make(&good_leaf, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    struct tlsclient *t = client_new();
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    ck_assert(shake(client, server).client_ok);
    ck_assert_int_eq(SSL_renegotiate(server), 1);
    SSL_do_handshake(server); /* HelloRequest */
    ck_assert_int_le(SSL_read(client, &byte, 1), 0);
    ck_assert_int_eq(SSL_get_state(client), TLS_ST_OK);
    ck_assert_int_le(SSL_read(server, &byte, 1), 0);
    ck_assert(!tlserr_explain(server, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "no renegotiation"));
    SSL_free(client);
    SSL_free(server);
    tlsclient_free(t);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

/* --- what is sent --- */

static const char *seen_sni;
static unsigned char seen_alpn[32];
static unsigned seen_alpn_len;

static int on_sni(SSL *ssl, int *alert, void *arg)
{
    static char copy[64];
    const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert, (void)arg;
    if (sni)
        snprintf(copy, sizeof copy, "%s", sni);
    seen_sni = sni ? copy : NULL;
    return SSL_TLSEXT_ERR_OK;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl, (void)arg;
    seen_alpn_len = in_len;
    memcpy(seen_alpn, in, in_len < sizeof seen_alpn ? in_len : sizeof seen_alpn);
    *out = in + 1;
    *out_len = in[0];
    return SSL_TLSEXT_ERR_OK;
}

START_TEST(sni_for_names_only)
{
    struct cert_spec spec = {.san = "DNS:origin.test,IP:192.0.2.1"};
    struct cert leaf = cert_make(&spec, &root);
    SSL_CTX *ctx = server_ctx(&leaf, NULL);
    SSL_CTX_set_tlsext_servername_callback(ctx, on_sni);
    SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    expect(meet(ctx, "Origin.test.", false), NULL);
    ck_assert_str_eq(seen_sni, "origin.test");
    ck_assert_uint_eq(seen_alpn_len, 9);
    ck_assert_mem_eq(seen_alpn, "\x08http/1.1", 9);
    expect(meet(ctx, "192.0.2.1", true), NULL);
    ck_assert_ptr_null(seen_sni);
    SSL_CTX_free(ctx);
    cert_free(&leaf);
}
END_TEST

START_TEST(no_host_no_ssl)
{
    struct tlsclient *t = client_new();
    char too_long[300];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    ck_assert_ptr_null(tlsclient_ssl(t, "", false, 443, &err));
    ck_assert_ptr_null(tlsclient_ssl(t, ".", false, 443, &err));
    ck_assert_ptr_null(tlsclient_ssl(t, "", true, 443, &err));
    ck_assert_ptr_null(tlsclient_ssl(t, NULL, false, 443, &err));
    ck_assert_ptr_null(tlsclient_ssl(t, too_long, false, 443, &err));
    err.text[0] = '\0';
    ck_assert_ptr_null(tlsclient_ssl(t, "origin.test", true, 443, &err));
    ck_assert_str_ne(err.text, "");
    tlsclient_free(t);
}
END_TEST

START_TEST(settings)
{
    struct tlsclient *t = client_new();
    SSL *ssl = tlsclient_ssl(t, "origin.test", false, 443, &err);
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    ck_assert_int_eq(SSL_get_verify_mode(ssl), SSL_VERIFY_PEER);
    ck_assert(SSL_get_verify_callback(ssl) == NULL);
    ck_assert_int_eq(SSL_get_verify_depth(ssl), 8);
    ck_assert_int_eq(SSL_get_security_level(ssl), 2);
    ck_assert_int_eq(SSL_get_min_proto_version(ssl), TLS1_2_VERSION);
    ck_assert_int_eq(SSL_get_max_proto_version(ssl), 0);
    ck_assert_int_eq(SSL_get_max_cert_list(ssl), 65536);
    ck_assert_uint_eq(X509_VERIFY_PARAM_get_hostflags(param),
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    ck_assert_str_eq(X509_VERIFY_PARAM_get0_host(param, 0), "origin.test");
    ck_assert_uint_eq(SSL_get_options(ssl) & SSL_OP_IGNORE_UNEXPECTED_EOF, 0);
    ck_assert_uint_ne(SSL_get_options(ssl) & SSL_OP_NO_RENEGOTIATION, 0);
    long modes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                 SSL_MODE_RELEASE_BUFFERS;
    ck_assert_int_eq(SSL_get_mode(ssl) & modes, modes);
    SSL_free(ssl);
    tlsclient_free(t);
}
END_TEST

/* --- the store --- */

/* Our own root is no anchor, alone or in company, present or replaced (G4). */
START_TEST(own_root_is_dropped)
{
    time_t now = time(NULL);
    struct ca *ca = fix_ca("ca", false, now), *before = fix_ca("before", false, now);
    struct leafcache *lc = leafcache_new(ca, 4, &err);
    const char *file = fix_path("mixed.pem");
    fix_write_cert(file, ca_root(ca), false);
    ck_assert_ptr_null(
        tlsclient_new(&(struct tlsclient_spec){.ca_file = file, .own_root = ca_root(ca)}, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "empty"));

    fix_write_cert(file, ca_root(before), true);
    fix_write_cert(file, root.x, true);
    X509_STORE *store = X509_STORE_new();
    size_t added = 0;
    ck_assert(truststore_add(store, file, ca_root(ca), &added, &err));
    ck_assert_uint_eq(added, 1);
    X509_STORE_free(store);

    struct tlsclient *t =
        tlsclient_new(&(struct tlsclient_spec){.ca_file = file, .own_root = ca_root(ca)}, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    SSL *client = tlsclient_ssl(t, "s3.amazonaws.com", false, 443, &err);
    SSL *server = leafcache_ssl(lc, "s3.amazonaws.com", false, now, &err);
    expect(shake(client, server), "unable to get local issuer");
    SSL_free(client);
    SSL_free(server);
    tlsclient_free(t);
    leafcache_free(lc);
    ca_free(before);
    ca_free(ca);
}
END_TEST

/* The key decides, under whatever name. */
START_TEST(own_key_is_dropped)
{
    size_t added = 0;
    X509_STORE *store = X509_STORE_new();
    fix_write_cert(fix_path("roots.pem"), other_root.x, true);
    ck_assert(truststore_add(store, fix_path("roots.pem"), root.x, &added, &err));
    ck_assert_uint_eq(added, 1);
    X509_STORE_free(store);
}
END_TEST

START_TEST(no_store_no_client)
{
    static const char broken[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    ck_assert_ptr_null(
        tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path("missing.pem")}, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
    fix_write(fix_path("empty.pem"), "", 0);
    ck_assert_ptr_null(
        tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path("empty.pem")}, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "empty"));
    fix_write(fix_path("broken.pem"), broken, sizeof broken - 1);
    ck_assert_ptr_null(
        tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path("broken.pem")}, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "broken.pem"));
    ck_assert_ptr_null(tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path("")}, &err));
    ck_assert_ptr_null(tlsclient_new(&(struct tlsclient_spec){.ca_file = NULL}, &err));
    ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

START_TEST(system_store)
{
    const char *file = truststore_system_file();
    struct tlsclient *t = tlsclient_new(&(struct tlsclient_spec){.system_trust = true}, &err);
    ck_assert_msg((t != NULL) == (file != NULL), "%s", err.text);
    tlsclient_free(t);
    /* The environment does not choose whom to trust. */
    setenv("SSL_CERT_FILE", "/nonexistent", 1);
    ck_assert_ptr_eq(truststore_system_file(), file);
}
END_TEST

static TCase *case_origin(void)
{
    TCase *tc = tcase_create("origin");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, end_entity, 0, (int)ARRAY_LEN(table));
    tcase_add_test(tc, chains);
    tcase_add_loop_test(tc, issuers, 0, 3);
    tcase_add_test(tc, path_length);
    tcase_add_loop_test(tc, old_versions, 0, 2);
    tcase_add_loop_test(tc, new_versions, 0, 2);
    tcase_add_loop_test(tc, anonymous_and_null_ciphers, 0, 2);
    tcase_add_test(tc, endless_chain);
    tcase_add_test(tc, client_certificate_wanted);
    tcase_add_test(tc, clear_text_answer);
    tcase_add_test(tc, truncation_is_visible);
    tcase_add_test(tc, renegotiation_is_refused);
    return tc;
}

static TCase *case_client(void)
{
    TCase *tc = tcase_create("client");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, sni_for_names_only);
    tcase_add_test(tc, no_host_no_ssl);
    tcase_add_test(tc, settings);
    tcase_add_test(tc, own_root_is_dropped);
    tcase_add_test(tc, own_key_is_dropped);
    tcase_add_test(tc, no_store_no_client);
    tcase_add_test(tc, system_store);
    return tc;
}

UNIT_MAIN("tlsclient", case_origin, case_client)
