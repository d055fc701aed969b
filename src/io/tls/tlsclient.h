/* TLS towards the origin: full verification, always (security requirements G1-G5). */
#ifndef RETRYD_IO_TLS_TLSCLIENT_H
#define RETRYD_IO_TLS_TLSCLIENT_H

#include "core/base/err.h"
#include <openssl/ssl.h>

struct tlsclient;

/* system_trust: the system store; ca_file: extra PEM, or NULL. own_root: never a trust anchor even
 * when installed system-wide (G4), or NULL. An empty or unreadable store is an error (G5). */
struct tlsclient *tlsclient_new(bool system_trust, const char *ca_file, X509 *own_root,
                                struct err *err);
void tlsclient_free(struct tlsclient *t);

/* A client SSL that will accept only a certificate for host. Never with an empty host. */
SSL *tlsclient_ssl(struct tlsclient *t, const char *host, bool is_ip, struct err *err);

#endif
