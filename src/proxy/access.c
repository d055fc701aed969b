/* The rules of an entrance applied to a peer. */
#include "proxy/access.h"
#include "core/base/units.h"
#include "io/net/peerprobe.h"
#include "io/obs/log.h"
#include "proxy/client.h"

enum { LINES_A_SECOND = 10 };

static bool in_ranges(const struct cidr *v, size_t n, const struct peer *p)
{
    for (size_t i = 0; i < n && p->has_address; i++) {
        if (cidr_contains(&v[i], p->address))
            return true;
    }
    return false;
}

bool access_may_introduce(struct proxy *px, const struct entrance *e, const struct peer *p)
{
    if (!p->has_address || in_ranges(e->rules.proxy_protocol, e->rules.n_proxy_protocol, p))
        return true;
    access_tell_refused(px, e, p, "its address is not among proxy_protocol");
    return false;
}

static bool is_listed_user(const struct entrance *e, uid_t user)
{
    for (size_t i = 0; i < e->n_users; i++) {
        if (e->users[i] == user)
            return true;
    }
    return false;
}

const char *access_refusal(const struct entrance *e, int fd, struct peer *p)
{
    if (e->rules.n_clients > 0 && !in_ranges(e->rules.clients, e->rules.n_clients, p))
        return "its address is not among clients";
    if (e->n_users == 0)
        return NULL;
    if (!p->has_user)
        p->has_user = peerprobe_user(fd, &p->user);
    if (!p->has_user)
        return "the kernel does not say whose it is";
    return is_listed_user(e, p->user) ? NULL : "its user is not among users";
}

static void tell_crowd(struct proxy *px, const struct entrance *e, struct peer_count *c)
{
    int64_t now = loop_now_ns(px->loop);
    c->turned_away++;
    if (c->told_ns != 0 && now - c->told_ns < NS_PER_S)
        return;
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "too_many_of_peer");
    log_str(&l, "client", slice_str(c->peer.text));
    log_str(&l, "listener", slice_str(e->rules.name));
    log_int(&l, "limit", px->config->max_clients_per_peer);
    log_int(&l, "turned_away", c->turned_away);
    log_end(&l);
    c->told_ns = now;
    c->turned_away = 0;
}

struct peer_count *access_enter(struct proxy *px, const struct entrance *e, int fd, struct peer *p)
{
    const char *why = access_refusal(e, fd, p);
    bool ok;
    if (why != NULL) {
        access_tell_refused(px, e, p, why);
        return NULL;
    }
    struct peer_count *c = peers_enter(&px->peers, p, px->config->max_clients_per_peer, &ok);
    if (ok)
        return c;
    tell_crowd(px, e, c);
    return NULL;
}

bool access_may_tell(struct proxy *px)
{
    struct turned_away *r = &px->turned_away;
    int64_t now = loop_now_ns(px->loop);
    if (now - r->since_ns >= NS_PER_S) {
        r->since_ns = now;
        r->lines = 0;
    }
    if (r->lines >= LINES_A_SECOND) {
        r->untold++;
        return false;
    }
    r->lines++;
    return true;
}

void access_tell_refused(struct proxy *px, const struct entrance *e, const struct peer *p,
                         const char *why)
{
    struct turned_away *r = &px->turned_away;
    struct log_line l;
    if (!access_may_tell(px))
        return;
    log_begin(&l, LOG_LEVEL_WARN, "refused");
    log_str(&l, "client", slice_str(p->text));
    log_str(&l, "listener", slice_str(e->rules.name));
    log_str(&l, "reason", SLICE("client"));
    log_str(&l, "detail", slice_str(why));
    if (r->untold > 0)
        log_int(&l, "untold", r->untold);
    log_end(&l);
    r->untold = 0;
}

bool access_request(struct client *c, enum reply_kind *refusal, const char **why)
{
    static const struct slice field = {"Proxy-Authorization", 19};
    if (c->entrance->credentials == NULL || c->intercepted)
        return true;
    struct slice value = SLICE_NONE;
    if (header_count(&c->req.fields, field) == 1)
        value = header_get(&c->req.fields, field);
    enum credentials_verdict v =
        credentials_check(c->entrance->credentials, value, loop_now_ns(c->px->loop), &c->user);
    *refusal = v == CREDENTIALS_BUSY ? REPLY_OVERLOAD : REPLY_CREDENTIALS;
    *why = v == CREDENTIALS_BUSY ? "too many credentials that are not known yet"
           : value.n > 0         ? "the name or the password is wrong"
                                 : "";
    return v == CREDENTIALS_GOOD;
}
