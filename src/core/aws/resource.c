/* One table, searched by service. */
#include "core/aws/resource.h"

#include "core/aws/endpoint.h"
#include "core/aws/jsonprefix.h"
#include "core/aws/plain.h"
#include "core/base/attr.h"

enum place {
    PLACE_MEMBER,
    PLACE_PARAM,
    PLACE_SEGMENT,
    PLACE_BUCKET,
};

static const struct row {
    const char *service;
    enum place place;
    const char *name;
} rows[] = {
#define RESOURCE(service, place, name) {service, PLACE_##place, name},
#include "core/aws/resources.def"
};

/* What may be looked at. */
struct source {
    const struct http_req *req;
    struct slice host, path, query, body;
    struct arena *arena;
};

static bool is_form(const struct http_req *req)
{
    struct slice type = header_get(&req->fields, SLICE("content-type"));
    return slice_has_nocase(type, SLICE("x-www-form-urlencoded"));
}

static struct slice member(const struct source *s, const char *name)
{
    struct slice raw;
    if (!jsonprefix_depth_ok(s->body) || !jsonprefix_strings(s->body, &name, 1, &raw))
        return SLICE_NONE;
    return jsonprefix_decode(raw, s->arena);
}

static struct slice decoded(const struct source *s, struct slice text)
{
    char buf[2 * PLAIN_MAX];
    return arena_copy(s->arena, plain_decode(text, buf, sizeof buf));
}

static struct slice param(const struct source *s, const char *name)
{
    struct slice value = query_param(s->query, slice_str(name));
    if (!value.p && is_form(s->req)) {
        value = query_param(s->body, slice_str(name));
        /* At the end of a prefix it may be cut. */
        if (value.p && value.p + value.n == s->body.p + s->body.n &&
            !(s->req->framing == HTTP_BODY_LENGTH && s->body.n >= s->req->content_length))
            return SLICE_NONE;
    }
    return decoded(s, value);
}

static struct slice segment(const struct source *s, struct slice pattern)
{
    struct slice path = s->path, have, want, found = SLICE_NONE;
    bool have_done = false, want_done = false;
    while (slice_next(&pattern, '/', &want, &want_done)) {
        if (!slice_next(&path, '/', &have, &have_done))
            return SLICE_NONE;
        if (slice_eq(want, SLICE("{}")))
            found = have;
        else if (slice_eq(want, SLICE("*")) ? have.n == 0 : !slice_eq(have, want))
            return SLICE_NONE;
    }
    return have_done ? decoded(s, found) : SLICE_NONE;
}

/* Virtual-host style: what stands before ".s3" in the host; else the first segment. */
static struct slice bucket(const struct source *s)
{
    struct endpoint e;
    endpoint_read(s->host, &e);
    if (!e.resource_in_host) {
        struct slice rest = s->path.n ? slice_of(s->path.p + 1, s->path.n - 1) : s->path;
        return decoded(s, slice_of(rest.p, slice_index(rest, '/')));
    }
    for (size_t i = 0; i + 3 < s->host.n; i++) {
        if (slice_starts(slice_of(s->host.p + i, s->host.n - i), SLICE(".s3")))
            return slice_of(s->host.p, i);
    }
    return SLICE_NONE;
}

static struct slice look(const struct source *s, const struct row *r)
{
    switch (r->place) {
    case PLACE_MEMBER:
        return member(s, r->name);
    case PLACE_PARAM:
        return param(s, r->name);
    case PLACE_SEGMENT:
        return segment(s, slice_str(r->name));
    case PLACE_BUCKET:
        return bucket(s);
    }
    return SLICE_NONE;
}

static struct slice after(struct slice s, size_t at)
{
    return at < s.n ? slice_of(s.p + at + 1, s.n - at - 1) : s;
}

/* "arn:aws:kinesis:eu-west-1:1:stream/orders", "https://sqs…/1/orders", "orders:live" -> "orders"
 */
static struct slice short_name(struct slice s)
{
    if (slice_starts(s, SLICE("arn:"))) {
        for (int i = 0; i < 5; i++)
            s = after(s, slice_index(s, ':'));
        size_t slash = slice_index(s, '/'), colon = slice_index(s, ':');
        s = after(s, slash < colon ? slash : colon);
    } else if (slice_starts(s, SLICE("http://")) || slice_starts(s, SLICE("https://"))) {
        struct slice rest = s;
        bool done = false;
        while (slice_next(&rest, '/', &s, &done))
            ;
    }
    s = slice_of(s.p, slice_index(s, ':'));
    return slice_of(s.p, slice_index(s, '/'));
}

static bool is_for(const struct row *r, const struct aws_target *t)
{
    return t->service && slice_eq(slice_str(r->service), t->service->name);
}

bool resource_in_body(const struct aws_target *t)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (is_for(&rows[i], t) && (rows[i].place == PLACE_MEMBER || rows[i].place == PLACE_PARAM))
            return true;
    }
    return false;
}

struct slice resource_read(const struct http_req *req, const struct aws_target *t,
                           struct slice host, struct slice path_query, struct slice body_prefix,
                           struct arena *a)
{
    const struct source s = {.req = req,
                             .host = host,
                             .path = target_path(path_query),
                             .query = target_query(path_query),
                             .body = body_prefix,
                             .arena = a};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!is_for(&rows[i], t))
            continue;
        struct slice name = short_name(look(&s, &rows[i]));
        if (plain_name(name))
            return arena_copy(a, name);
    }
    return SLICE_NONE;
}
