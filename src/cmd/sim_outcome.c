/* From a response as received to what the engine is told about it, by the steps that the daemon
 * takes: hold what must be held, then read it (retry-semantics 3, 6). */
#include "cmd/sim.h"

#include "core/base/units.h"
#include "core/exchange/hold.h"

void sim_retry_after(const struct header_list *fields, struct retry_outcome *out)
{
    aws_retry_after(fields, 0, out);
}

void sim_outcome(const struct http_resp *resp, enum http_method method, struct slice body,
                 const struct aws_target *target, const struct aws_options *options,
                 struct arena *a, struct aws_reading *out)
{
    static const struct hold_limits limits = {
        .error_bytes = 64 * KIB, .small_bytes = 64 * KIB, .root_bytes = 256 * KIB};
    unsigned doubts = (aws_error_in_200(target, options) ? HOLD_DOUBT_ROOT : 0) |
                      (aws_checksummed(resp, target, options) ? HOLD_DOUBT_CHECKSUM : 0);
    struct hold hold = hold_decide(resp, method, target->is_aws, doubts, true, &limits);
    struct aws_response r = {
        .head = resp,
        .held = slice_of(body.p, body.n < hold.bytes ? body.n : hold.bytes),
        .whole = hold.kind == HOLD_NONE ? resp->framing == HTTP_BODY_NONE : body.n <= hold.bytes,
    };
    aws_outcome(&r, target, options, a, out);
}
