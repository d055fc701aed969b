/* TLS sessions with origins, to be resumed (security requirement G7): bounded, by origin, least
 * recently used first to go. One cache belongs to one set of trust and client certificate, so that
 * what was verified under one is never resumed under another. */
#ifndef RETRYD_IO_TLS_SESSIONS_H
#define RETRYD_IO_TLS_SESSIONS_H

#include <openssl/ssl.h>
#include <stdint.h>

enum {
    SESSIONS_MAX = 256,      /* in one cache */
    SESSIONS_PER_ORIGIN = 4, /* connections that may begin at the same time */
    /* After its chain was verified, whatever the origin says, and however often tickets were
     * renewed meanwhile: then the chain is verified anew. */
    SESSIONS_LIFE_S = 60 * 60
};

struct sessions;

struct sessions *sessions_new(void);
void sessions_free(struct sessions *s);

/* A session to offer to the origin, a reference of the caller's; NULL: none that is worth it. One
 * whose certificate has ended is none. One of TLS 1.3 is handed out once (RFC 8446 appendix C.4),
 * one of TLS 1.2 stays. now_s: wall clock. *verified_s: when its chain was verified, to be kept
 * with the sessions that come of it. */
SSL_SESSION *sessions_take(struct sessions *s, const char *origin, int64_t now_s,
                           int64_t *verified_s);
/* Takes the reference. */
void sessions_put(struct sessions *s, const char *origin, SSL_SESSION *session, int64_t verified_s);
unsigned sessions_count(const struct sessions *s);

#endif
