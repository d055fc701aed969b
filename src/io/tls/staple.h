/* Stapled OCSP (security requirement G6): an origin may send no word about revocation, but a word
 * that it sends must be a good one. Nothing is fetched. */
#ifndef RETRYD_IO_TLS_STAPLE_H
#define RETRYD_IO_TLS_STAPLE_H

#include <openssl/ssl.h>

/* Asks for staples on every connection of the context, and judges them: with one that is not valid
 * for the certificate at this time, or that says anything but "good", the handshake fails as it
 * does for a bad certificate. */
void staple_require_good(SSL_CTX *ctx);

#endif
