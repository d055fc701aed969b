/* Routing: one parsed authority feeds policy, DNS, SNI, pool key, budget key and log (C5). */
#include "proxy/route.h"
#include "core/aws/resource.h"
#include "core/base/fixtext.h"
#include "core/base/num.h"
#include "proxy/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static bool in_list(const struct host_pattern *v, size_t n, struct slice host)
{
    for (size_t i = 0; i < n; i++)
        if (host_pattern_match(&v[i], host))
            return true;
    return false;
}

static bool port_in(const uint16_t *v, size_t n, uint16_t port)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == port)
            return true;
    return false;
}

static bool intercepted_name(const struct config *c, struct slice host)
{
    return in_list(c->intercept_hosts, c->n_intercept_hosts, host) ||
           (c->intercept_aws && aws_host(host));
}

bool route_host_allowed(const struct config *c, const struct listener_config *rules,
                        struct slice host)
{
    return !rules->aws_only || aws_host(host) ||
           in_list(c->intercept_hosts, c->n_intercept_hosts, host);
}

bool route_private_ok(const struct listener_config *rules, struct slice host)
{
    return rules->private_addresses == PRIVATE_ALLOW || aws_service_endpoint(host);
}

enum route_connect route_connect(const struct proxy *px, const struct listener_config *rules,
                                 const struct authority *to)
{
    const struct config *c = px->config;
    struct slice host = slice_str(to->host);
    if (!port_in(c->connect_ports, c->n_connect_ports, to->port))
        return ROUTE_REFUSE_PORT;
    if (!route_host_allowed(c, rules, host))
        return ROUTE_REFUSE_HOST;
    if (in_list(c->bypass_hosts, c->n_bypass_hosts, host) || !intercepted_name(c, host))
        return ROUTE_TUNNEL;
    return ROUTE_OPEN;
}

static void to_sockaddr(const struct authority *literal, uint16_t port,
                        struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (literal->kind == AUTHORITY_IPV4) {
        struct sockaddr_in *sin = (struct sockaddr_in *)out;
        sin->sin_family = AF_INET;
        sin->sin_port = htons(port);
        memcpy(&sin->sin_addr, literal->addr, 4);
    } else {
        struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(port);
        memcpy(&sin6->sin6_addr, literal->addr, 16);
    }
}

bool route_resolve(const struct config *c, const struct authority *to, struct sockaddr_storage *out)
{
    for (size_t i = 0; i < c->n_resolve; i++) {
        const struct resolve_override *r = &c->resolve[i];
        if ((r->port != 0 && r->port != to->port) ||
            !host_pattern_match(&r->host, slice_str(to->host)))
            continue;
        to_sockaddr(&r->to, r->to.port ? r->to.port : to->port, out);
        return true;
    }
    return false;
}

/* The Host value of an authority: the default port of the scheme is left out. */
static struct slice host_value(const struct authority *to, bool tls, struct arena *a)
{
    char text[AUTHORITY_TEXT_MAX];
    authority_text(to, text);
    size_t n = to->port == (tls ? 443 : 80) ? (size_t)(strrchr(text, ':') - text) : strlen(text);
    return arena_copy(a, slice_of(text, n));
}

/* Where the request wants to go: the CONNECT authority inside a tunnel, the absolute target
 * elsewhere. */
static bool find_origin(const struct proxy *px, const struct http_req *req,
                        const struct authority *scope, struct arena *a, struct route *out,
                        enum reply_kind *refusal, const char **why)
{
    struct target t;
    *refusal = REPLY_BAD_REQUEST;
    enum target_form form = target_parse(req->target, false, &t, why);
    if (form == TARGET_BAD || (form == TARGET_ASTERISK && req->method_id != HTTP_OPTIONS))
        return false;
    if (scope == NULL && form != TARGET_ABSOLUTE) {
        *refusal = REPLY_NOT_PROXY_REQUEST;
        return false;
    }
    out->path_query = form == TARGET_ASTERISK ? SLICE("*") : t.path_query;
    /* OPTIONS for a whole server: an absolute target without a path is sent as "*" (RFC
     * 9112 3.2.4). */
    if (form == TARGET_ABSOLUTE && req->method_id == HTTP_OPTIONS && t.no_path)
        out->path_query = SLICE("*");

    struct slice host = header_get(&req->fields, SLICE("Host"));
    struct authority named;
    if (scope != NULL) {
        out->tls = true;
        out->origin = *scope;
        *refusal = REPLY_MISDIRECTED;
        if (form == TARGET_ABSOLUTE && !authority_eq(&t.authority, scope))
            return false;
        if (host.p == NULL)
            out->host = host_value(scope, true, a);
        return host.p == NULL ||
               (authority_parse(host, 443, &named, why) && authority_eq(&named, scope));
    }
    out->tls = t.https;
    out->origin = t.authority;
    if (!port_in(px->config->http_ports, px->config->n_http_ports, out->origin.port)) {
        *refusal = REPLY_PORT;
        return false;
    }
    if (!route_host_allowed(px->config, out->from.rules, slice_str(out->origin.host))) {
        *refusal = REPLY_HOST;
        return false;
    }
    /* The target is the truth (RFC 9112 3.2.2); a Host that says the same keeps its spelling: it is
     * signed. */
    if (host.p == NULL) {
        out->host = host_value(&out->origin, t.https, a);
        return true;
    }
    if (!authority_parse(host, t.https ? 443 : 80, &named, why))
        return false;
    if (!authority_eq(&named, &out->origin))
        out->host = host_value(&out->origin, t.https, a);
    return true;
}

/* RFC 9110 7.6.2: OPTIONS with Max-Forwards 0 is answered here; else it is decremented. */
static bool max_forwards(struct http_req *req, struct arena *a)
{
    uint64_t n;
    if (req->method_id != HTTP_OPTIONS)
        return true;
    for (size_t i = 0; i < req->fields.n; i++) {
        struct header_field *f = &req->fields.v[i];
        if (!slice_eq_nocase(f->name, SLICE("Max-Forwards")) ||
            !num_u64(f->value, 9, 999999999, &n))
            continue;
        if (n == 0)
            return false;
        char digits[16];
        struct fixtext text = fixtext_in(digits, sizeof digits);
        fixtext_number(&text, n - 1);
        f->value = arena_copy(a, fixtext_slice(&text));
    }
    return true;
}

static void find_settings(const struct proxy *px, const struct http_req *req, struct route *r)
{
    const struct config *c = px->config;
    struct slice host = slice_str(r->origin.host);
    const struct request_facts facts = {
        .target = &r->target,
        .host = host,
        .method = req->method_id,
        .method_text = req->method,
        .idempotency_key = header_has(&req->fields, SLICE("Idempotency-Key")),
        .intercept_listed = in_list(c->intercept_hosts, c->n_intercept_hosts, host),
        .listener = r->from.listener,
    };
    config_effective(c, &facts, &r->effective);
}

bool route_came_through_here(const struct proxy *px, const struct http_req *req)
{
    for (size_t i = 0; i < req->fields.n; i++)
        if (slice_eq_nocase(req->fields.v[i].name, SLICE("Via")) &&
            slice_has_nocase(req->fields.v[i].value, slice_str(px->via)))
            return true;
    return false;
}

bool route_via_chain(const struct proxy *px, const struct http_req *req, char out[PARENT_VIA_MAX])
{
    char own[RELAY_VIA_MAX];
    struct slice us = relay_via(own, req->minor, slice_str(px->via));
    struct fixtext t = fixtext_in(out, PARENT_VIA_MAX);
    for (size_t i = 0; i < req->fields.n; i++) {
        if (!slice_eq_nocase(req->fields.v[i].name, SLICE("Via")))
            continue;
        if (t.n + req->fields.v[i].value.n + us.n + 4 >= PARENT_VIA_MAX)
            return false;
        fixtext_put(&t, req->fields.v[i].value);
        fixtext_put(&t, SLICE(", "));
    }
    fixtext_put(&t, us);
    return true;
}

void route_pool_key(struct route *r)
{
    char text[AUTHORITY_TEXT_MAX];
    authority_text(&r->origin, text);
    struct fixtext key = fixtext_in(r->pool_key, sizeof r->pool_key);
    fixtext_put(&key, r->tls ? SLICE("s|") : r->absolute ? SLICE("x|") : SLICE("p|"));
    fixtext_number(&key, r->way.profile); /* what was verified one way serves no other */
    fixtext_put(&key, SLICE("|"));
    /* A connection to a private address is for those who may dial there. */
    if (!route_private_ok(r->from.rules, slice_str(r->origin.host)))
        fixtext_put(&key, SLICE("!|"));
    fixtext_put(&key, slice_str(text));
    r->pool_key_n = key.n;
}

enum route_result route_request(struct proxy *px, struct http_req *req,
                                const struct route_from *from, struct arena *a, struct route *out,
                                enum reply_kind *refusal, const char **why)
{
    *out = (struct route){.budget = NULL, .from = *from};
    *why = "";
    if (req->method_id == HTTP_TRACE) {
        *refusal = REPLY_METHOD;
        return ROUTE_REFUSED;
    }
    if (route_came_through_here(px, req)) {
        *refusal = REPLY_LOOP;
        return ROUTE_REFUSED;
    }
    if (!find_origin(px, req, from->scope, a, out, refusal, why))
        return ROUTE_REFUSED;
    if (!max_forwards(req, a))
        return ROUTE_ANSWER_OPTIONS;
    struct slice host = slice_str(out->origin.host);
    ways_find(px->ways, &out->origin, &out->way);
    out->absolute = !out->tls && out->way.parent != NULL;
    route_pool_key(out);
    aws_identify(req, host, out->path_query, SLICE_NONE, a, &out->target);
    out->wire = aws_wire_of(req, &out->target);
    find_settings(px, req, out);
    route_resolve(px->config, &out->origin, &out->fixed);
    return ROUTE_FORWARD;
}

void route_identify_late(struct proxy *px, struct route *r, const struct http_req *req,
                         struct slice body_prefix, struct arena *a)
{
    aws_identify(req, slice_str(r->origin.host), r->path_query, body_prefix, a, &r->target);
    if (r->target.operation.n > 0)
        find_settings(px, req, r); /* a rule may ask for the operation */
}

/* --- the upstream client (architecture 14) --- */

/* What is known of the parts of a key. */
struct client_key {
    const struct route *route;
    struct slice resource;
    struct fixtext key, label;
};

static bool has_part(const struct config *c, enum budget_part part)
{
    for (size_t i = 0; i < c->n_budget_parts; i++) {
        if (c->budget_parts[i] == part)
            return true;
    }
    return false;
}

static bool is_form(const struct http_req *req)
{
    struct slice type = header_get(&req->fields, SLICE("Content-Type"));
    return slice_starts_nocase(type, SLICE("application/x-www-form-urlencoded"));
}

bool route_key_in_body(const struct proxy *px, const struct route *r, const struct http_req *req)
{
    const struct config *c = px->config;
    return (has_part(c, BUDGET_PART_OPERATION) && r->target.operation.n == 0 && is_form(req)) ||
           (has_part(c, BUDGET_PART_RESOURCE) && resource_in_body(&r->target));
}

/* A NUL ends each part: none has one inside. */
static void put_key(struct client_key *k, char part, struct slice value)
{
    fixtext_put(&k->key, slice_of(&part, 1));
    fixtext_put(&k->key, value);
    fixtext_put(&k->key, slice_of("", 1));
}

static void put_label(struct client_key *k, struct slice value)
{
    if (value.n == 0)
        return;
    if (k->label.n > 0)
        fixtext_put(&k->label, SLICE("/"));
    fixtext_put(&k->label, value);
}

/* People see the end of an access key id only. */
static void put_caller(struct client_key *k, struct slice key_id)
{
    put_key(k, 'k', key_id);
    put_label(k, SLICE("…"));
    if (key_id.n > 4)
        fixtext_put(&k->label, slice_of(key_id.p + key_id.n - 4, 4));
}

static void put_origin(struct client_key *k)
{
    char text[AUTHORITY_TEXT_MAX];
    authority_text(&k->route->origin, text);
    put_key(k, 'h', slice_str(text));
    put_label(k, slice_str(text));
}

static void put_part(struct client_key *k, enum budget_part part, bool is_signed)
{
    const struct aws_target *t = &k->route->target;
    switch (part) {
    case BUDGET_PART_SERVICE:
        if (is_signed) {
            put_key(k, 's', t->signing_name);
            put_label(k, t->signing_name);
        }
        break;
    case BUDGET_PART_REGION:
        if (is_signed) {
            put_key(k, 'r', t->region);
            put_label(k, t->region);
        }
        break;
    case BUDGET_PART_ACCESS_KEY:
        if (is_signed)
            put_caller(k, t->access_key);
        break;
    case BUDGET_PART_OPERATION:
        put_key(k, 'o', t->operation);
        put_label(k, t->operation);
        break;
    case BUDGET_PART_RESOURCE:
        put_key(k, 'n', k->resource);
        put_label(k, k->resource);
        break;
    case BUDGET_PART_HOST:
        if (is_signed)
            put_origin(k);
        break;
    case BUDGET_PART_PEER:
        put_key(k, 'p', k->route->from.peer);
        put_label(k, k->route->from.peer);
        break;
    case BUDGET_PART_LISTENER:
        put_key(k, 'l', k->route->from.listener);
        put_label(k, k->route->from.listener);
        break;
    }
}

/* Unsigned requests have their host and port in place of service, region and caller. */
void route_budget(struct proxy *px, struct route *r, const struct http_req *req,
                  struct slice body_prefix, struct arena *a)
{
    enum { KEY_MAX = 2048 }; /* every part at its longest */
    const struct config *c = px->config;
    char key[KEY_MAX], label[BUDGETS_LABEL_MAX + 1];
    struct client_key k = {
        .route = r, .key = fixtext_in(key, sizeof key), .label = fixtext_in(label, sizeof label)};
    bool is_signed = r->target.access_key.n > 0;
    if (has_part(c, BUDGET_PART_RESOURCE))
        k.resource = resource_read(req, &r->target, slice_str(r->origin.host), r->path_query,
                                   body_prefix, a);
    if (!is_signed)
        put_origin(&k);
    for (size_t i = 0; i < c->n_budget_parts; i++)
        put_part(&k, (enum budget_part)c->budget_parts[i], is_signed);
    r->budget = budgets_acquire(px->budgets, fixtext_slice(&k.key), fixtext_slice(&k.label),
                                loop_now_ns(px->loop));
}

void route_release(struct route *r)
{
    if (r->budget != NULL)
        budgets_release(r->budget);
    r->budget = NULL;
}
