/* The client-side rate limiter of adaptive mode (retry-semantics 9): a measured send rate, a cubic
 * rate, and a bucket of send tokens, as one small value.
 *
 * A step makes a new value from an old one; who keeps the value decides how it is replaced.
 * All-zero is a limiter not yet created: its first event is the moment of its creation. Times are
 * int64 nanoseconds of one clock for all who share the value; a time before the last one counts as
 * that. */
#ifndef RETRYD_CORE_RETRY_LIMITER_H
#define RETRYD_CORE_RETRY_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#define LIMITER_BETA 0.7
#define LIMITER_SCALE 0.4

struct limiter {
    double fill_rate; /* tokens/s */
    double cap;       /* tokens in the bucket */
    double tx;        /* measured rate, results/s */
    double last_max;
    int64_t refilled_ns; /* means something when refilled */
    int64_t throttled_ns;
    uint32_t tx_bucket; /* of the rate clock, in half seconds */
    uint32_t tx_count : 29;
    uint32_t begun : 1;
    uint32_t refilled : 1;
    uint32_t enabled : 1; /* throttled once; from then on it holds back, for good */
};

_Static_assert(sizeof(struct limiter) == 56, "fits a cache line beside a word for its keeper");

enum limiter_event {
    LIMITER_ACQUIRE,   /* one send token is wanted */
    LIMITER_OK,        /* an attempt got a result, any but */
    LIMITER_THROTTLED, /* this one */
};

/* *next is the limiter after the event. *wait_ns: with ACQUIRE, 0 when granted, else when to ask
 * again; nothing is reserved by asking. False: keeping the old value comes to the same, so a keeper
 * need not replace it; that is so for an ACQUIRE that is refused, or granted before any throttle.
 */
bool limiter_step(const struct limiter *old, enum limiter_event event, int64_t now_ns,
                  struct limiter *next, int64_t *wait_ns);

/* The least rate, and the least size of the bucket, which else is the rate. */
struct limiter_floor {
    double fill_rate; /* tokens/s */
    double max_cap;   /* tokens */
};

/* What a step goes by. */
extern const struct limiter_floor limiter_floor;

double limiter_max_cap(const struct limiter *l, const struct limiter_floor *floor);

/* Whether steps can have led here: a value from a file is asked before it is trusted. */
bool limiter_is_sane(const struct limiter *l, int64_t now_ns);

/* --- what a step is made of --- */

/* A limiter created at now_ns. */
void limiter_begin(struct limiter *l, int64_t now_ns);
/* One more result on the rate clock. */
void limiter_measure(struct limiter *l, int64_t now_ns);
/* The cubic rate at now_ns; how long after a throttle it is back at last_max. */
double limiter_cubic(const struct limiter *l, int64_t now_ns);
double limiter_window_s(double last_max);
/* A throttle met at `rate`: the rate after it. */
double limiter_reduce(struct limiter *l, double rate, int64_t now_ns);
/* A result measured, and the rate it leads to, before bounds. */
double limiter_new_rate(struct limiter *l, bool throttled, int64_t now_ns);
/* Takes n tokens and returns 0, or takes none and returns the wait. */
int64_t limiter_take(struct limiter *l, double n, const struct limiter_floor *floor,
                     int64_t now_ns);
/* From now on. */
void limiter_set_rate(struct limiter *l, double rate, const struct limiter_floor *floor,
                      int64_t now_ns);

#endif
