/* Files of trusted certificates: where the system keeps its own, and reading them without our own
 * root. */
#ifndef RETRYD_IO_TLS_TRUSTSTORE_H
#define RETRYD_IO_TLS_TRUSTSTORE_H

#include "core/base/err.h"
#include <openssl/x509.h>

/* The first of the usual places that is there; NULL when there is none. The environment has no say.
 */
const char *truststore_system_file(void);

/* Adds the certificates of a PEM file to the store, except those that are ours: the key of own_root
 * (may be NULL), or a name that every root of this program carries (security requirement G4). Adds
 * their number to *added. False when the file cannot be read whole. */
bool truststore_add(X509_STORE *store, const char *file, X509 *own_root, size_t *added,
                    struct err *err);

#endif
