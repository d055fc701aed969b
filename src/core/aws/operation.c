/* Operation names, in this order: X-Amz-Target, the path of rpc-v2, Action= of the query protocol,
 * then the tables of operations.def for S3 and REST paths. A name is bounded and of token
 * characters, or there is none. */
#include "core/aws/operation.h"

#include "core/aws/plain.h"
#include "core/base/attr.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

enum s3_level {
    S3_ANY,
    S3_SERVICE,
    S3_BUCKET,
    S3_OBJECT,
};

enum {
    OP_ERROR_IN_200 = 1 << 0,
    OP_XML_IN_200 = 1 << 1,
};

struct service_text {
    struct slice service, text;
};

struct rest_op {
    struct slice service;
    enum http_method method;
    struct slice path, name;
};

struct s3_op {
    enum http_method method;
    enum s3_level level;
    struct slice query, header, name;
    unsigned flags;
};

#define LONG_POLL(service, operation)
#define REST(service, method, path, operation)
#define S3(method, level, query, header, operation, flags)
#define TARGET(service, prefix) {TEXT(service), TEXT(prefix)},
static const struct service_text targets[] = {
#include "core/aws/operations.def"
};
#undef TARGET
#undef LONG_POLL

#define TARGET(service, prefix)
#define LONG_POLL(service, operation) {TEXT(service), TEXT(operation)},
static const struct service_text long_polls[] = {
#include "core/aws/operations.def"
};
#undef LONG_POLL
#undef REST

#define LONG_POLL(service, operation)
#define REST(service, method, path, operation)                                                     \
    {TEXT(service), HTTP_##method, TEXT(path), TEXT(operation)},
static const struct rest_op rest_ops[] = {
#include "core/aws/operations.def"
};
#undef REST
#undef S3

#define REST(service, method, path, operation)
#define S3(method, level, query, header, operation, flags)                                         \
    {HTTP_##method, S3_##level, TEXT(query), TEXT(header), TEXT(operation), (flags)},
static const struct s3_op s3_ops[] = {
#include "core/aws/operations.def"
};

/* The text before the last dot of X-Amz-Target names the service, the text after it the operation.
 */
static bool split_target(const struct http_req *req, struct slice *prefix, struct slice *operation)
{
    struct slice target = header_get(&req->fields, SLICE("x-amz-target"));
    const char *dot = target.n ? memrchr(target.p, '.', target.n) : NULL;
    if (!dot)
        return false;
    *prefix = slice_of(target.p, (size_t)(dot - target.p));
    *operation = slice_of(dot + 1, target.n - prefix->n - 1);
    return true;
}

const struct aws_service *operation_refine_service(const struct http_req *req,
                                                   const struct aws_service *s)
{
    struct slice prefix, operation;
    if (!s || !split_target(req, &prefix, &operation))
        return s;
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        if (!slice_eq(targets[i].text, prefix))
            continue;
        const struct aws_service *named = aws_service_by_name(targets[i].service);
        if (slice_eq(named->signing_name, s->signing_name))
            return named;
    }
    return s;
}

/* Segment by segment; "*" is any one that is not empty. A trailing slash of the path does not
 * count. */
static bool path_fits(struct slice path, struct slice pattern)
{
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    struct slice have, want;
    bool have_done = false, want_done = false;
    while (slice_next(&pattern, '/', &want, &want_done)) {
        if (!slice_next(&path, '/', &have, &have_done))
            return false;
        if (slice_eq(want, SLICE("*")) ? have.n == 0 : !slice_eq(have, want))
            return false;
    }
    return have_done;
}

/* …/service/<Service>/operation/<Operation> */
static struct slice rpc_operation(struct slice path)
{
    struct slice last[4] = {SLICE_NONE, SLICE_NONE, SLICE_NONE, SLICE_NONE}, part;
    bool done = false;
    while (slice_next(&path, '/', &part, &done)) {
        memmove(last, last + 1, 3 * sizeof *last);
        last[3] = part;
    }
    bool fits = slice_eq(last[0], SLICE("service")) && slice_eq(last[2], SLICE("operation"));
    return fits ? last[3] : SLICE_NONE;
}

/* Is all of the body in the prefix? If not, a value at its end may be cut. */
static bool body_is_whole(const struct http_req *req, struct slice prefix)
{
    return req->framing == HTTP_BODY_LENGTH && prefix.n >= req->content_length;
}

/* The value of Action, still encoded: in the URL, else in the form. */
static struct slice query_action(const struct http_req *req, const struct operation_source *from)
{
    struct slice name = SLICE("Action"), action = query_param(from->query, name);
    if (action.p)
        return action;
    struct slice type = header_get(&req->fields, SLICE("content-type"));
    if (!slice_has_nocase(type, SLICE("x-www-form-urlencoded")))
        return SLICE_NONE;
    action = query_param(from->body_prefix, name);
    bool at_end = action.p && action.p + action.n == from->body_prefix.p + from->body_prefix.n;
    return at_end && !body_is_whole(req, from->body_prefix) ? SLICE_NONE : action;
}

static enum s3_level s3_level(struct slice path, bool bucket_in_host)
{
    struct slice rest = path.n ? slice_of(path.p + 1, path.n - 1) : path;
    if (bucket_in_host)
        return rest.n ? S3_OBJECT : S3_BUCKET;
    size_t slash = slice_index(rest, '/');
    if (slash + 1 < rest.n)
        return S3_OBJECT;
    return rest.n ? S3_BUCKET : S3_SERVICE;
}

static bool s3_query_fits(struct slice query, struct slice wanted)
{
    struct slice part;
    bool done = wanted.n == 0;
    while (slice_next(&wanted, ' ', &part, &done)) {
        if (part.p[0] == '!') {
            if (query_param(query, slice_of(part.p + 1, part.n - 1)).p)
                return false;
            continue;
        }
        size_t equals = slice_index(part, '=');
        struct slice value = query_param(query, slice_of(part.p, equals));
        if (!value.p)
            return false;
        if (equals < part.n && !slice_eq(value, slice_of(part.p + equals + 1, part.n - equals - 1)))
            return false;
    }
    return true;
}

static const struct s3_op *find_s3(const struct http_req *req, const struct operation_source *from)
{
    enum s3_level level = s3_level(from->path, from->bucket_in_host);
    for (size_t i = 0; i < ARRAY_LEN(s3_ops); i++) {
        const struct s3_op *op = &s3_ops[i];
        if (op->method == req->method_id && (op->level == S3_ANY || op->level == level) &&
            (op->header.n == 0 || header_has(&req->fields, op->header)) &&
            s3_query_fits(from->query, op->query))
            return op;
    }
    return NULL;
}

/* At an endpoint of somebody's own the bucket may stand in a host that says nothing to us: a path
 * with no more than a key then reads like one with a bucket, and its answer is the caller's data.
 */
static bool is_surely(const struct s3_op *op, const struct aws_target *t)
{
    return t->is_service_endpoint || op->level != S3_BUCKET || op->query.n > 0;
}

static struct slice find_rest(const struct http_req *req, struct slice path, struct slice service)
{
    for (size_t i = 0; i < ARRAY_LEN(rest_ops); i++) {
        const struct rest_op *op = &rest_ops[i];
        if (op->method == req->method_id && slice_eq(op->service, service) &&
            path_fits(path, op->path))
            return op->name;
    }
    return SLICE_NONE;
}

static bool is_long_poll(struct slice service, struct slice operation)
{
    for (size_t i = 0; i < ARRAY_LEN(long_polls); i++) {
        if (slice_eq(long_polls[i].service, service) && slice_eq(long_polls[i].text, operation))
            return true;
    }
    return false;
}

void operation_read(const struct http_req *req, const struct operation_source *from,
                    struct arena *a, struct aws_target *t)
{
    struct slice prefix, name = SLICE_NONE;
    char decoded[PLAIN_MAX];
    if (t->service && (t->service->quirks & AWS_QUIRK_S3)) {
        const struct s3_op *op = find_s3(req, from);
        if (op) {
            t->operation = op->name;
            t->error_in_200 = op->flags & OP_ERROR_IN_200;
            t->xml_in_200 = (op->flags & OP_XML_IN_200) && is_surely(op, t);
        }
        return;
    }
    if (!split_target(req, &prefix, &name))
        name = rpc_operation(from->path);
    if (name.n == 0)
        name = plain_decode(query_action(req, from), decoded, sizeof decoded);
    if (name.n == 0 && t->service)
        name = find_rest(req, from->path, t->service->name);
    if (!plain_name(name))
        return;
    t->operation = arena_copy(a, name);
    t->long_poll = t->service && is_long_poll(t->service->name, name);
}
