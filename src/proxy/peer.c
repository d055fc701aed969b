/* Peers, and the table of their connections. */
#include "proxy/peer.h"
#include "core/base/xalloc.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_address(struct peer *p, const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        p->address[10] = p->address[11] = 0xff;
        memcpy(p->address + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(p->address, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
    } else {
        return;
    }
    p->has_address = true;
}

void peer_of(struct peer *p, int fd, const struct sockaddr *sa)
{
    struct ucred who;
    socklen_t n = sizeof who;
    *p = (struct peer){.has_address = false};
    addrtext(sa, p->text);
    set_address(p, sa);
    if (p->has_address || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0)
        return;
    p->has_user = true;
    p->user = who.uid;
    snprintf(p->text, sizeof p->text, "uid=%u", who.uid);
}

void peer_named(struct peer *p, const struct sockaddr *sa)
{
    *p = (struct peer){.has_address = false};
    addrtext(sa, p->text);
    set_address(p, sa);
}

struct slice peer_without_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon != NULL ? slice_of(text, (size_t)(colon - text)) : slice_str(text);
}

/* --- the table --- */

static bool same(const struct peer *a, const struct peer *b)
{
    if (a->has_address || b->has_address)
        return a->has_address && b->has_address && memcmp(a->address, b->address, 16) == 0;
    return a->has_user == b->has_user && a->user == b->user;
}

static struct list *bucket_of(struct peers *t, const struct peer *p)
{
    struct slice name = p->has_address ? slice_of((const char *)p->address, sizeof p->address)
                                       : slice_of((const char *)&p->user, sizeof p->user);
    return &t->bucket[hash_bytes(t->key, name) % PEERS_BUCKETS];
}

void peers_init(struct peers *t, struct hash_key key)
{
    t->key = key;
    for (size_t i = 0; i < PEERS_BUCKETS; i++)
        list_init(&t->bucket[i]);
}

struct peer_count *peers_enter(struct peers *t, const struct peer *p, unsigned max, bool *ok)
{
    struct list *bucket = bucket_of(t, p);
    *ok = true;
    for (struct list *l = bucket->next; l != bucket; l = l->next) {
        struct peer_count *c = list_entry(l, struct peer_count, link);
        if (!same(&c->peer, p))
            continue;
        *ok = c->n < max;
        if (*ok)
            c->n++;
        return c;
    }
    struct peer_count *c = xcalloc(1, sizeof *c);
    c->peer = *p;
    c->n = 1;
    list_push_back(bucket, &c->link);
    return c;
}

void peers_leave(struct peer_count *c)
{
    if (--c->n > 0)
        return;
    list_remove(&c->link);
    free(c);
}
