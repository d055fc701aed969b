/* Reading OpenSSL's two places for trouble: the verification result of the peer's certificate, and
 * the error queue, whose oldest entry is the cause. */
#include "io/tls/tlserr.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <string.h>

static bool is_clear_http(unsigned long code)
{
    int reason = ERR_GET_REASON(code);
    return ERR_GET_LIB(code) == ERR_LIB_SSL &&
           (reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST);
}

/* Where OpenSSL's words tell a person nothing, ours. Reason text of the oldest entry of the queue,
 * NULL when it is empty. */
static const char *cause(void)
{
    unsigned long code = ERR_peek_error();
    if (code == 0)
        return NULL;
    if (ERR_SYSTEM_ERROR(code))
        return strerror(ERR_GET_REASON(code));
    if (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE)
        return "no certificate or key in PEM";
    if (is_clear_http(code))
        return "plain HTTP where TLS is spoken (the proxy URL begins with https://)";
    const char *reason = ERR_reason_error_string(code);
    return reason ? reason : "unknown error";
}

bool tlserr_explain(const SSL *ssl, struct err *err)
{
    long verdict = SSL_get_verify_result(ssl);
    const char *reason = cause();
    if (verdict != X509_V_OK)
        err_set(err, "certificate: %s", X509_verify_cert_error_string(verdict));
    else
        err_set(err, "handshake: %s", reason ? reason : "connection closed");
    ERR_clear_error();
    return verdict != X509_V_OK;
}

bool tlserr_is_distrust(void)
{
    unsigned long code = ERR_peek_error();
    if (ERR_GET_LIB(code) != ERR_LIB_SSL)
        return false;
    switch (ERR_GET_REASON(code)) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return true;
    default:
        return false;
    }
}

bool tlserr_set(struct err *err, const char *what)
{
    const char *reason = cause();
    err_set(err, "%s: %s", what, reason ? reason : "failed without a reason");
    ERR_clear_error();
    return false;
}
