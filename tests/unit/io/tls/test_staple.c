/* Stapled OCSP (security requirement G6): none is fine, a good one is, anything else is refused. */
#include "tlsfix.h"

#include "io/tls/tlsclient.h"
#include <openssl/ocsp.h>

static struct cert root, sub, leaf, sibling, stranger, responder, not_responder;
static struct err err;

static void setup(void)
{
    fix_setup();
    root = cert_authority("good root", NULL);
    sub = cert_authority("good sub", &root);
    stranger = cert_authority("stranger", NULL);
    const struct cert_spec spec = {.san = "DNS:origin.test"};
    leaf = cert_make(&spec, &sub);
    sibling = cert_make(&spec, &sub);
    responder = cert_make(&(struct cert_spec){.cn = "responder", .eku = "OCSPSigning"}, &sub);
    not_responder = cert_make(&(struct cert_spec){.cn = "no responder", .eku = "serverAuth"}, &sub);
    fix_write_cert(fix_path("roots.pem"), root.x, false);
}

static void teardown(void)
{
    struct cert *all[] = {&root, &sub, &leaf, &sibling, &stranger, &responder, &not_responder};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cert_free(all[i]);
    fix_teardown();
}

enum what { ABSENT, GARBAGE, TRY_LATER, ANSWER };

static struct row {
    enum what what;
    int status;               /* V_OCSP_CERTSTATUS_ */
    const struct cert *about; /* default leaf */
    const struct cert *signer;
    bool sha256;
    long since_s, until_s; /* from now; until 0: no nextUpdate */
    const char *verdict;   /* NULL: accepted */
} table[] = {
    {ABSENT, .verdict = NULL},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, false, -3600, 3600, NULL},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, true, -3600, 3600, NULL},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &responder, false, -3600, 3600, NULL},
    {ANSWER, V_OCSP_CERTSTATUS_REVOKED, &leaf, &sub, false, -3600, 3600, "certificate revoked"},
    {ANSWER, V_OCSP_CERTSTATUS_REVOKED, &leaf, &responder, false, -3600, 3600,
     "certificate revoked"},
    {ANSWER, V_OCSP_CERTSTATUS_UNKNOWN, &leaf, &sub, false, -3600, 3600, "OCSP unknown cert"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, false, -7200, -3600, "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, false, 3600, 7200, "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &sibling, &sub, false, -3600, 3600,
     "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &stranger, false, -3600, 3600,
     "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &not_responder, false, -3600, 3600,
     "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &leaf, false, -3600, 3600, "OCSP verification failed"},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, false, -3600, 0, NULL},
    {ANSWER, V_OCSP_CERTSTATUS_GOOD, &leaf, &sub, false, -2 * 86400, 0, "OCSP verification failed"},
    {TRY_LATER, .verdict = "OCSP verification failed"},
    {GARBAGE, .verdict = "OCSP verification failed"},
};

static OCSP_RESPONSE *answer_of(const struct row *r)
{
    if (r->what == TRY_LATER)
        return OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, NULL);
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(r->sha256 ? EVP_sha256() : EVP_sha1(), r->about->x, sub.x);
    ASN1_TIME *since = X509_gmtime_adj(NULL, r->since_s),
              *until = r->until_s ? X509_gmtime_adj(NULL, r->until_s) : NULL;
    ck_assert_ptr_nonnull(OCSP_basic_add1_status(basic, id, r->status, 0, since, since, until));
    ck_assert_int_eq(OCSP_basic_sign(basic, r->signer->x, r->signer->key, EVP_sha256(), NULL, 0),
                     1);
    OCSP_RESPONSE *answer = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    ASN1_TIME_free(since);
    ASN1_TIME_free(until);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    return answer;
}

static int on_status(SSL *ssl, void *arg)
{
    const struct row *r = arg;
    unsigned char *der = NULL;
    int n;
    if (r->what == ABSENT)
        return SSL_TLSEXT_ERR_NOACK;
    if (r->what == GARBAGE) {
        n = 5;
        der = (unsigned char *)OPENSSL_strdup("hello");
    } else {
        OCSP_RESPONSE *answer = answer_of(r);
        n = i2d_OCSP_RESPONSE(answer, &der);
        OCSP_RESPONSE_free(answer);
    }
    ck_assert_int_gt(n, 0);
    SSL_set_tlsext_status_ocsp_resp(ssl, der, n);
    return SSL_TLSEXT_ERR_OK;
}

static void meet(struct row *r, int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_max_proto_version(ctx, version);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, leaf.x), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, leaf.key), 1);
    ck_assert_int_eq(SSL_CTX_add1_chain_cert(ctx, sub.x), 1);
    SSL_CTX_set_tlsext_status_cb(ctx, on_status);
    SSL_CTX_set_tlsext_status_arg(ctx, r);
    const struct tlsclient_spec spec = {.ca_file = fix_path("roots.pem")};
    struct tlsclient *t = tlsclient_new(&spec, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    struct shake s = shake(client, server);
    if (r->verdict == NULL) {
        ck_assert_msg(s.client_ok && s.server_ok, "%s", s.client_err.text);
        ck_assert_msg(tlsclient_verified(client, &err), "%s", err.text);
    } else {
        ck_assert(!s.client_ok && s.client_blames_cert);
        ck_assert_msg(strcasestr(s.client_err.text, r->verdict) != NULL, "%s", s.client_err.text);
        ck_assert(!tlsclient_verified(client, &err));
    }
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    tlsclient_free(t);
    ERR_clear_error();
}

START_TEST(staples)
{
    meet(&table[_i], TLS1_2_VERSION);
    meet(&table[_i], TLS1_3_VERSION);
}
END_TEST

static TCase *tcase_staple(void)
{
    TCase *tc = tcase_create("staple");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, staples, 0, ARRAY_LEN(table));
    return tc;
}

UNIT_MAIN("staple", tcase_staple)
