/* Which operation a request calls (retry-semantics §4, §3.6, §8; tables in operations.def). */
#ifndef RETRYD_CORE_AWS_OPERATION_H
#define RETRYD_CORE_AWS_OPERATION_H

#include "core/aws/aws.h"

/* Where to look, besides the head. */
struct operation_source {
    struct slice path, query; /* as in the request target */
    struct slice body_prefix; /* first bytes of the body */
    bool bucket_in_host;      /* S3 virtual-host style */
};

/* Fills operation, long_poll, error_in_200 and xml_in_200 of a target whose service is known (or
 * NULL). */
void operation_read(const struct http_req *req, const struct operation_source *from,
                    struct arena *a, struct aws_target *t);

/* A service of the same signing name that the prefix of X-Amz-Target names; else s. */
const struct aws_service *operation_refine_service(const struct http_req *req,
                                                   const struct aws_service *s);

#endif
