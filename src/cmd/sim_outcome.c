/* From a response as received to what the engine is told about it, by the steps that the daemon
 * takes: hold what must be held, then read it for what it was held for (retry-semantics 3, 6). */
#include "cmd/sim.h"

#include "core/aws/errcode.h"
#include "core/base/units.h"
#include "core/exchange/hold.h"
#include "core/retry/backoff.h"

void sim_retry_after(const struct header_list *fields, struct retry_outcome *out)
{
    struct slice name = SLICE("x-amz-retry-after");
    out->has_retry_after =
        header_count(fields, name) == 1 &&
        backoff_parse_retry_after(header_get(fields, name), &out->retry_after_ns);
}

static struct slice read_code(const struct http_resp *resp, struct slice held, bool whole,
                              bool has_body, struct arena *a)
{
    struct errcode code;
    errcode_read(resp, held, whole, has_body, a, &code);
    return code.code;
}

void sim_outcome(const struct http_resp *resp, enum http_method method, struct slice body,
                 const struct aws_target *target, struct arena *a, struct retry_outcome *out)
{
    static const struct hold_limits limits = {
        .error_bytes = 64 * KIB, .small_bytes = 64 * KIB, .root_bytes = 256 * KIB};
    struct hold hold =
        hold_decide(resp, method, target->is_aws, target->error_in_200, true, &limits);
    bool whole = body.n <= hold.bytes;
    struct slice held = slice_of(body.p, whole ? body.n : hold.bytes);

    *out = (struct retry_outcome){.status = resp->status};
    sim_retry_after(&resp->fields, out);
    if (hold.kind == HOLD_ERROR) {
        out->code = read_code(resp, held, whole, true, a);
    } else if (hold.kind == HOLD_ROOT) {
        bool complete;
        enum xml_root root = errcode_xml_root(held, &complete);
        out->error_in_200 = root == XML_ROOT_ERROR || (whole && !complete);
        if (root == XML_ROOT_ERROR)
            out->code = read_code(resp, held, whole, true, a);
    } else if (resp->status >= 300) {
        out->code = read_code(resp, SLICE_NONE, true, false, a);
    }
}
