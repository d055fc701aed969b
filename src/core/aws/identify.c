/* Who a request is for and from (retry-semantics §4): the credential scope first, the host second.
 *
 * Invariant: every slice of the result is static or on the arena, bounded, and of token characters.
 * A request that cannot be placed has no service and the name "-". */
#include "core/aws/aws.h"

#include "core/aws/endpoint.h"
#include "core/aws/operation.h"
#include "core/aws/plain.h"
#include "core/aws/scope.h"

/* The host's row when the scope agrees with it (it may tell more: streams from tables), else the
 * row of the scope's service. X-Amz-Target has the last word among services of one signing name. */
static const struct aws_service *choose_service(const struct http_req *req,
                                                const struct endpoint *e, const struct scope *s)
{
    const struct aws_service *by_host = e->row ? &e->row->service : NULL;
    const struct aws_service *service = by_host;
    if (s->signing_name.n && !(by_host && slice_eq(by_host->signing_name, s->signing_name)))
        service = services_by_signing_name(s->signing_name);
    return operation_refine_service(req, service);
}

static struct slice name_for_logs(const struct aws_target *t, struct slice host, struct arena *a)
{
    if (t->service)
        return t->service->name;
    if (t->signing_name.n)
        return t->signing_name;
    struct slice label = slice_of(host.p, slice_index(host, '.'));
    return aws_host(host) && plain_name(label) ? arena_copy(a, label) : SLICE("-");
}

void aws_identify(const struct http_req *req, struct slice host, struct slice path_query,
                  struct slice body_prefix, struct arena *a, struct aws_target *out)
{
    struct endpoint endpoint;
    struct scope scope;
    struct operation_source from = {
        .path = target_path(path_query),
        .query = target_query(path_query),
        .body_prefix = body_prefix,
    };
    memset(out, 0, sizeof *out);
    endpoint_read(host, &endpoint);
    scope_read(req, from.query, a, &scope);

    /* Elsewhere only a whole credential scope makes a request one of AWS's: that is the consent to
     * repeat it (E2). */
    out->is_aws = endpoint.is_aws || (scope.is_signed && scope.signing_name.n > 0);
    out->is_service_endpoint = endpoint.row != NULL;
    out->service = choose_service(req, &endpoint, &scope);
    out->signing_name = scope.signing_name;
    out->service_name = name_for_logs(out, host, a);
    out->region = scope.region.n ? scope.region : arena_copy(a, endpoint.region);
    out->access_key = scope.access_key;
    out->presigned = scope.presigned;

    from.bucket_in_host = endpoint.resource_in_host;
    operation_read(req, &from, a, out);
}
