/* The limiter of adaptive mode, clause by clause of retry-semantics 9.
 *
 * Invariants of a begun limiter: fill_rate and cap within limiter_floor and limiter_max_cap,
 * throttled_ns <= refilled_ns once refilled, enabled implies refilled. */
#include "core/retry/limiter.h"

#include "core/base/units.h"
#include <math.h>

#define SMOOTH 0.8
#define RATE_CEILING 2.0 /* times the measured rate */
#define BUCKETS_PER_S 2  /* of the rate clock */

const struct limiter_floor limiter_floor = {.fill_rate = 0.5, .max_cap = 1.0};

enum { TX_COUNT_MAX = (1 << 29) - 1 };

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

double limiter_max_cap(const struct limiter *l, const struct limiter_floor *floor)
{
    return larger(l->fill_rate, floor->max_cap);
}

void limiter_begin(struct limiter *l, int64_t now_ns)
{
    *l = (struct limiter){
        .fill_rate = limiter_floor.fill_rate,
        .throttled_ns = now_ns,
        .tx_bucket = (uint32_t)(now_ns / NS_PER_S * BUCKETS_PER_S),
        .begun = true,
    };
}

void limiter_measure(struct limiter *l, int64_t now_ns)
{
    uint32_t n = (uint32_t)(now_ns / (NS_PER_S / BUCKETS_PER_S));
    if (l->tx_count < TX_COUNT_MAX)
        l->tx_count++;
    if (n <= l->tx_bucket)
        return;
    double width_s = (double)(n - l->tx_bucket) / BUCKETS_PER_S;
    l->tx = SMOOTH * (double)l->tx_count / width_s + (1.0 - SMOOTH) * l->tx;
    l->tx_count = 0;
    l->tx_bucket = n;
}

double limiter_window_s(double last_max)
{
    return cbrt(last_max * (1.0 - LIMITER_BETA) / LIMITER_SCALE);
}

double limiter_cubic(const struct limiter *l, int64_t now_ns)
{
    double x = seconds(now_ns - l->throttled_ns) - limiter_window_s(l->last_max);
    return LIMITER_SCALE * x * x * x + l->last_max;
}

double limiter_reduce(struct limiter *l, double rate, int64_t now_ns)
{
    l->last_max = rate;
    l->throttled_ns = now_ns;
    l->enabled = true;
    return LIMITER_BETA * rate;
}

double limiter_new_rate(struct limiter *l, bool throttled, int64_t now_ns)
{
    limiter_measure(l, now_ns);
    if (!throttled)
        return limiter_cubic(l, now_ns);
    return limiter_reduce(l, l->enabled ? smaller(l->tx, l->fill_rate) : l->tx, now_ns);
}

/* The first refill only sets the time. */
static void refill(struct limiter *l, const struct limiter_floor *floor, int64_t now_ns)
{
    if (l->refilled)
        l->cap = smaller(limiter_max_cap(l, floor),
                         l->cap + seconds(now_ns - l->refilled_ns) * l->fill_rate);
    l->refilled_ns = now_ns;
    l->refilled = true;
}

int64_t limiter_take(struct limiter *l, double n, const struct limiter_floor *floor, int64_t now_ns)
{
    const double wait_max_ns = 1e18; /* for a conversion that cannot overflow */
    refill(l, floor, now_ns);
    double wait_ns = (n - l->cap) / l->fill_rate * 1e9;
    /* A wait too short for a timer is none: what is missing is a rounding error (9.2). */
    if (wait_ns < 1.0) {
        l->cap = larger(l->cap - n, 0.0);
        return 0;
    }
    /* Up to the next nanosecond, so that the tokens are there when the wait is over. */
    return (int64_t)ceil(smaller(wait_ns, wait_max_ns));
}

void limiter_set_rate(struct limiter *l, double rate, const struct limiter_floor *floor,
                      int64_t now_ns)
{
    refill(l, floor, now_ns); /* at the old rate */
    l->fill_rate = larger(rate, floor->fill_rate);
    l->cap = smaller(l->cap, limiter_max_cap(l, floor));
}

bool limiter_step(const struct limiter *old, enum limiter_event event, int64_t now_ns,
                  struct limiter *next, int64_t *wait_ns)
{
    *next = *old;
    *wait_ns = 0;
    if (!next->begun)
        limiter_begin(next, now_ns);
    /* Those who share a limiter read the clock apart from each other; it runs forward only. */
    int64_t latest_ns = next->refilled ? next->refilled_ns : next->throttled_ns;
    if (now_ns < latest_ns)
        now_ns = latest_ns;
    if (event == LIMITER_ACQUIRE) {
        if (!next->enabled)
            return !old->begun;
        *wait_ns = limiter_take(next, 1.0, &limiter_floor, now_ns);
        return *wait_ns == 0;
    }
    double rate = limiter_new_rate(next, event == LIMITER_THROTTLED, now_ns);
    limiter_set_rate(next, smaller(rate, RATE_CEILING * next->tx), &limiter_floor, now_ns);
    return true;
}

static bool within(double x, double min, double max)
{
    return x >= min && x <= max; /* not for a NaN */
}

bool limiter_is_sane(const struct limiter *l, int64_t now_ns)
{
    const double rate_max = 1e12; /* no proxy measures more */
    if (!l->begun)
        return !l->refilled && !l->enabled;
    return within(l->fill_rate, limiter_floor.fill_rate, rate_max) &&
           within(l->cap, 0.0, limiter_max_cap(l, &limiter_floor)) &&
           within(l->tx, 0.0, rate_max) && within(l->last_max, 0.0, rate_max) &&
           l->throttled_ns >= 0 && l->throttled_ns <= now_ns &&
           (l->refilled ? l->refilled_ns >= l->throttled_ns && l->refilled_ns <= now_ns
                        : !l->enabled) &&
           l->tx_bucket <= (uint64_t)now_ns / (NS_PER_S / BUCKETS_PER_S);
}
