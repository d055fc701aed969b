/* Who signed a request: access key, region and service of an AWS signature (retry-semantics §4). */
#ifndef RETRYD_CORE_AWS_SCOPE_H
#define RETRYD_CORE_AWS_SCOPE_H

#include "core/http/message.h"

/* Slices on the arena; those a signature does not name are empty. */
struct scope {
    bool is_signed;
    bool presigned; /* by the query */
    struct slice access_key, region, signing_name;
};

/* query: of the request target, still encoded. Anything that does not look like a signature leaves
 * *out unsigned. */
void scope_read(const struct http_req *req, struct slice query, struct arena *a, struct scope *out);

#endif
