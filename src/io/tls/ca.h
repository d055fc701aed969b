/* The local authority: root (key thrown away) -> name-constrained intermediate -> leaves
 * (security requirements H1-H5).
 *
 * In DIR: ca.pem (root certificate, for trust stores), chain.pem (intermediate), ca-bundle.pem (system
 * store + root, for variables that replace the store), names (the constraints in force), all 0644; and
 * private/intermediate.key, 0600 in a 0700 directory. Written with O_EXCL, fsync and rename. */
#ifndef RETRYD_IO_TLS_CA_H
#define RETRYD_IO_TLS_CA_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include <openssl/x509.h>
#include <time.h>

struct ca;

/* Opens the authority in dir, or creates it when there is none, or creates it anew when the permitted
 * names changed or its end is near (says so in *note, which is then not empty). names: DNS suffixes without
 * leading dot; ip_literals: an intercepted host is an address (then IPs are not excluded). Refuses a key
 * with group or world access or of another owner. NULL with *err. */
struct ca *ca_open(const char *dir, const struct slice *names, size_t n_names, bool ip_literals,
                   time_t now, struct err *note, struct err *err);
void ca_free(struct ca *ca);

X509 *ca_root(const struct ca *ca);         /* borrowed */
X509 *ca_intermediate(const struct ca *ca); /* borrowed */
EVP_PKEY *ca_key(const struct ca *ca);      /* borrowed; the intermediate's */
/* DIR/ca.pem and DIR/ca-bundle.pem; owned by ca. */
const char *ca_root_path(const struct ca *ca);
const char *ca_bundle_path(const struct ca *ca);

#endif
