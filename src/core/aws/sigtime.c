/* Signature age. Dates are read by position: the formats are fixed, anything else is no date. */
#include "core/aws/sigtime.h"
#include "core/aws/sdkrequest.h"
#include "core/base/attr.h"
#include "core/base/num.h"
#include "core/http/uri.h"

/* Days from 1970-01-01 to the civil date, proleptic Gregorian; years are counted from March. */
static int64_t days_from_civil(int64_t y, unsigned m, unsigned d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int64_t)doe - 719468;
}

static bool digits(struct slice s, size_t at, unsigned n, uint64_t max, uint64_t *out)
{
    return at + n <= s.n && num_u64(slice_of(s.p + at, n), n, max, out);
}

static bool to_seconds(uint64_t y, uint64_t mo, uint64_t d, uint64_t h, uint64_t mi, uint64_t s,
                       int64_t *out)
{
    if (mo < 1 || mo > 12 || d < 1 || y < 1970)
        return false;
    int64_t days = days_from_civil((int64_t)y, (unsigned)mo, (unsigned)d);
    *out = days * 86400 + (int64_t)(h * 3600 + mi * 60 + s);
    return true;
}

bool sigtime_parse_amz(struct slice s, int64_t *out_s)
{
    uint64_t y, mo, d, h, mi, sec;
    return s.n == 16 && s.p[8] == 'T' && s.p[15] == 'Z' && digits(s, 0, 4, 9999, &y) &&
           digits(s, 4, 2, 12, &mo) && digits(s, 6, 2, 31, &d) && digits(s, 9, 2, 23, &h) &&
           digits(s, 11, 2, 59, &mi) && digits(s, 13, 2, 60, &sec) &&
           to_seconds(y, mo, d, h, mi, sec, out_s);
}

bool sigtime_parse_http(struct slice s, int64_t *out_s)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    uint64_t y, d, h, mi, sec;
    if (s.n != 29 || !slice_eq(slice_of(s.p + 25, 4), SLICE(" GMT")) || !digits(s, 5, 2, 31, &d) ||
        !digits(s, 12, 4, 9999, &y) || !digits(s, 17, 2, 23, &h) || !digits(s, 20, 2, 59, &mi) ||
        !digits(s, 23, 2, 60, &sec))
        return false;
    for (unsigned m = 0; m < ARRAY_LEN(months); m++)
        if (slice_eq(slice_of(s.p + 8, 3), slice_of(months[m], 3)))
            return to_seconds(y, m + 1, d, h, mi, sec, out_s);
    return false;
}

int64_t sigtime_deadline_s(const struct http_req *req, struct slice path_query, int64_t max_age_s)
{
    enum { EXPIRES_MAX_S = 604800 }; /* seven days: the longest that SigV4 allows */
    int64_t deadline = SIGTIME_NEVER, at;
    uint64_t expires;
    struct slice query = target_query(path_query);
    if (sigtime_parse_amz(query_param(query, SLICE("X-Amz-Date")), &at)) {
        if (num_u64(query_param(query, SLICE("X-Amz-Expires")), 6, EXPIRES_MAX_S, &expires))
            deadline = at + (int64_t)expires;
        else
            deadline = at + max_age_s;
    } else if (sigtime_parse_amz(header_get(&req->fields, SLICE("x-amz-date")), &at)) {
        deadline = at + max_age_s;
    }
    if (sigtime_parse_amz(sdkrequest_part(&req->fields, SLICE("ttl")), &at) && at < deadline)
        deadline = at;
    return deadline;
}
