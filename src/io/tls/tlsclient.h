/* TLS towards the origin: full verification, always (security requirements G1-G8). */
#ifndef RETRYD_IO_TLS_TLSCLIENT_H
#define RETRYD_IO_TLS_TLSCLIENT_H

#include "core/base/err.h"
#include <openssl/ssl.h>
#include <stdint.h>

/* One way of being a client: what is trusted and who we are. Sessions are resumed within one only
 * (G7), and pooled connections belong to one (G10). */
struct tlsclient;

struct tlsclient_spec {
    /* Trusts what this one does, by sharing its store: the next three do not count. */
    const struct tlsclient *same_trust;
    bool system_trust;       /* the system store */
    const char *ca_file;     /* PEM, trusted as well; or NULL */
    X509 *own_root;          /* never an anchor even when installed system-wide (G4), or NULL */
    const char *certificate; /* PEM: our own and its chain; NULL: none is ever shown (G8) */
    const char *key;         /* PEM, unencrypted; with certificate only */
};

/* An empty or unreadable store is an error (G5), so is a certificate that its key does not fit. */
struct tlsclient *tlsclient_new(const struct tlsclient_spec *spec, struct err *err);
/* Connections of it may live on. */
void tlsclient_free(struct tlsclient *t);

/* A client SSL that will accept only a certificate for host. Never with an empty host. A session
 * with that host and port may be resumed. */
SSL *tlsclient_ssl(struct tlsclient *t, const char *host, bool is_ip, uint16_t port,
                   struct err *err);
/* Once more, after the handshake of such an SSL: the verdict is that of a verified chain, and what
 * was resumed still holds for this host and this day. A line in *err otherwise. */
bool tlsclient_verified(SSL *ssl, struct err *err);

#endif
