/* listeners[N] and origins[N]: what must hold of them, and the defaults that hang on the place of a
 * listener (security requirements I1-I3). */
#include "core/config/build.h"
#include "core/config/value.h"

#include <stdio.h>

enum { SOCKET_MODE = 0660 };

/* Nothing of a listener that stands in `listen` was set. */
static const struct origin nothing[LISTENER_ROW_COUNT];

static bool same_endpoint(const struct listen_address *x, const struct listen_address *y)
{
    if (x->path || y->path)
        return x->path && y->path && strcmp(x->path, y->path) == 0;
    return x->at.port && authority_eq(&x->at, &y->at);
}

/* 0.0.0.0 and an address at its port, [::] and one of IPv6: the kernel refuses the second. */
static bool takes_in(const struct listen_address *wide, const struct listen_address *narrow)
{
    static const unsigned char any[sizeof wide->at.addr] = {0};
    size_t n = wide->at.kind == AUTHORITY_IPV4 ? 4 : sizeof any;
    return !wide->path && !narrow->path && wide->at.kind == narrow->at.kind && wide->at.port &&
           wide->at.port == narrow->at.port && memcmp(wide->at.addr, any, n) == 0;
}

/* As it is written in the configuration. */
static char *endpoint_name(struct arena *a, const struct listen_address *e)
{
    char text[AUTHORITY_TEXT_MAX];
    if (e->path) {
        snprintf(text, sizeof text, "unix:%s", e->path);
        return arena_strdup(a, slice_str(text));
    }
    authority_text(&e->at, text);
    return arena_strdup(a, slice_str(text));
}

static void fill_in(const struct config *c, struct listener_config *l, struct arena *a)
{
    /* Behind a load balancer clients are wherever that lets them come from. */
    l->local = (l->address.path || value_is_loopback(&l->address.at)) && l->n_proxy_protocol == 0;
    if (!l->name)
        l->name = endpoint_name(a, &l->address);
    if (!listener_has(l, aws_only))
        l->aws_only = l->local ? c->aws_only : true;
    if (!listener_has(l, private_addresses))
        l->private_addresses = l->local ? c->private_addresses : PRIVATE_DENY;
    if (!listener_has(l, socket_mode))
        l->socket_mode = SOCKET_MODE;
}

/* An option that says something only about the other kind of address. */
static void check_place(struct build *b, const struct listener_config *l)
{
    bool is_unix = l->address.path != NULL;
    if (is_unix && l->n_clients > 0 && l->n_proxy_protocol == 0)
        build_complain_at(
            b, &l->from[LISTENER_ROW_clients],
            "listeners[%u].clients: peers of a unix socket have no address; give users", l->number);
    if (!is_unix && listener_has(l, socket_mode))
        build_complain_at(b, &l->from[LISTENER_ROW_socket_mode],
                          "listeners[%u].socket_mode is for unix sockets; remove it", l->number);
    if (!is_unix && l->socket_group)
        build_complain_at(b, &l->from[LISTENER_ROW_socket_group],
                          "listeners[%u].socket_group is for unix sockets; remove it", l->number);
    if (l->n_users > 0 && !l->local)
        build_complain_at(b, &l->from[LISTENER_ROW_users],
                          "listeners[%u].users: only unix sockets and loopback addresses without "
                          "proxy_protocol know the user of a client; give clients or "
                          "credentials_file",
                          l->number);
    if (l->local || l->n_clients > 0 || l->credentials_file)
        return;
    if (l->n_proxy_protocol > 0)
        build_complain_at(
            b, &l->from[LISTENER_ROW_proxy_protocol],
            "listeners[%u].proxy_protocol: with it clients come from anywhere, so the "
            "listener needs clients or credentials_file",
            l->number);
    else
        build_complain_at(b, &l->from[LISTENER_ROW_address],
                          "listeners[%u].address: %s is no loopback address, so the listener needs "
                          "clients or credentials_file",
                          l->number, l->name);
}

static void check_pair(struct build *b, const struct config_record *r, const char *list,
                       const char *certificate, const char *key, const char *names)
{
    if ((certificate == NULL) != (key == NULL))
        build_complain_at(b, &r->where, "%s[%u]: %s belong together; give both or neither", list,
                          r->number, names);
}

/* An address of `listen` comes from no record. */
static void check_endpoints(struct build *b, const struct listener_config *l,
                            const struct listener_config *o)
{
    struct arena *a = &b->config->arena;
    bool same = same_endpoint(&o->address, &l->address);
    if (!same && !takes_in(&o->address, &l->address) && !takes_in(&l->address, &o->address))
        return;
    build_complain_at(b, &l->from[LISTENER_ROW_address], "listeners[%u].address: %s %s%s%s",
                      l->number, endpoint_name(a, &l->address),
                      same ? "is listened on already" : "cannot be beside ",
                      same ? "" : endpoint_name(a, &o->address),
                      o->from == nothing ? ": take that one out of listen (listen: [] if it is the "
                                           "only one)"
                                         : "");
}

static void check_listener(struct build *b, const struct listener_config *l)
{
    const struct config *c = b->config;
    check_place(b, l);
    check_pair(b, (const struct config_record *)l, "listeners", l->tls_certificate, l->tls_key,
               "tls_certificate and tls_key");
    for (const struct listener_config *o = c->listeners; o < l; o++) {
        size_t before = b->problems->n;
        check_endpoints(b, l, o);
        if (b->problems->n == before && strcmp(o->name, l->name) == 0 &&
            (listener_has(o, name) || listener_has(l, name))) /* else: two ports to pick */
            build_complain_at(b, &l->where, "listeners[%u].name: \"%s\" is taken already",
                              l->number, l->name);
    }
}

void config_plain_listener(const struct config *c, char *name, struct listener_config *out)
{
    *out = (struct listener_config){.from = (struct origin *)nothing,
                                    .name = name,
                                    .local = true,
                                    .aws_only = c->aws_only,
                                    .private_addresses = c->private_addresses,
                                    .socket_mode = SOCKET_MODE};
}

/* Each address of `listen` is a listener without settings of its own. */
static void put_plain_first(struct config *c)
{
    size_t n = c->n_listen + c->n_listeners;
    struct listener_config *all = arena_alloc(&c->arena, n * sizeof *all);
    for (size_t i = 0; i < c->n_listen; i++)
        all[i] = (struct listener_config){.from = (struct origin *)nothing,
                                          .address = {.at = c->listen[i]}};
    if (c->n_listeners)
        memcpy(all + c->n_listen, c->listeners, c->n_listeners * sizeof *all);
    c->listeners = all;
    c->n_listeners = n;
}

void build_listeners_end(struct build *b)
{
    struct config *c = b->config;
    if (b->problems->n > 0) /* what could not be read would be called missing */
        return;
    for (size_t i = 0; i < c->n_listeners; i++) {
        if (!listener_has(&c->listeners[i], address))
            build_complain_at(b, &c->listeners[i].where, "listeners[%zu]: address is missing", i);
    }
    if (b->problems->n > 0)
        return;
    if (c->n_listen + c->n_listeners > 0)
        put_plain_first(c);
    for (size_t i = 0; i < c->n_listeners; i++)
        fill_in(c, &c->listeners[i], &c->arena);
    for (size_t i = c->n_listen; i < c->n_listeners; i++)
        check_listener(b, &c->listeners[i]);
}

void build_origins_end(struct build *b)
{
    const struct config *c = b->config;
    for (size_t i = 0; i < c->n_origins; i++) {
        const struct origin_config *o = &c->origins[i];
        if (o->n_hosts == 0 && b->problems->n == 0)
            build_complain_at(b, &o->where, "origins[%zu]: hosts is missing", i);
        check_pair(b, (const struct config_record *)o, "origins", o->client_certificate,
                   o->client_key, "client_certificate and client_key");
        if (origin_has(o, parent) && o->parent == PARENT_USE && !c->parent.given)
            build_complain_at(b, &o->from[ORIGIN_ROW_parent],
                              "origins[%zu].parent: there is no parent.url", i);
    }
}
