/* ca-bundle.pem: for programs whose variable or option replaces the system's trust store. */
#ifndef RETRYD_IO_TLS_BUNDLE_H
#define RETRYD_IO_TLS_BUNDLE_H

#include "io/tls/statedir.h"
#include <openssl/x509.h>

#define BUNDLE_FILE "ca-bundle.pem"

/* The system's certificates as they are now, and the root; written when that differs from what is
 * there. system_file NULL or unreadable: the root alone, and *note says so. */
bool bundle_refresh(const struct statedir *d, const char *system_file, X509 *root, struct err *note,
                    struct err *err);

#endif
