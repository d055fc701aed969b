/* The local authority: root (key thrown away) -> name-constrained intermediate -> leaves
 * (security requirements H1-H5).
 *
 * In DIR: ca.pem (root certificate, for trust stores), chain.pem (intermediate), ca-bundle.pem
 * (system store + root, for variables that replace the store), names (the constraints in force),
 * all 0644; and private/intermediate.key, 0600 in a 0700 directory. Written with O_EXCL, fsync and
 * rename, under a lock (the file lock). */
#ifndef RETRYD_IO_TLS_CA_H
#define RETRYD_IO_TLS_CA_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include <openssl/x509.h>
#include <time.h>

struct ca;

/* An authority that a running retryd uses is never replaced: opening it for other names fails then,
 * and says so.
 *
 * Opens the authority in dir, or creates it when there is none, or creates it anew when the
 * permitted names changed or its end is near (says so in *note, which is then not empty). names:
 * DNS suffixes without leading dot; ip_literals: an intercepted host is an address (then IPs are
 * not excluded). Refuses a key with group or world access or of another owner. NULL with *err. */
struct ca *ca_open(const char *dir, const struct slice *names, size_t n_names, bool ip_literals,
                   time_t now, struct err *note, struct err *err);
void ca_free(struct ca *ca);

X509 *ca_root(const struct ca *ca);         /* borrowed */
X509 *ca_intermediate(const struct ca *ca); /* borrowed */
EVP_PKEY *ca_key(const struct ca *ca);      /* borrowed; the intermediate's */
/* TICKETKEYS_SECRET_BYTES (ticketkeys.h), random, in memory only: the same for all processes that
 * were forked after the authority was opened. Borrowed. */
const unsigned char *ca_ticket_secret(const struct ca *ca);
/* When the intermediate (and with it every leaf) begins and ends to be valid. */
time_t ca_begin(const struct ca *ca);
time_t ca_end(const struct ca *ca);
/* The host is one of the permitted names or below one, on label boundaries; an address: IPs are not
 * excluded. Also false for what is no host name at all (lower case is expected). */
bool ca_permits(const struct ca *ca, const char *host, bool is_ip);
/* DIR/ca.pem and DIR/ca-bundle.pem; owned by ca. */
const char *ca_root_path(const struct ca *ca);
const char *ca_bundle_path(const struct ca *ca);

#endif
