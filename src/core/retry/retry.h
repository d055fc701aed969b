/* The vocabulary of the retry engine: what an attempt came to, which class that is, one request's
 * bookkeeping, and the port to the shared budget (spec: retry-semantics 1, 2, 7, 9).
 *
 * Pure: no clock, no randomness, no AWS names. Times are int64 nanoseconds. */
#ifndef RETRYD_CORE_RETRY_RETRY_H
#define RETRYD_CORE_RETRY_RETRY_H

#include "core/base/slice.h"
#include <stdint.h>

/* Spec 2: `success`, `none` (final), `transient`, `throttling`. */
enum retry_class {
    RETRY_SUCCESS,
    RETRY_FINAL,
    RETRY_TRANSIENT,
    RETRY_THROTTLING,
};

/* Why an attempt brought no usable response (spec 2.4). RETRY_FAIL_NONE: it brought one. */
enum retry_failure {
    RETRY_FAIL_NONE,
    RETRY_FAIL_DNS,             /* name not resolved */
    RETRY_FAIL_CONNECT_REFUSED, /* refused, unreachable */
    RETRY_FAIL_CONNECT_TIMEOUT,
    RETRY_FAIL_TLS,          /* handshake broken off */
    RETRY_FAIL_TLS_TIMEOUT,  /* handshake took too long */
    RETRY_FAIL_CERTIFICATE,  /* not trusted, or name mismatch: final */
    RETRY_FAIL_POLICY,       /* destination not allowed: final */
    RETRY_FAIL_SEND,         /* writing the request failed */
    RETRY_FAIL_RESET,        /* reset before the head was complete */
    RETRY_FAIL_CLOSED,       /* closed before the head was complete */
    RETRY_FAIL_READ_TIMEOUT, /* no head, or body stalled, in time */
    RETRY_FAIL_MALFORMED,    /* not HTTP */
    RETRY_FAIL_TRUNCATED,    /* body cut short */
    RETRY_FAIL_CHECKSUM,     /* x-amz-crc32 does not fit (spec 13.4) */
    RETRY_FAIL_OVERLOAD,     /* no connection to be had within our own limits: final */
    RETRY_FAIL_COUNT,
};

struct retry_outcome {
    enum retry_failure failure;
    unsigned status;        /* of the response; 0 with a failure before the head */
    struct slice code;      /* AWS error code, cleaned; empty: none */
    bool error_in_200;      /* S3: status 200 with root Error: counts as status 500 (spec 3.6) */
    bool has_retry_after;   /* x-amz-retry-after was present once and valid */
    int64_t retry_after_ns; /* its value */
};

/* Which rule decided, for logs and `explain` (spec 2.1). */
enum retry_rule {
    RETRY_RULE_NONE,
    RETRY_RULE_THROTTLING_CODE,
    RETRY_RULE_STATUS_429,
    RETRY_RULE_TRANSIENT_CODE,
    RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_MODELED,
    RETRY_RULE_STATUS_5XX,
    RETRY_RULE_TRANSPORT,
    RETRY_RULE_SUCCESS,
};

/* One request's bookkeeping. All-zero is a new request. */
struct retry_run {
    unsigned attempts;  /* attempts judged so far */
    unsigned last_cost; /* tokens the last retry took */
    int64_t waited_ns;  /* sum of waits of this exchange */
};

/* The port to what is shared between requests of one upstream client: a quota and a limiter. In
 * memory in tests, in shared memory in the daemon. Calls never block. Quota is kept as a debt (0 =
 * full), so that the capacity belongs to the policy. */
struct budget {
    const struct budget_ops *ops;
};

struct budget_ops {
    /* Atomic test and deduct: true iff capacity - debt >= cost; the cost is then owed (spec 7.2).
     */
    bool (*spend)(struct budget *b, unsigned cost, unsigned capacity);
    /* Gives back, never above capacity. */
    void (*refund)(struct budget *b, unsigned amount);
    /* Tokens available now. */
    unsigned (*tokens)(const struct budget *b, unsigned capacity);
    /* Adaptive: takes one send token. 0: granted; > 0: ask again after that many ns (spec 9.2). */
    int64_t (*admit)(struct budget *b, int64_t now_ns);
    /* Adaptive: an attempt got a result (spec 9.3). */
    void (*observe)(struct budget *b, bool throttled, int64_t now_ns);
};

const char *retry_class_name(enum retry_class c); /* "success", "none", "transient", "throttling" */
const char *retry_failure_name(enum retry_failure f); /* "connect_refused", … ; "" for NONE */
const char *retry_rule_name(enum retry_rule r);

#endif
