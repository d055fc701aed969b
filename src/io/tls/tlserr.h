/* What OpenSSL says, in one line and in one of our kinds. */
#ifndef RETRYD_IO_TLS_TLSERR_H
#define RETRYD_IO_TLS_TLSERR_H

#include "core/base/err.h"
#include <openssl/ssl.h>

/* True if the failed handshake of ssl failed because of the peer's certificate. Writes a line such
 * as "certificate: certificate has expired" or "handshake: unsupported protocol" to err, and
 * empties the error queue. */
bool tlserr_explain(const SSL *ssl, struct err *err);

/* The oldest entry of the error queue is a fatal alert of the peer by which it refuses a
 * certificate: bad_certificate, certificate_unknown or unknown_ca (RFC 8446 6.2). Leaves the queue
 * alone. */
bool tlserr_is_distrust(void);

/* "WHAT: REASON", for a failed call that is not a handshake. Empties the error queue. Returns
 * false. */
bool tlserr_set(struct err *err, const char *what);

#endif
