/* Routing: one parsed authority feeds policy, DNS, SNI, pool key, budget key and log (C5). */
#include "proxy/route.h"
#include "core/base/fixtext.h"
#include "core/base/num.h"

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

enum route_connect route_connect(const struct proxy *px, const struct authority *to)
{
    const struct config *c = px->config;
    struct slice host = slice_str(to->host);
    if (!port_in(c->connect_ports, c->n_connect_ports, to->port))
        return ROUTE_REFUSE_PORT;
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

/* Upstream client = signing name + region + access key id; unsigned: host and port. People see the
 * same with the end of the key id only. */
static struct budget *find_budget(struct proxy *px, const struct route *r)
{
    char key_text[HTTP_HOST_MAX * 2], label_text[BUDGETS_LABEL_MAX + 1];
    struct fixtext key = fixtext_in(key_text, sizeof key_text);
    struct fixtext label = fixtext_in(label_text, sizeof label_text);
    const struct aws_target *t = &r->target;
    struct slice caller = t->access_key;
    if (caller.n > 0) {
        fixtext_put(&key, SLICE("k|"));
        fixtext_put(&key, t->signing_name);
        fixtext_put(&key, SLICE("|"));
        fixtext_put(&key, t->region);
        fixtext_put(&key, SLICE("|"));
        fixtext_put(&key, caller);
        fixtext_put(&label, t->signing_name);
        fixtext_put(&label, SLICE("/"));
        fixtext_put(&label, t->region);
        fixtext_put(&label, SLICE("/…"));
        fixtext_put(&label, caller.n > 4 ? slice_of(caller.p + caller.n - 4, 4) : SLICE_NONE);
    } else {
        fixtext_put(&key, SLICE("h|"));
        fixtext_put(&key, slice_str(r->origin.host));
        fixtext_put(&key, SLICE(":"));
        fixtext_number(&key, r->origin.port);
        fixtext_put(&label, slice_str(key_text + 2));
    }
    return budgets_acquire(px->budgets, fixtext_slice(&key), fixtext_slice(&label),
                           loop_now_ns(px->loop));
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
    };
    config_effective(c, &facts, &r->effective);
}

/* Our own pseudonym in a received Via: the request goes in circles (C9). */
static bool came_through_here(const struct proxy *px, const struct http_req *req)
{
    for (size_t i = 0; i < req->fields.n; i++)
        if (slice_eq_nocase(req->fields.v[i].name, SLICE("Via")) &&
            slice_has_nocase(req->fields.v[i].value, slice_str(px->via)))
            return true;
    return false;
}

enum route_result route_request(struct proxy *px, struct http_req *req,
                                const struct authority *scope, struct arena *a, struct route *out,
                                enum reply_kind *refusal, const char **why)
{
    *out = (struct route){.budget = NULL};
    *why = "";
    if (req->method_id == HTTP_TRACE) {
        *refusal = REPLY_METHOD;
        return ROUTE_REFUSED;
    }
    if (came_through_here(px, req)) {
        *refusal = REPLY_LOOP;
        return ROUTE_REFUSED;
    }
    if (!find_origin(px, req, scope, a, out, refusal, why))
        return ROUTE_REFUSED;
    if (!max_forwards(req, a))
        return ROUTE_ANSWER_OPTIONS;
    struct slice host = slice_str(out->origin.host);
    char text[AUTHORITY_TEXT_MAX];
    authority_text(&out->origin, text);
    struct fixtext pool_key = fixtext_in(out->pool_key, sizeof out->pool_key);
    fixtext_put(&pool_key, out->tls ? SLICE("s|") : SLICE("p|"));
    fixtext_put(&pool_key, slice_str(text));
    out->pool_key_n = pool_key.n;
    aws_identify(req, host, out->path_query, SLICE_NONE, a, &out->target);
    out->wire = aws_wire_of(req, &out->target);
    find_settings(px, req, out);
    route_resolve(px->config, &out->origin, &out->fixed);
    out->budget = find_budget(px, out);
    return ROUTE_FORWARD;
}

void route_identify_late(struct proxy *px, struct route *r, const struct http_req *req,
                         struct slice body_prefix, struct arena *a)
{
    aws_identify(req, slice_str(r->origin.host), r->path_query, body_prefix, a, &r->target);
    if (r->target.operation.n > 0)
        find_settings(px, req, r); /* a rule may ask for the operation */
}

void route_release(struct route *r)
{
    if (r->budget != NULL)
        budgets_release(r->budget);
    r->budget = NULL;
}
