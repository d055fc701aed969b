/* The protocol a client speaks, so that retryd's own errors reach it in a form it reads
 * (architecture §14): what the request shows first, else what the service's clients speak. */
#include "core/aws/errcode.h"

#include "core/aws/services.h"

enum aws_wire aws_wire_of(const struct http_req *req, const struct aws_target *t)
{
    struct slice type = header_get(&req->fields, SLICE("content-type"));
    enum aws_wire usual = t->service ? services_row_of(t->service)->wire : AWS_WIRE_JSON;
    if (header_has(&req->fields, SLICE("x-amz-target")))
        return AWS_WIRE_JSON;
    if (slice_has_nocase(type, SLICE("x-www-form-urlencoded")))
        return usual == AWS_WIRE_EC2 ? AWS_WIRE_EC2 : AWS_WIRE_QUERY;
    /* S3 takes objects of any type. */
    if (usual == AWS_WIRE_REST_XML)
        return usual;
    if (slice_has_nocase(type, SLICE("json")) || slice_has_nocase(type, SLICE("cbor")))
        return AWS_WIRE_JSON;
    return usual;
}
