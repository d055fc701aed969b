/* Which responses are held back before the client sees a byte, and how many bytes of them
 * (spec 3.1, 3.6; architecture 14 "Small answers first"). */
#ifndef RETRYD_CORE_EXCHANGE_HOLD_H
#define RETRYD_CORE_EXCHANGE_HOLD_H

#include "core/http/message.h"

enum hold_kind {
    HOLD_NONE,  /* deliver from the head on */
    HOLD_SMALL, /* a small 2xx: until whole, so that a cut or damaged body is retried */
    HOLD_ERROR, /* not 2xx: up to the bound, for its code */
    HOLD_ROOT, /* an S3 200 that may be an error: until the root element is known to be no Error, or
                  the document is whole; bounded in bytes and time */
};

/* Why a 200 of this request may be no success after all. */
enum hold_doubt {
    HOLD_DOUBT_ROOT = 1 << 0,     /* its root element may be Error (spec 3.6) */
    HOLD_DOUBT_CHECKSUM = 1 << 1, /* a checksum of its body stands in the head (spec 13.4) */
};

struct hold_limits {
    uint64_t error_bytes; /* 64 KiB */
    uint64_t small_bytes; /* 64 KiB; 0: never hold a 2xx */
    uint64_t root_bytes;  /* 256 KiB */
    int64_t root_ns;      /* longest hold of an S3 200: then forwarded, retry given up */
};

struct hold {
    enum hold_kind kind;
    uint64_t bytes;  /* hold at most that many body bytes */
    int64_t time_ns; /* 0: no bound of its own */
};

/* eligible: retryd acts on this exchange (an AWS host, or one that the configuration makes
 * retryable); others pass through from the head on. doubts: set of enum hold_doubt. may_retry false
 * (not replayable, attempts used up): an error still needs its code for the limiter and the log,
 * but nothing else is held. */
struct hold hold_decide(const struct http_resp *resp, enum http_method method, bool eligible,
                        unsigned doubts, bool may_retry, const struct hold_limits *limits);

#endif
