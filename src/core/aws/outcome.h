/* From a response, as far as it is held, to what the retry engine is told about it (retry-semantics
 * §3, §6, §13.4; legacy-modes §9). The one reading that the proxy acts on and that `simulate` and
 * `explain` show. */
#ifndef RETRYD_CORE_AWS_OUTCOME_H
#define RETRYD_CORE_AWS_OUTCOME_H

#include "core/aws/aws.h"
#include "core/aws/errcode.h"

struct aws_response {
    const struct http_resp *head;
    struct slice held; /* body bytes as transferred; none where nothing had to be held */
    bool whole;        /* held is the whole body */
    int64_t now_s;     /* our clock, seconds since 1970; 0: unknown, then no date is compared */
};

struct aws_reading {
    struct retry_outcome outcome;
    struct errcode error; /* outcome.code, where it was found, and the wire protocol */
};

/* Is a 200 held for its root element (§3.6)? */
bool aws_error_in_200(const struct aws_target *t, const struct aws_options *o);
/* Is the response held whole for its checksum (§13.4)? */
bool aws_checksummed(const struct http_resp *resp, const struct aws_target *t,
                     const struct aws_options *o);

/* The code is on the arena. */
void aws_outcome(const struct aws_response *r, const struct aws_target *t,
                 const struct aws_options *o, struct arena *a, struct aws_reading *out);

/* x-amz-retry-after and Retry-After: a header counts when it stands there once and is valid (§6).
 * A date is taken relative to the server's own Date, else to now_s. */
void aws_retry_after(const struct header_list *fields, int64_t now_s, struct retry_outcome *out);

#endif
