/* Making keys and certificates: the root, the intermediate, leaves (security requirements F4, H2).
 * No files, no cache. */
#ifndef RETRYD_IO_TLS_MINT_H
#define RETRYD_IO_TLS_MINT_H

#include "core/base/err.h"
#include "io/tls/ca.h"
#include <openssl/x509v3.h>
#include <time.h>

/* Every root of this program is named so, followed by host and date. */
#define MINT_ROOT_NAME "retryd root "

/* EC P-256. NULL with *err. */
EVP_PKEY *mint_key(struct err *err);

/* The extension that bounds what an intermediate may sign for. names: as in ca_open, lower case;
 * the same names in the same order make the same bytes. The caller frees. */
NAME_CONSTRAINTS *mint_constraints(const struct slice *names, size_t n_names, bool ip_literals);

/* Both tiers, valid from an hour before now until `life_s` after it. The key of the root exists
 * only inside this call. */
bool mint_authority(EVP_PKEY *intermediate_key, NAME_CONSTRAINTS *constraints, time_t now,
                    int64_t life_s, X509 **root, X509 **intermediate, struct err *err);

/* A certificate of `key` for exactly this host (lower-case name or literal), signed by the
 * intermediate. *end: when it ends. NULL with *err when the host is outside the constraints or no
 * host at all, or when the clock is outside the life of the authority. The caller frees. */
X509 *mint_leaf(const struct ca *ca, EVP_PKEY *key, const char *host, bool is_ip, time_t now,
                time_t *end, struct err *err);

#endif
