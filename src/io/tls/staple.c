/* The judgement of a staple. The chain was verified before; the answer must be signed by the issuer
 * of the certificate or by a responder that this issuer has authorised (RFC 6960 4.2.2.2).
 *
 * A certificate that demands a staple (RFC 7633) is accepted without one, as the SDKs do. */
#include "io/tls/staple.h"

#include <openssl/ocsp.h>
#include <stdbool.h>

enum {
    CLOCK_SKEW_S = 300, /* between the responder and us */
    ANY_AGE = -1,       /* nextUpdate bounds it */
    OPEN_END_S = 86400, /* from thisUpdate, where there is none (RFC 6960 4.2.2.1) */
    GO_ON = 1,          /* results of a status callback */
    REFUSE = 0,
};

/* What the answer says about the certificate; false: nothing that holds. */
static bool status_of(OCSP_BASICRESP *basic, X509 *cert, X509 *issuer, int *status)
{
    ASN1_GENERALIZEDTIME *since = NULL, *until = NULL;
    int reason;
    bool found = false;
    /* A responder chooses the digest of the identifier: those in use are tried. */
    const EVP_MD *const digests[] = {EVP_sha1(), EVP_sha256()};
    for (size_t i = 0; !found && i < sizeof digests / sizeof digests[0]; i++) {
        OCSP_CERTID *id = OCSP_cert_to_id(digests[i], cert, issuer);
        found = id && OCSP_resp_find_status(basic, id, status, &reason, NULL, &since, &until) == 1;
        OCSP_CERTID_free(id);
    }
    return found &&
           OCSP_check_validity(since, until, CLOCK_SKEW_S, until ? ANY_AGE : OPEN_END_S) == 1;
}

/* X509_V_OK, or what is wrong. */
static long judge(SSL *ssl, OCSP_RESPONSE *answer)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    int status = V_OCSP_CERTSTATUS_UNKNOWN;
    if (sk_X509_num(chain) < 1 || OCSP_response_status(answer) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
        return X509_V_ERR_OCSP_VERIFY_FAILED;
    /* A self-signed certificate that is trusted is its own issuer. */
    X509 *cert = sk_X509_value(chain, 0);
    X509 *issuer = sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : cert;
    OCSP_BASICRESP *basic = OCSP_response_get1_basic(answer);
    bool holds =
        basic &&
        OCSP_basic_verify(basic, chain, SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl)), 0) == 1 &&
        status_of(basic, cert, issuer, &status);
    OCSP_BASICRESP_free(basic);
    if (!holds)
        return X509_V_ERR_OCSP_VERIFY_FAILED;
    switch (status) {
    case V_OCSP_CERTSTATUS_GOOD:
        return X509_V_OK;
    case V_OCSP_CERTSTATUS_REVOKED:
        return X509_V_ERR_CERT_REVOKED;
    default:
        return X509_V_ERR_OCSP_CERT_UNKNOWN;
    }
}

static int on_staple(SSL *ssl, void *arg)
{
    (void)arg;
    const unsigned char *der = NULL;
    long n = SSL_get_tlsext_status_ocsp_resp(ssl, &der);
    if (der == NULL || n <= 0)
        return GO_ON;
    OCSP_RESPONSE *answer = d2i_OCSP_RESPONSE(NULL, &der, n);
    long verdict = answer ? judge(ssl, answer) : X509_V_ERR_OCSP_VERIFY_FAILED;
    OCSP_RESPONSE_free(answer);
    if (verdict == X509_V_OK)
        return GO_ON;
    SSL_set_verify_result(ssl, verdict);
    return REFUSE;
}

void staple_require_good(SSL_CTX *ctx)
{
    SSL_CTX_set_tlsext_status_type(ctx, TLSEXT_STATUSTYPE_ocsp);
    SSL_CTX_set_tlsext_status_cb(ctx, on_staple);
}
