/* Which responses are held back, and how much of them (retry-semantics 3.1, 3.5, 3.6,
 * 13.4; architecture 14).
 *
 * A code can sit in the body of anything that is not a success, redirects included (S3 answers 301
 * and 307 with an Error document). Successes are the caller's data: held only where a row of the
 * service says that a 200 may be an error, or where they are small enough to be held whole. Whether
 * one without Content-Length is small shows in time: held for a checksum, it flows from the bound
 * on, and the checksum is given up. */
#include "core/exchange/hold.h"

static const struct hold hold_none = {HOLD_NONE, 0, 0};

static bool has_body(const struct http_resp *resp, enum http_method method)
{
    if (method == HTTP_HEAD || resp->status < 200 || resp->status == 204 || resp->status == 304)
        return false;
    if (resp->framing == HTTP_BODY_LENGTH)
        return resp->content_length > 0;
    return resp->framing != HTTP_BODY_NONE;
}

static bool is_event_stream(const struct http_resp *resp)
{
    struct slice type = header_get(&resp->fields, SLICE("content-type"));
    type.n = slice_index(type, ';');
    return slice_eq_nocase(slice_trim(type), SLICE("application/vnd.amazon.eventstream"));
}

static struct hold hold_of(enum hold_kind kind, uint64_t bytes, int64_t time_ns)
{
    return bytes > 0 ? (struct hold){kind, bytes, time_ns} : hold_none;
}

struct hold hold_decide(const struct http_resp *resp, enum http_method method, bool eligible,
                        unsigned doubts, bool may_retry, const struct hold_limits *limits)
{
    if (!has_body(resp, method) || is_event_stream(resp))
        return hold_none;
    if (resp->status >= 300 && !eligible)
        return hold_none;
    if (resp->status >= 300)
        return hold_of(HOLD_ERROR, limits->error_bytes, 0);
    if (!may_retry)
        return hold_none;
    if ((doubts & HOLD_DOUBT_ROOT) && resp->status == 200)
        return hold_of(HOLD_ROOT, limits->root_bytes, limits->root_ns);
    if (resp->framing != HTTP_BODY_LENGTH)
        return doubts & HOLD_DOUBT_CHECKSUM ? hold_of(HOLD_SMALL, limits->small_bytes, 0)
                                            : hold_none;
    bool wanted = eligible || (doubts & HOLD_DOUBT_CHECKSUM);
    return wanted && resp->content_length <= limits->small_bytes
               ? hold_of(HOLD_SMALL, resp->content_length, 0)
               : hold_none;
}
