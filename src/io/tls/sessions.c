/* An array in order of use. It is short and walked only when a connection is made, where a
 * handshake costs a thousand times more: no hash, so nothing that chosen names could collide in
 * (J14). */
#include "io/tls/sessions.h"

#include "core/base/xalloc.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct entry {
    SSL_SESSION *session;
    int64_t verified_s;
    char origin[];
};

struct sessions {
    unsigned n;
    struct entry *v[SESSIONS_MAX]; /* the latest last */
};

struct sessions *sessions_new(void)
{
    return xcalloc(1, sizeof(struct sessions));
}

/* Closes the gap; the entry is the caller's. */
static struct entry *take_out(struct sessions *s, unsigned i)
{
    struct entry *e = s->v[i];
    s->n--;
    memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof(struct entry *));
    return e;
}

static void forget(struct sessions *s, unsigned i)
{
    struct entry *e = take_out(s, i);
    SSL_SESSION_free(e->session);
    free(e);
}

void sessions_free(struct sessions *s)
{
    if (s == NULL)
        return;
    while (s->n > 0)
        forget(s, s->n - 1);
    free(s);
}

/* The certificate that was verified when the session began. */
static bool certificate_ended(SSL_SESSION *session, int64_t now_s)
{
    X509 *peer = SSL_SESSION_get0_peer(session);
    time_t now = (time_t)now_s;
    return peer != NULL && X509_cmp_time(X509_get0_notAfter(peer), &now) <= 0;
}

/* The time of a session itself is that of its latest ticket. */
static bool stale(const struct entry *e, int64_t now_s)
{
    SSL_SESSION *session = e->session;
    int64_t age = now_s - (int64_t)SSL_SESSION_get_time(session);
    int64_t verified_ago = now_s - e->verified_s;
    return !SSL_SESSION_is_resumable(session) || age < 0 || verified_ago < 0 ||
           verified_ago >= SESSIONS_LIFE_S || age >= (int64_t)SSL_SESSION_get_timeout(session) ||
           certificate_ended(session, now_s);
}

SSL_SESSION *sessions_take(struct sessions *s, const char *origin, int64_t now_s,
                           int64_t *verified_s)
{
    for (unsigned i = s->n; i-- > 0;) {
        if (strcmp(s->v[i]->origin, origin) != 0)
            continue;
        if (stale(s->v[i], now_s)) {
            forget(s, i);
            continue;
        }
        SSL_SESSION *session = s->v[i]->session;
        SSL_SESSION_up_ref(session);
        *verified_s = s->v[i]->verified_s;
        if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
            forget(s, i);
        } else {
            struct entry *e = take_out(s, i);
            s->v[s->n++] = e;
        }
        return session;
    }
    return NULL;
}

void sessions_put(struct sessions *s, const char *origin, SSL_SESSION *session, int64_t verified_s)
{
    unsigned here = 0, oldest_here = 0;
    for (unsigned i = s->n; i-- > 0;) {
        if (strcmp(s->v[i]->origin, origin) != 0)
            continue;
        oldest_here = i;
        here++;
    }
    if (here >= SESSIONS_PER_ORIGIN)
        forget(s, oldest_here);
    else if (s->n == SESSIONS_MAX)
        forget(s, 0);
    size_t bytes = strlen(origin) + 1;
    struct entry *e = xcalloc(1, sizeof *e + bytes);
    memcpy(e->origin, origin, bytes);
    e->session = session;
    e->verified_s = verified_s;
    s->v[s->n++] = e;
}

unsigned sessions_count(const struct sessions *s)
{
    return s->n;
}
