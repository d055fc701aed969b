/* A retry strategy as data: the numbers, tables and switches of one service in one mode
 * (retry-semantics 2, 5, 7, 10; legacy-modes). The engine is handed one and knows no other.
 * Immutable once built; knowledge about AWS arrives as tables. */
#ifndef RETRYD_CORE_RETRY_POLICY_H
#define RETRYD_CORE_RETRY_POLICY_H

#include "core/retry/retry.h"

enum retry_mode {
    RETRY_MODE_OFF,
    RETRY_MODE_STANDARD,
    RETRY_MODE_ADAPTIVE, /* standard and the limiter of the budget */
    RETRY_MODE_LEGACY,   /* the strategy of one SDK, see core/aws/legacy.h */
};

/* The generations of standard and adaptive mode. */
enum retry_behaviour {
    RETRY_BEHAVIOUR_21,
    RETRY_BEHAVIOUR_20,
};

/* --- tables --- */

/* An error code and its class. Tables are sorted by code (slice_cmp). */
struct retry_code {
    struct slice code;
    enum retry_class class;
    unsigned status; /* the row holds with this status only; 0: with any */
};

struct retry_codes {
    const struct retry_code *v;
    size_t n;
};

/* Statuses from first to last and their class. Tables are sorted; ranges do not overlap. */
struct retry_status {
    unsigned first, last;
    enum retry_class class;
};

struct retry_statuses {
    const struct retry_status *v;
    size_t n;
};

/* A set of enum retry_failure. */
#define RETRY_FAILURE(kind) (UINT32_C(1) << (kind))

/* What the user's own rules say of failed attempts; beats the order of rules. RETRY_FINAL: never
 * retried, which wins when code and status disagree. Else the code decides before the status. */
struct retry_override {
    struct retry_codes codes;
    struct retry_statuses statuses;
};

/* Retries that help only if the request is signed again, with a corrected clock. */
struct retry_skew {
    struct retry_codes certain; /* retried by code alone */
    /* retried when the response's Date is at least min_ns away from our clock */
    struct retry_codes possible;
    struct retry_statuses statuses;
    int64_t min_ns;
    bool at_once; /* without a wait */
};

/* --- kinds --- */

/* From ceiling and random fraction r in [0, 1) to a wait. */
enum retry_jitter {
    RETRY_JITTER_NONE,        /* ceiling */
    RETRY_JITTER_FULL,        /* r * ceiling */
    RETRY_JITTER_EQUAL,       /* ceiling / 2 + r * ceiling / 2 */
    RETRY_JITTER_RANDOM_BASE, /* r * base * 2^i: full jitter, but the cap comes after it */
};

/* Which wish of the server is heard, and how far. */
enum retry_after_kind {
    RETRY_AFTER_NONE,
    RETRY_AFTER_AMZ_MS,       /* x-amz-retry-after, clamped to [t, t + 5 s] */
    RETRY_AFTER_HTTP_SECONDS, /* Retry-After in seconds: max(t, that); a date is ignored */
    RETRY_AFTER_HTTP_ANY,     /* Retry-After, both forms: max(t, min(that, max_backoff_ns)) */
};

enum retry_quota {
    RETRY_QUOTA_NONE,     /* the budget is not touched */
    RETRY_QUOTA_STANDARD, /* success: first gain_first, else the last cost (7.2) */
    RETRY_QUOTA_JAVA,     /* success: max(gain_first, last cost) */
    RETRY_QUOTA_JAVA_V1,  /* as JAVA; a retry that cost nothing leaves the last cost as it was, and
                             a throttled request that ends unretried gives that back too */
};

/* Whose x-amz-crc32 counts. A mismatch elsewhere is as none. */
enum retry_crc32 {
    RETRY_CRC32_NONE,
    RETRY_CRC32_SUCCESS, /* a 2xx */
    RETRY_CRC32_ANY,
};

/* --- the strategy --- */

struct retry_policy {
    enum retry_mode mode;
    enum retry_behaviour behaviour; /* which one the numbers came from, for people */
    unsigned max_attempts;          /* 1..100, first attempt included */

    /* Waits: ceiling min(base * 2^i, max_backoff) before retry i = 0, 1, … of the request, the base
     * by the class of the latest failure; the first no_wait_first retries wait 0. */
    int64_t base_transient_ns;
    int64_t base_throttling_ns;
    enum retry_jitter jitter_transient;
    enum retry_jitter jitter_throttling;
    int64_t max_backoff_ns; /* INT64_MAX: no cap */
    unsigned no_wait_first;
    enum retry_after_kind retry_after;
    bool long_poll; /* wait before delivering when the quota refuses (8) */

    enum retry_quota quota;
    unsigned quota_capacity;
    unsigned cost_transient;
    unsigned cost_timeout; /* connect, handshake and read timeouts */
    unsigned cost_throttling;
    unsigned gain_first; /* first-attempt success */

    /* Classification of what is no success: the rules in their order, first match decides; ends
     * with RETRY_RULE_NONE. What a rule matches is in the fields below. */
    const enum retry_rule *order;
    const struct retry_override *override; /* before all of them; NULL: none */
    struct retry_codes codes;              /* the general list */
    struct retry_codes service_codes;      /* additions of the service */
    struct retry_codes modeled_codes;      /* retryable by the model of the service (2.5) */
    struct retry_statuses statuses;
    struct retry_statuses body_statuses; /* of responses whose body is one of bodies */
    unsigned bodies;                     /* set of 1 << enum retry_body */
    uint32_t failures;                   /* set of transport failures that are transient */
    bool retry_429;                      /* rule STATUS_429 is on */
    enum retry_crc32 crc32;
    const struct retry_skew *skew; /* for rule CLOCK_SKEW */
    bool clock_skew;               /* that rule is on; off by default: a proxy cannot sign */

    bool fresh_after_transient; /* a transient response costs its connection (13.1) */
};

/* Standard mode, behaviours 2.1 and 2.0: a service without special rules, empty code tables. */
extern const struct retry_policy retry_policy_standard_21;
extern const struct retry_policy retry_policy_standard_20;
/* For hosts outside AWS, and idempotent requests only: connect failures, 429, 502, 503, 504, broken
 * connections; Retry-After in both forms. */
extern const struct retry_policy retry_policy_generic;

/* The same service in behaviour 2.0: numbers of retry_policy_standard_20, tables of p. */
struct retry_policy retry_policy_as_20(const struct retry_policy *p);

/* Binary search; NULL when absent. */
const struct retry_code *retry_codes_find(struct retry_codes t, struct slice code);
const struct retry_status *retry_statuses_find(struct retry_statuses t, unsigned status);

#endif
