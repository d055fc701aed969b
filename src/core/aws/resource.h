/* The resource that a request works on: table, bucket, queue, stream, topic, function
 * (resources.def). For keys and labels only: nothing is decided by it. */
#ifndef RETRYD_CORE_AWS_RESOURCE_H
#define RETRYD_CORE_AWS_RESOURCE_H

#include "core/aws/aws.h"

/* Whether the body may have to be read to know. */
bool resource_in_body(const struct aws_target *t);

/* Its short name, of token characters, on the arena: "orders" for an ARN, a URL or a plain name.
 * Empty when there is none, or it does not stand in body_prefix. */
struct slice resource_read(const struct http_req *req, const struct aws_target *t,
                           struct slice host, struct slice path_query, struct slice body_prefix,
                           struct arena *a);

#endif
