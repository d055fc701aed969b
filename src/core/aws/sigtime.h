/* Until when a signed request may be sent again (retry-semantics 12.2, security requirement E5): a
 * proxy cannot sign anew, and services refuse old signatures. */
#ifndef RETRYD_CORE_AWS_SIGTIME_H
#define RETRYD_CORE_AWS_SIGTIME_H

#include "core/http/message.h"
#include <stdint.h>

#define SIGTIME_NEVER INT64_MAX

/* "20250101T000000Z" to seconds since 1970; false for anything else. */
bool sigtime_parse_amz(struct slice s, int64_t *out_s);
/* IMF-fixdate ("Sun, 06 Nov 1994 08:49:37 GMT") to seconds since 1970. */
bool sigtime_parse_http(struct slice s, int64_t *out_s);

/* Wall-clock second, on the server's clock, at which the request is too old: X-Amz-Date (header or
 * query) + max_age_s, a presigned URL's X-Amz-Date + X-Amz-Expires, and `ttl` of amz-sdk-request,
 * whichever comes first. SIGTIME_NEVER when nothing bounds it. */
int64_t sigtime_deadline_s(const struct http_req *req, struct slice path_query, int64_t max_age_s);

#endif
