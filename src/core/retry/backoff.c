/* The delay formula and the clamp of the server's wish (retry-semantics 5.1, 6; security
 * requirement E4). Nothing here overflows: doubling stops at the ceiling, sums saturate. */
#include "core/retry/backoff.h"

#include "core/base/num.h"
#include "core/base/units.h"

/* How far beyond the computed backoff a server may push a retry. */
#define DIRECTED_SPAN_NS (5 * NS_PER_S)

int64_t backoff_ns(const struct retry_policy *p, enum retry_class c, unsigned retry_index, double r)
{
    int64_t ceiling = c == RETRY_THROTTLING ? p->base_throttling_ns : p->base_transient_ns;
    for (unsigned i = 0; i < retry_index && ceiling < p->max_backoff_ns; i++)
        ceiling = ceiling > p->max_backoff_ns / 2 ? p->max_backoff_ns : ceiling * 2;
    if (ceiling > p->max_backoff_ns)
        ceiling = p->max_backoff_ns;
    double t = r * (double)ceiling;
    /* Compared as doubles: a ceiling near 2^63 would not survive the way back. */
    return t >= (double)ceiling ? ceiling : (int64_t)t;
}

int64_t backoff_directed_ns(const struct retry_policy *p, const struct retry_outcome *o,
                            int64_t t_ns)
{
    if (!p->honour_retry_after || !o->has_retry_after || o->retry_after_ns <= t_ns)
        return t_ns;
    int64_t most = t_ns > INT64_MAX - DIRECTED_SPAN_NS ? INT64_MAX : t_ns + DIRECTED_SPAN_NS;
    return o->retry_after_ns < most ? o->retry_after_ns : most;
}

bool backoff_parse_retry_after(struct slice value, int64_t *out_ns)
{
    value = slice_trim(value);
    if (value.n == 0)
        return false;
    for (size_t i = 0; i < value.n; i++)
        if (!ascii_is_digit(value.p[i]))
            return false;
    while (value.n > 1 && value.p[0] == '0')
        value = slice_of(value.p + 1, value.n - 1);
    uint64_t ms;
    /* 19 digits are enough for INT64_MAX; more, or a value past it, means "very large". */
    bool fits = num_u64(value, 19, (uint64_t)(INT64_MAX / NS_PER_MS), &ms);
    *out_ns = fits ? (int64_t)ms * NS_PER_MS : INT64_MAX;
    return true;
}
