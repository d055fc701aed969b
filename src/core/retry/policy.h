/* The numbers and switches of one service in one mode: what the engine is handed (spec 5, 7, 8,
 * 10). Immutable once built; knowledge about AWS arrives as code tables. */
#ifndef RETRYD_CORE_RETRY_POLICY_H
#define RETRYD_CORE_RETRY_POLICY_H

#include "core/retry/retry.h"

enum retry_mode {
    RETRY_MODE_OFF,
    RETRY_MODE_STANDARD,
    RETRY_MODE_ADAPTIVE,
};

/* A code table: sorted by code (slice_cmp). */
struct retry_code {
    struct slice code;
    enum retry_class class;
};

struct retry_codes {
    const struct retry_code *v;
    size_t n;
};

struct retry_policy {
    enum retry_mode mode;
    unsigned max_attempts;            /* 1..100, first attempt included */
    int64_t base_transient_ns;        /* 50 ms; DynamoDB 25 ms */
    int64_t base_throttling_ns;       /* 1000 ms */
    int64_t max_backoff_ns;           /* 20 s, before jitter */
    unsigned quota_capacity;          /* 500 */
    unsigned cost_transient;          /* 14 */
    unsigned cost_throttling;         /* 5 */
    unsigned gain_first;              /* 1: first-attempt success */
    bool honour_retry_after;          /* x-amz-retry-after, clamped to [t, t + 5 s] */
    bool retry_429;                   /* 429 without a listed code is throttling */
    bool long_poll;                   /* wait before delivering when the quota refuses (spec 8) */
    struct retry_codes codes;         /* the general list */
    struct retry_codes service_codes; /* additions of the service; may be empty */
};

/* Standard mode, behaviour 2.1, a service without special rules, empty code tables. */
extern const struct retry_policy retry_policy_standard_21;

/* Binary search; NULL when absent. */
const struct retry_code *retry_codes_find(struct retry_codes t, struct slice code);

#endif
