/* The server half of TLS. Of interception: one context for all hosts; the leaf is put on each SSL
 * (security requirements F2, F6, F7, F8). */
#ifndef RETRYD_IO_TLS_TLSSERVER_H
#define RETRYD_IO_TLS_TLSSERVER_H

#include "core/base/err.h"
#include <openssl/ssl.h>

/* key: of all leaves; intermediate: sent behind each of them. NULL with *err. */
SSL_CTX *tlsserver_ctx(EVP_PKEY *key, X509 *intermediate, struct err *err);
/* A server SSL that answers with this leaf, refuses an SNI that the leaf is not for, and resumes
 * only sessions of the same host. */
SSL *tlsserver_ssl(SSL_CTX *ctx, X509 *leaf, const char *host, struct err *err);

/* For TLS with the proxy itself: a certificate chain and its key, in PEM files. No sessions are
 * resumed: connections to a proxy are few and long. NULL with *err, which names the file. The key
 * may not be readable by others. */
SSL_CTX *tlsserver_listener_ctx(const char *certificate, const char *key, struct err *err);
SSL *tlsserver_listener_ssl(SSL_CTX *ctx, struct err *err);

#endif
