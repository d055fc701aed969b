/* Name lookups (security requirement I6).
 *
 * A lookup is one name on its way through c-ares; the queries for that name wait on it together. At
 * most 256 are with c-ares at a time, the others queue. One that passes the deadline answers its
 * queries and is left to c-ares, out of the count: a dead zone cannot use up the places of a live
 * one. c-ares knows no cancelling of one lookup, so its late answer goes to the cache. A zone (the
 * last two labels) may have half of the places; the other half is always there for others.
 *
 * The order of addresses is that of RFC 6724 as c-ares sorts them: a family without a route comes
 * last. */
#include "io/net/dns.h"

#include "core/base/list.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/net/dnscache.h"
#include <ares.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    MAX_ASKING = 256,   /* lookups with c-ares */
    ZONES = 256,        /* counters; zones that meet in one share it */
    MAX_PENDING = 4096, /* lookups asking or queued; beyond, refused */
    MAX_CACHED = 1024,  /* names */
    MAX_NAME = 253,     /* RFC 1035 2.3.4, as text */
    NAME_BUCKETS = 256,
    TTL_MIN_S = 1,
    TTL_MAX_S = 60,
    NEGATIVE_TTL_S = 5,
    TRIES = 2,            /* the second waits twice as long as the first ... */
    TRIES_PER_TIMEOUT = 6 /* ... so that two servers fit into the deadline: (1 + 2) * 2 */
};

struct lookup {
    struct dns *dns;
    struct list age;   /* in dns->pending, oldest first, until answered or given up */
    struct list queue; /* in dns->queue until asked */
    struct list bucket;
    struct list waiters;
    int64_t deadline_ns;
    unsigned zone;
    bool asking; /* with c-ares */
    bool given_up;
    char name[MAX_NAME + 1];
};

struct dns_query {
    struct list link; /* in its lookup's waiters, then in dns->ready */
    struct dns_result *result;
    void (*fn)(void *, const struct dns_answer *);
    void *arg;
};

struct watched {
    struct list link;
    struct dns *dns;
    int fd;
    struct event *ev;
};

struct dns {
    struct loop *loop;
    int64_t timeout_ns;
    struct hash_key key;
    ares_channel channel;
    struct loop_timer retry;    /* c-ares's own retransmissions */
    struct loop_timer deadline; /* of the oldest pending lookup */
    struct list sockets;
    struct list pending;
    struct list queue;
    struct list ready;
    unsigned n_asking, n_pending;
    struct zone {
        unsigned asking, pending;
    } zones[ZONES]; /* each may have half of the places */
    bool delivering;
    struct list buckets[NAME_BUCKETS]; /* pending lookups by name */
    struct dnscache *cache;
};

/* --- answering --- */

static void on_deliver(void *arg)
{
    struct dns *d = arg;
    struct list batch;
    d->delivering = false;
    list_init(&batch);
    while (!list_empty(&d->ready)) {
        struct list *link = d->ready.next;
        list_remove(link);
        list_push_back(&batch, link);
    }
    while (!list_empty(&batch)) {
        struct dns_query *q = list_entry(batch.next, struct dns_query, link);
        list_remove(&q->link);
        q->fn(q->arg, &q->result->answer);
        dns_result_unref(q->result);
        free(q);
    }
}

static void answer_query(struct dns *d, struct dns_query *q, struct dns_result *r)
{
    q->result = dns_result_ref(r);
    list_push_back(&d->ready, &q->link);
    if (d->delivering)
        return;
    d->delivering = true;
    loop_defer(d->loop, on_deliver, d);
}

static void answer_waiters(struct lookup *lk, struct dns_result *r)
{
    while (!list_empty(&lk->waiters)) {
        struct dns_query *q = list_entry(lk->waiters.next, struct dns_query, link);
        list_remove(&q->link);
        answer_query(lk->dns, q, r);
    }
}

static struct dns_result *no_answer(const char *problem)
{
    struct dns_result *r = dns_result_new();
    r->answer.problem = problem;
    return r;
}

/* No longer pending: the next query for the name starts a new lookup. */
static void retire(struct lookup *lk)
{
    lk->dns->n_pending--;
    lk->dns->zones[lk->zone].pending--;
    if (lk->asking) {
        lk->dns->n_asking--;
        lk->dns->zones[lk->zone].asking--;
    }
    list_remove(&lk->age);
    list_remove(&lk->queue);
    list_remove(&lk->bucket);
}

/* Retires it unanswered. c-ares still has it: freed when c-ares is done. */
static void give_up(struct lookup *lk)
{
    retire(lk);
    lk->given_up = true;
    if (!lk->asking)
        loop_defer(lk->dns->loop, free, lk);
}

/* --- c-ares: results --- */

static const char *problem_of(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
        return "no such name";
    case ARES_ENODATA:
        return "the name has no address";
    case ARES_ETIMEOUT:
        return "no answer from the name servers";
    default:
        return ares_strerror(status);
    }
}

/* Copies at most DNS_MAX_ADDRESSES; returns the least TTL of all records involved. */
static int copy_addresses(const struct ares_addrinfo *res, struct dns_answer *a)
{
    int ttl = TTL_MAX_S;
    for (const struct ares_addrinfo_cname *c = res->cnames; c; c = c->next)
        ttl = c->ttl < ttl ? c->ttl : ttl;
    for (const struct ares_addrinfo_node *n = res->nodes; n; n = n->ai_next) {
        if (n->ai_family != AF_INET && n->ai_family != AF_INET6)
            continue;
        ttl = n->ai_ttl < ttl ? n->ai_ttl : ttl;
        if (a->n == DNS_MAX_ADDRESSES || (size_t)n->ai_addrlen > sizeof a->addr[0])
            continue;
        memcpy(&a->addr[a->n++], n->ai_addr, (size_t)n->ai_addrlen);
    }
    return ttl > TTL_MIN_S ? ttl : TTL_MIN_S;
}

static void on_addrinfo(void *arg, int status, int timeouts, struct ares_addrinfo *res)
{
    (void)timeouts;
    struct lookup *lk = arg;
    struct dns *d = lk->dns;
    struct dns_result *r = no_answer(problem_of(status));
    int ttl = 0;
    if (status == ARES_SUCCESS) {
        ttl = copy_addresses(res, &r->answer);
        r->answer.problem = r->answer.n > 0 ? NULL : problem_of(ARES_ENODATA);
    }
    if (res)
        ares_freeaddrinfo(res);
    if (status == ARES_ENOTFOUND || status == ARES_ENODATA || (ttl > 0 && r->answer.n == 0))
        ttl = NEGATIVE_TTL_S;
    if (ttl > 0)
        dnscache_put(d->cache, lk->name, r, loop_now_ns(d->loop) + ttl * NS_PER_S);
    r->answer.ttl_s = ttl;
    if (!lk->given_up)
        retire(lk);
    answer_waiters(lk, r);
    dns_result_unref(r);
    free(lk);
}

/* --- c-ares: sockets and time --- */

static void arm_retry(struct dns *d)
{
    struct timeval tv;
    if (!ares_timeout(d->channel, NULL, &tv))
        loop_timer_disarm(&d->retry);
    else
        loop_timer_arm(&d->retry, (int64_t)tv.tv_sec * NS_PER_S + (int64_t)tv.tv_usec * 1000);
}

/* The oldest in the queue whose zone has a place; NULL: none. */
static struct lookup *next_to_ask(const struct dns *d)
{
    for (struct list *i = d->queue.next; i != &d->queue; i = i->next) {
        struct lookup *lk = list_entry(i, struct lookup, queue);
        if (d->zones[lk->zone].asking < MAX_ASKING / 2)
            return lk;
    }
    return NULL;
}

/* Fills free places from the queue. c-ares may answer from within (hosts file). */
static void ask(struct dns *d)
{
    static const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC,
                                                     .ai_socktype = SOCK_STREAM};
    struct lookup *lk;
    while (d->n_asking < MAX_ASKING && (lk = next_to_ask(d)) != NULL) {
        list_remove(&lk->queue);
        lk->asking = true;
        d->n_asking++;
        d->zones[lk->zone].asking++;
        ares_getaddrinfo(d->channel, lk->name, NULL, &hints, on_addrinfo, lk);
    }
    arm_retry(d);
}

static void on_retry(void *arg)
{
    struct dns *d = arg;
    ares_process_fd(d->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    ask(d);
}

static void on_socket(int fd, short what, void *arg)
{
    struct dns *d = ((struct watched *)arg)->dns; /* c-ares may free the entry */
    loop_tick(d->loop);
    ares_process_fd(d->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
                    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
    ask(d);
}

static void unwatch(struct watched *w)
{
    list_remove(&w->link);
    event_free(w->ev);
    free(w);
}

static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns *d = arg;
    for (struct list *i = d->sockets.next; i != &d->sockets; i = i->next) {
        struct watched *w = list_entry(i, struct watched, link);
        if (w->fd == fd) {
            unwatch(w);
            break;
        }
    }
    if (!readable && !writable)
        return;
    struct watched *w = xcalloc(1, sizeof *w);
    w->dns = d;
    w->fd = fd;
    short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST);
    w->ev = loop_watch(d->loop, fd, what, on_socket, w);
    event_add(w->ev, NULL); /* failing is a server that does not answer */
    list_push_back(&d->sockets, &w->link);
}

/* --- deadlines --- */

/* All have the same time to live, so the oldest is the next to end. */
static void arm_deadline(struct dns *d)
{
    if (list_empty(&d->pending)) {
        loop_timer_disarm(&d->deadline);
        return;
    }
    struct lookup *oldest = list_entry(d->pending.next, struct lookup, age);
    int64_t wait = oldest->deadline_ns - loop_now_ns(d->loop);
    loop_timer_arm(&d->deadline, wait > 0 ? wait : 0);
}

static void on_deadline(void *arg)
{
    struct dns *d = arg;
    struct dns_result *r = no_answer("no answer in time");
    while (!list_empty(&d->pending)) {
        struct lookup *lk = list_entry(d->pending.next, struct lookup, age);
        if (lk->deadline_ns > loop_now_ns(d->loop))
            break;
        answer_waiters(lk, r);
        give_up(lk);
    }
    dns_result_unref(r);
    ask(d);
    arm_deadline(d);
}

/* --- queries --- */

/* An all-numeric last label is a misspelt address, which a lenient resolver might accept (I4). */
static bool is_host_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > MAX_NAME)
        return false;
    const char *end = name + n - (name[n - 1] == '.');
    const char *label = end;
    while (label > name && label[-1] != '.')
        label--;
    if (label == end)
        return false;
    if (end - label > 1 && label[0] == '0' && ascii_lower(label[1]) == 'x')
        return false;
    while (label < end && ascii_is_digit(*label))
        label++;
    return label < end;
}

static struct dns_result *literal(const char *name)
{
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    if (inet_pton(AF_INET, name, &((struct sockaddr_in *)&sa)->sin_addr) == 1)
        sa.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, name, &((struct sockaddr_in6 *)&sa)->sin6_addr) == 1)
        sa.ss_family = AF_INET6;
    else
        return NULL;
    struct dns_result *r = dns_result_new();
    r->answer.addr[0] = sa;
    r->answer.n = 1;
    return r;
}

/* What can be said without asking; one reference, the caller's. */
static struct dns_result *known(struct dns *d, const char *name)
{
    struct dns_result *r = literal(name);
    if (r)
        return r;
    if (!is_host_name(name))
        return no_answer("not a host name");
    r = dnscache_get(d->cache, name, loop_now_ns(d->loop));
    return r ? dns_result_ref(r) : NULL;
}

/* By the last two labels: who serves them is one party, or two that would share the trouble. */
static unsigned zone_of(const struct dns *d, const char *name)
{
    size_t n = strlen(name);
    if (n > 0 && name[n - 1] == '.')
        n--;
    size_t at = n;
    for (unsigned dots = 0; at > 0; at--)
        if (name[at - 1] == '.' && ++dots == 2)
            break;
    return (unsigned)(hash_bytes(d->key, slice_of(name + at, n - at)) % ZONES);
}

static struct lookup *find_or_start(struct dns *d, const char *name)
{
    struct list *bucket = &d->buckets[hash_bytes(d->key, slice_str(name)) % NAME_BUCKETS];
    for (struct list *i = bucket->next; i != bucket; i = i->next) {
        struct lookup *lk = list_entry(i, struct lookup, bucket);
        if (strcmp(lk->name, name) == 0)
            return lk;
    }
    unsigned zone = zone_of(d, name);
    if (d->n_pending == MAX_PENDING || d->zones[zone].pending == MAX_PENDING / 2)
        return NULL;
    struct lookup *lk = xcalloc(1, sizeof *lk);
    lk->dns = d;
    memcpy(lk->name, name, strlen(name) + 1);
    lk->zone = zone;
    lk->deadline_ns = loop_now_ns(d->loop) + d->timeout_ns;
    list_init(&lk->waiters);
    list_push_back(bucket, &lk->bucket);
    list_push_back(&d->queue, &lk->queue);
    list_push_back(&d->pending, &lk->age);
    d->n_pending++;
    d->zones[zone].pending++;
    return lk;
}

/* Ports aside. */
static bool same_host(const struct sockaddr_storage *a, const struct sockaddr *b)
{
    if (a->ss_family != b->sa_family)
        return false;
    if (a->ss_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                      &((const struct sockaddr_in *)b)->sin_addr, 4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

struct dns_query *dns_lookup(struct dns *d, const char *name,
                             void (*fn)(void *, const struct dns_answer *), void *arg)
{
    struct dns_query *q = xcalloc(1, sizeof *q);
    q->fn = fn;
    q->arg = arg;
    struct dns_result *r = known(d, name);
    struct lookup *lk = r ? NULL : find_or_start(d, name);
    if (lk) {
        list_push_back(&lk->waiters, &q->link);
        ask(d);
        arm_deadline(d);
        return q;
    }
    if (!r)
        r = no_answer("too many lookups under way");
    answer_query(d, q, r);
    dns_result_unref(r);
    return q;
}

void dns_prefer(struct dns *d, const char *name, const struct sockaddr *winner)
{
    struct dns_result *r = dnscache_get(d->cache, name, loop_now_ns(d->loop));
    if (r == NULL)
        return;
    struct sockaddr_storage *v = r->answer.addr;
    for (unsigned i = 1; i < r->answer.n; i++) {
        if (!same_host(&v[i], winner))
            continue;
        struct sockaddr_storage first = v[i];
        memmove(&v[1], &v[0], i * sizeof *v);
        v[0] = first;
        return;
    }
}

void dns_cancel(struct dns_query *q)
{
    list_remove(&q->link);
    if (q->result)
        dns_result_unref(q->result);
    free(q);
}

/* --- life --- */

struct dns *dns_new(struct loop *l, int64_t timeout_ns, struct err *err)
{
    struct dns *d = xcalloc(1, sizeof *d);
    d->loop = l;
    d->timeout_ns = timeout_ns;
    list_init(&d->sockets);
    list_init(&d->pending);
    list_init(&d->queue);
    list_init(&d->ready);
    for (size_t i = 0; i < NAME_BUCKETS; i++)
        list_init(&d->buckets[i]);
    char lookups[] = "fb";
    struct ares_options options = {.timeout = (int)(timeout_ns / NS_PER_MS / TRIES_PER_TIMEOUT) + 1,
                                   .tries = TRIES,
                                   .lookups = lookups,
                                   .sock_state_cb = on_socket_state,
                                   .sock_state_cb_data = d};
    int rc = ares_library_init(ARES_LIB_INIT_ALL);
    if (rc == ARES_SUCCESS) {
        rc = ares_init_options(&d->channel, &options,
                               ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                                   ARES_OPT_SOCK_STATE_CB);
        if (rc != ARES_SUCCESS)
            ares_library_cleanup();
    }
    if (rc != ARES_SUCCESS || getrandom(&d->key, sizeof d->key, 0) != (ssize_t)sizeof d->key) {
        err_set(err, "cannot set up name lookups: %s", ares_strerror(rc));
        free(d);
        return NULL;
    }
    loop_timer_init(&d->retry, l, on_retry, d);
    loop_timer_init(&d->deadline, l, on_deadline, d);
    d->cache = dnscache_new(d->key, MAX_CACHED);
    return d;
}

bool dns_use_servers(struct dns *d, const char *csv)
{
    return ares_set_servers_ports_csv(d->channel, csv) == ARES_SUCCESS;
}

static void drop_queries(struct list *head)
{
    struct list *next;
    for (struct list *i = head->next; i != head; i = next) {
        next = i->next;
        dns_cancel(list_entry(i, struct dns_query, link));
    }
    list_init(head);
}

void dns_free(struct dns *d)
{
    if (!d)
        return;
    while (!list_empty(&d->pending)) {
        struct lookup *lk = list_entry(d->pending.next, struct lookup, age);
        drop_queries(&lk->waiters);
        give_up(lk);
    }
    drop_queries(&d->ready);
    ares_destroy(d->channel);
    ares_library_cleanup();
    dnscache_free(d->cache);
    loop_timer_fini(&d->retry);
    loop_timer_fini(&d->deadline);
    loop_defer(d->loop, free, d); /* a delivery may be on its way */
}
