/* One worker's proxy: building it whole or not at all, and taking it down. */
#include "proxy/proxy.h"
#include "core/aws/aws.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/obs/log.h"
#include "proxy/access.h"
#include "proxy/client.h"
#include "proxy/connect.h"
#include "proxy/linger.h"
#include "proxy/tunnel.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { LEAF_CACHE_NAMES = 1024 };

/* Input must take a whole response head (128 KiB); output is paused at 256 KiB. */
static const struct conn_limits upstream_limits = {
    .in_bytes = 129 * KIB, .out_high = 256 * KIB, .out_low = 64 * KIB};

unsigned proxy_count(struct proxy *px, int change)
{
    px->n_clients += (unsigned)change;
    memtrim_count(&px->memtrim, px->n_clients);
    return px->door != NULL ? px->door->count(px->door->arg, px->n_clients) : px->n_clients;
}

static void tell_full(const struct proxy *px)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "too_many_clients");
    log_int(&l, "limit", px->config->max_clients);
    log_end(&l);
}

static void on_accept(void *arg, int fd, const struct sockaddr *peer)
{
    const struct doorway *d = arg;
    struct proxy *px = d->px;
    if (proxy_count(px, 0) >= px->config->max_clients) {
        if (access_may_tell(px))
            tell_full(px);
        close(fd);
        return;
    }
    client_new(px, d->entrance, fd, peer);
}

static void on_starved(void *arg)
{
    struct proxy *px = arg;
    pool_shed(px->pool);
}

static bool seed(struct proxy *px, struct err *err)
{
    uint64_t bytes[6];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(err, "no random numbers from the operating system");
    rng_seed(&px->rng, bytes);
    px->key = (struct hash_key){bytes[4], bytes[5]};
    return true;
}

/* The pseudonym in Via: the same for one install, saying nothing about the host. */
static void name_via(struct proxy *px)
{
    const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(ca_root(px->ca));
    const unsigned char *p = id ? ASN1_STRING_get0_data(id) : (const unsigned char *)"\0\0\0\0";
    snprintf(px->via, sizeof px->via, "%02x%02x%02x%02x.retryd", p[0], p[1], p[2], p[3]);
}

static void fill_policy(struct proxy *px)
{
    const struct config *c = px->config;
    px->allow = xcalloc(c->n_allow_addresses, sizeof *px->allow);
    for (size_t i = 0; i < c->n_allow_addresses; i++) {
        memcpy(px->allow[i].addr, c->allow_addresses[i].addr, sizeof px->allow[i].addr);
        px->allow[i].prefix = c->allow_addresses[i].prefix;
    }
    px->own = xcalloc(px->n_doorways, sizeof *px->own);
    for (size_t i = 0; i < px->n_doorways; i++)
        px->own[i] = *listener_addr(px->doorways[i].listener);
    px->dialer = (struct dialer){
        .loop = px->loop,
        .dns = px->dns,
        .policy = {.allow = px->allow,
                   .n_allow = c->n_allow_addresses,
                   .listeners = px->own,
                   .n_listeners = px->n_doorways},
        .connect_timeout_ns = c->connect_timeout_ns,
        .tls_timeout_ns = c->tls_timeout_ns,
        .limits = upstream_limits,
    };
}

static bool adopt_all(struct proxy *px, const struct proxy_parts *parts, struct err *err)
{
    px->doorways = xcalloc(parts->n_entrances, sizeof *px->doorways);
    for (size_t i = 0; i < parts->n_entrances; i++) {
        struct doorway *d = &px->doorways[i];
        *d = (struct doorway){.px = px, .entrance = &parts->entrances[i]};
        d->listener = listener_adopt(px->loop, d->entrance->fd, on_accept, d, err);
        if (d->listener == NULL)
            return false;
        if (px->door != NULL)
            listener_set_gate(d->listener, &px->door->gate);
        listener_on_starved(d->listener, on_starved, px);
        px->n_doorways++;
    }
    return true;
}

static bool build(struct proxy *px, const struct proxy_parts *parts, struct err *err)
{
    const struct config *c = px->config;
    if (!adopt_all(px, parts, err))
        return false;
    name_via(px);
    px->ways = ways_new(c, ca_root(px->ca), err);
    if (px->ways == NULL)
        return false;
    px->leafcache = leafcache_new(px->ca, LEAF_CACHE_NAMES, err);
    if (px->leafcache == NULL)
        return false;
    if (c->refusal_memory_ns > 0)
        px->refusals = refusals_new(px->key, c->refusal_memory_ns);
    px->dns = dns_new(px->loop, c->dns_timeout_ns, err);
    if (px->dns == NULL)
        return false;
    px->pool = pool_new(px->loop, px->key, c->pool_per_origin, c->pool_total, c->pool_idle_ns);
    px->slots = slots_new(px->loop, px->key, c->upstream_per_origin, c->upstream_waiters,
                          c->connect_timeout_ns);
    px->budgets = budgets_new(parts->region, parts->seat);
    fill_policy(px);
    return true;
}

static void on_drain_deadline(void *arg)
{
    struct proxy *px = arg;
    px->cutting = true;
    tunnel_close_all(px);
    struct list *l = px->clients.next;
    while (l != &px->clients) {
        struct client *c = list_entry(l, struct client, link);
        l = l->next;
        client_give_up(c);
    }
}

struct proxy *proxy_new(const struct proxy_parts *parts, struct err *err)
{
    const struct config *config = parts->config;
    struct proxy *px = xcalloc(1, sizeof *px);
    if (!seed(px, err)) {
        free(px);
        return NULL;
    }
    peers_init(&px->peers, px->key);
    px->loop = parts->loop;
    px->config = config;
    px->ca = parts->ca;
    px->door = parts->door;
    px->next_xid = parts->first_xid;
    list_init(&px->clients);
    list_init(&px->tunnels);
    admission_init(&px->admission);
    parking_init(&px->parking, config->max_parked);
    list_init(&px->lingers);
    handshakes_init(&px->handshakes, px->loop, px->config->max_handshakes, connect_start_handshake,
                    connect_cut_handshake);
    memtrim_init(&px->memtrim, px->loop);
    loop_timer_init(&px->drain_timer, px->loop, on_drain_deadline, px);
    px->replay = (struct bodylog_shared){.memory_max = config->replay_memory_total_bytes,
                                         .disk_max = config->replay_disk_total_bytes,
                                         .dir = config->replay_dir};
    if (px->replay.dir == NULL) {
        const char *tmp = getenv("TMPDIR");
        px->replay.dir = tmp != NULL && tmp[0] == '/' ? tmp : "/tmp";
    }
    if (!build(px, parts, err)) {
        proxy_free(px);
        return NULL;
    }
    return px;
}

/* After what its clients and drives deferred: they still account on it. */
static void release(void *obj)
{
    struct proxy *px = obj;
    loop_timer_fini(&px->drain_timer);
    handshakes_fini(&px->handshakes);
    refusals_free(px->refusals);
    memtrim_fini(&px->memtrim);
    ways_free(px->ways);
    free(px->doorways);
    free(px->allow);
    free(px->own);
    free(px);
}

static void close_listeners(struct proxy *px)
{
    for (size_t i = 0; i < px->n_doorways; i++)
        listener_close(px->doorways[i].listener);
    px->n_doorways = 0;
}

void proxy_free(struct proxy *px)
{
    px->on_drained = NULL;
    close_listeners(px);
    on_drain_deadline(px);
    linger_close_all(px);
    if (px->pool != NULL)
        pool_free(px->pool);
    slots_free(px->slots);
    if (px->dns != NULL)
        dns_free(px->dns);
    if (px->leafcache != NULL)
        leafcache_free(px->leafcache);
    if (px->budgets != NULL)
        budgets_free(px->budgets);
    loop_defer(px->loop, release, px);
}

static bool drained(const struct proxy *px)
{
    return px->draining && px->on_drained != NULL && list_empty(&px->clients) &&
           list_empty(&px->tunnels) && list_empty(&px->lingers);
}

/* Asked again at the end of the turn: a connection may have moved from one list to another
 * meanwhile. */
static void tell_drained(void *obj)
{
    struct proxy *px = obj;
    if (!drained(px))
        return;
    void (*fn)(void *) = px->on_drained;
    px->on_drained = NULL;
    fn(px->on_drained_arg);
}

void proxy_check_drained(struct proxy *px)
{
    if (drained(px))
        loop_defer(px->loop, tell_drained, px);
}

void proxy_drain(struct proxy *px, void (*fn)(void *arg), void *arg)
{
    px->draining = true;
    px->on_drained = fn;
    px->on_drained_arg = arg;
    close_listeners(px);
    struct list *l = px->clients.next;
    while (l != &px->clients) {
        struct client *c = list_entry(l, struct client, link);
        l = l->next;
        client_begin_drain(c);
    }
    loop_timer_arm(&px->drain_timer, px->config->drain_timeout_ns);
    proxy_check_drained(px);
}
