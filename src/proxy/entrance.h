/* A way in: a listening socket with the rules of its listener. Made once at the start, before there
 * are workers, and the same in all of them. */
#ifndef RETRYD_PROXY_ENTRANCE_H
#define RETRYD_PROXY_ENTRANCE_H

#include "core/base/err.h"
#include "core/config/config.h"
#include "io/net/unixsock.h"
#include "proxy/credentials.h"

#include <openssl/ssl.h>

enum { ENTRANCE_TEXT_MAX = AUTHORITY_TEXT_MAX };

struct entrance {
    int fd;
    struct listener_config rules; /* name and address as they came to be */
    char text[ENTRANCE_TEXT_MAX]; /* "127.0.0.1:8199", "unix:/run/x.sock" */
    struct unixsock file;         /* of our own making; ino 0: none */
    uid_t *users;                 /* those of the rules, by number */
    size_t n_users;
    struct credentials *credentials; /* NULL: none are asked for */
    SSL_CTX *tls;                    /* NULL: it is not spoken with the proxy itself */
};

/* Takes the socket; the rules are borrowed. */
void entrance_init(struct entrance *e, int fd, const struct listener_config *rules);
/* Reads what the rules only name: users, credentials, a certificate. False with *err, which says
 * where that name is written. */
bool entrance_prepare(struct entrance *e, struct err *err);
/* Leaves the socket alone. */
void entrance_fini(struct entrance *e);
/* The URL under which programs of this machine use it as their proxy. False: they cannot, for it is
 * a unix socket, or only load balancers may speak to it. */
enum { ENTRANCE_URL_MAX = AUTHORITY_TEXT_MAX + 8 };
bool entrance_url(const struct listener_config *rules, const char *text,
                  char out[ENTRANCE_URL_MAX]);
/* The file of a unix socket that was made here. */
void entrance_remove_file(const struct entrance *e);

#endif
