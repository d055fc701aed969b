/* The record of what was done with a request: a line per attempt, a line per request. By
 * allow-list: only what stands in these structs can get out (K2). */
#ifndef RETRYD_IO_OBS_ACCESSLOG_H
#define RETRYD_IO_OBS_ACCESSLOG_H

#include "core/base/slice.h"
#include <stdint.h>

struct access_attempt {
    uint64_t xid; /* joins the lines of one request */
    struct slice host, service, operation;
    unsigned attempt, max_attempts;
    unsigned status;     /* 0: none */
    const char *failure; /* "" or the transport failure */
    const char *detail;  /* more about a failure, or "" (never peer bytes unescaped) */
    struct slice code;
    const char *class_name, *rule, *decision; /* decision: "deliver", "retry", "penalty" */
    const char *why;
    int64_t wait_ns, took_ns;
    unsigned quota_before, quota_after;
    bool reused;    /* on a pooled connection */
    bool redialled; /* a pooled connection before it was stale: uncounted, unpaid */
};

struct access_request {
    uint64_t xid;
    struct slice method, host, service, region, operation;
    unsigned status; /* what the client got; 0: nothing */
    unsigned attempts;
    unsigned client_attempt;      /* as the client counts its own; up to 1: not told */
    const char *end;              /* "delivered", "own_error", "client_gone", "cut" */
    const char *failure, *detail; /* with "cut": what broke the origin's response off, or "" */
    const char *why;              /* why it stopped */
    int64_t took_ns, waited_ns;
    uint64_t body_in, body_out;
    struct slice client; /* its address, or user */
    struct slice user;   /* the name in its credentials for the proxy, or empty */
    struct slice key;    /* redacted caller: last 4 of the access key id, or empty */
};

void accesslog_attempt(const struct access_attempt *a);
void accesslog_request(const struct access_request *r);

/* A second sink for one process: called with each record (for `exec --summary` and the demo's
 * timeline). NULL removes it. */
struct accesslog_tap {
    void (*attempt)(void *arg, const struct access_attempt *a);
    void (*request)(void *arg, const struct access_request *r);
    void *arg;
};
void accesslog_set_tap(const struct accesslog_tap *tap);

#endif
