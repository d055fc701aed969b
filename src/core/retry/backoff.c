/* The delay formulae and the bounds of the server's wish (retry-semantics 5.1, 6; legacy-modes;
 * security requirement E4). Nothing here overflows: doubling stops at the ceiling, sums saturate.
 *
 * The cap comes before the jitter, except where the base itself is random: r * base * 2^i is then
 * what is capped, which is the one difference between full jitter and a random base. */
#include "core/retry/backoff.h"

#include "core/base/num.h"
#include "core/base/units.h"

/* How far beyond the computed backoff x-amz-retry-after may push a retry. */
#define DIRECTED_SPAN_NS (5 * NS_PER_S)

/* base * 2^i, but no more than most. */
static int64_t doubled(int64_t base_ns, unsigned i, int64_t most_ns)
{
    int64_t t = base_ns;
    for (; i > 0 && t > 0 && t < most_ns; i--)
        t = t > most_ns / 2 ? most_ns : t * 2;
    return t < most_ns ? t : most_ns;
}

/* r * of, rounded down. Compared as doubles: a value near 2^63 would not survive the way back. */
static int64_t scaled(double r, int64_t of_ns)
{
    double t = r * (double)of_ns;
    return t >= (double)of_ns ? of_ns : (int64_t)t;
}

int64_t backoff_ns(const struct retry_policy *p, enum retry_class c, unsigned retry_index, double r)
{
    bool throttling = c == RETRY_THROTTLING;
    int64_t base = throttling ? p->base_throttling_ns : p->base_transient_ns;
    int64_t cap = p->max_backoff_ns, t;
    if (retry_index < p->no_wait_first)
        return 0;
    switch (throttling ? p->jitter_throttling : p->jitter_transient) {
    case RETRY_JITTER_FULL:
        return scaled(r, doubled(base, retry_index, cap));
    case RETRY_JITTER_EQUAL:
        t = doubled(base, retry_index, cap);
        return t - t / 2 + scaled(r, t / 2);
    case RETRY_JITTER_RANDOM_BASE:
        t = scaled(r, doubled(base, retry_index, INT64_MAX));
        return t < cap ? t : cap;
    case RETRY_JITTER_NONE:
        break;
    }
    return doubled(base, retry_index, cap);
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t backoff_directed_ns(const struct retry_policy *p, const struct retry_outcome *o,
                            int64_t t_ns)
{
    int64_t most = t_ns > INT64_MAX - DIRECTED_SPAN_NS ? INT64_MAX : t_ns + DIRECTED_SPAN_NS;
    switch (p->retry_after) {
    case RETRY_AFTER_AMZ_MS:
        return o->has_retry_after ? max_ns(t_ns, min_ns(o->retry_after_ns, most)) : t_ns;
    case RETRY_AFTER_HTTP_SECONDS:
        return o->http_after == RETRY_HTTP_AFTER_SECONDS ? max_ns(t_ns, o->http_after_ns) : t_ns;
    case RETRY_AFTER_HTTP_ANY:
        return o->http_after != RETRY_HTTP_AFTER_NONE
                   ? max_ns(t_ns, min_ns(o->http_after_ns, p->max_backoff_ns))
                   : t_ns;
    case RETRY_AFTER_NONE:
        break;
    }
    return t_ns;
}

static bool parse_digits(struct slice value, int64_t unit_ns, int64_t *out_ns)
{
    value = slice_trim(value);
    if (value.n == 0)
        return false;
    for (size_t i = 0; i < value.n; i++)
        if (!ascii_is_digit(value.p[i]))
            return false;
    while (value.n > 1 && value.p[0] == '0')
        value = slice_of(value.p + 1, value.n - 1);
    uint64_t count;
    /* 19 digits are enough for INT64_MAX; more, or a value past it, means "very large". */
    bool fits = num_u64(value, 19, (uint64_t)(INT64_MAX / unit_ns), &count);
    *out_ns = fits ? (int64_t)count * unit_ns : INT64_MAX;
    return true;
}

bool backoff_parse_retry_after(struct slice value, int64_t *out_ns)
{
    return parse_digits(value, NS_PER_MS, out_ns);
}

bool backoff_parse_retry_seconds(struct slice value, int64_t *out_ns)
{
    return parse_digits(value, NS_PER_S, out_ns);
}
