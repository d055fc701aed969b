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
    RETRY_FAIL_TLS,            /* handshake broken off */
    RETRY_FAIL_TLS_TIMEOUT,    /* handshake took too long */
    RETRY_FAIL_CERTIFICATE,    /* not trusted, or name mismatch: final */
    RETRY_FAIL_POLICY,         /* destination not allowed: final */
    RETRY_FAIL_PARENT,         /* the parent proxy failed or cannot be reached */
    RETRY_FAIL_PARENT_REFUSED, /* the parent proxy said no: final */
    RETRY_FAIL_SEND,           /* writing the request failed */
    RETRY_FAIL_RESET,          /* reset before the head was complete */
    RETRY_FAIL_CLOSED,         /* closed before the head was complete */
    RETRY_FAIL_READ_TIMEOUT,   /* no head, or body stalled, in time */
    RETRY_FAIL_MALFORMED,      /* not HTTP */
    RETRY_FAIL_TRUNCATED,      /* body cut short: closed before its end */
    RETRY_FAIL_BODY_RESET,     /* connection reset within the body */
    RETRY_FAIL_CHECKSUM,       /* x-amz-crc32 does not fit (spec 13.4) */
    RETRY_FAIL_OVERLOAD,       /* no connection to be had within our own limits: final */
    RETRY_FAIL_RATE_LIMIT, /* no send token to be had in time (spec 9.2): final, nothing was sent */
    RETRY_FAIL_COUNT,
};

/* What a response had for a body where no error code was found in it. */
enum retry_body {
    RETRY_BODY_EMPTY,
    RETRY_BODY_JSON, /* a JSON object */
    RETRY_BODY_OTHER,
};

/* Retry-After, when there was one line of it and that was valid. */
enum retry_http_after {
    RETRY_HTTP_AFTER_NONE,
    RETRY_HTTP_AFTER_SECONDS,
    RETRY_HTTP_AFTER_DATE,
};

struct retry_outcome {
    enum retry_failure failure;
    unsigned status;        /* of the response; 0 with a failure before the head */
    struct slice code;      /* AWS error code, cleaned; empty: none */
    enum retry_body body;   /* matters without code */
    bool error_in_200;      /* S3: status 200 with root Error: counts as status 500 (spec 3.6) */
    bool socket_message;    /* body has RETRY_SOCKET_MESSAGE; looked for with that rule only */
    bool has_retry_after;   /* x-amz-retry-after was present once and valid */
    int64_t retry_after_ns; /* its value */
    enum retry_http_after http_after;
    int64_t http_after_ns; /* from now; a date in the past: 0 */
    int64_t date_skew_ns;  /* |Date of the response - our clock|; 0 also when unknown */
};

/* How S3 says that a request body came too slowly (legacy-modes 5). */
#define RETRY_SOCKET_MESSAGE "Your socket connection to the server"

/* The rules of classification (spec 2.1, legacy-modes): which one decided, for logs and `explain`,
 * and, in a policy, which ones are asked in which order. */
enum retry_rule {
    RETRY_RULE_NONE,            /* none matched; ends an order */
    RETRY_RULE_SUCCESS,         /* a 2xx without an error in it */
    RETRY_RULE_REFUSED,         /* retryd itself refused to connect: final in every strategy */
    RETRY_RULE_OVERRIDE,        /* the user's */
    RETRY_RULE_THROTTLING_CODE, /* general list, throttling rows */
    RETRY_RULE_STATUS_429,
    RETRY_RULE_CODE, /* general list, any row */
    RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_MODELED,
    RETRY_RULE_THROTTLING_WORD, /* code contains "throttl", in any letter case */
    RETRY_RULE_OTHER_CODE,      /* there is a code, and no rule before knew it: final */
    RETRY_RULE_SOCKET_MESSAGE,
    RETRY_RULE_TRANSPORT, /* a transport failure: transient or final, as the policy lists it */
    RETRY_RULE_STATUS,
    RETRY_RULE_BODY_STATUS,
    RETRY_RULE_CLOCK_SKEW,
};

/* One request's bookkeeping. All-zero is a new request. */
struct retry_run {
    unsigned attempts;  /* attempts judged so far */
    unsigned last_cost; /* tokens the last retry took: what a success gives back */
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
