/* `retryd simulate`: vector files against the real engine, without a network (retryd-vectors(5)).
 *
 * A file is one format; a format runs one vector at a time. Nothing a file holds can crash a run:
 * what cannot be understood is SIM_BAD with a reason. */
#ifndef RETRYD_CMD_SIM_H
#define RETRYD_CMD_SIM_H

#include "core/aws/outcome.h"
#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/exchange/exchange.h"
#include "core/retry/membudget.h"
#include <jansson.h>
#include <stdio.h>

enum sim_result {
    SIM_OK,
    SIM_FAIL, /* why: step, field, expected, got */
    SIM_BAD,  /* why: what is wrong with the vector */
};

/* Several may have one name and accept different files. */
struct sim_format {
    const char *name;
    /* Whether this file of the format can be run; false with why. */
    bool (*accepts)(json_t *file, struct err *why);
    enum sim_result (*run)(json_t *vector, struct arena *a, struct err *why);
};

extern const struct sim_format sim_standard_21, sim_standard_20, sim_legacy, sim_classify,
    sim_adaptive;

/* The verb, with its streams given. */
int sim_main(int argc, const char *const *argv, FILE *out, FILE *err);

/* --- what the formats share --- */

/* The object's members by the format of json_unpack (jansson); with "!" at its end others are
 * refused, so that a misspelt one does not pass for absent. False with what is missing, unknown or
 * of the wrong type. */
bool sim_unpack(json_t *object, const char *what, struct err *why, const char *fmt, ...);

/* A whole number in [min, max]; *out stays as it was when j is NULL (absent). */
bool sim_number(json_t *j, const char *name, json_int_t min, json_int_t max, json_int_t *out,
                struct err *why);

/* {"name": "value" or ["line", "line"]} appended to the list; NULL: nothing to append. */
bool sim_headers(json_t *object, struct header_list *out, struct arena *a, struct err *why);

/* What the daemon makes of a response: holds, reads the code, looks into the 200s of S3. */
void sim_outcome(const struct http_resp *resp, enum http_method method, struct slice body,
                 const struct aws_target *target, const struct aws_options *options,
                 struct arena *a, struct aws_reading *out);

/* x-amz-retry-after of a response: one line, and valid, or none (retry-semantics 6). */
void sim_retry_after(const struct header_list *fields, struct retry_outcome *out);

/* --- a world without a network (sim_world.c) --- */

/* Every request is an exchange of its own: the real machine, fed with the events that a network
 * would have produced, all on one quota. Time is a number; timers fire as soon as they are armed.
 */
struct sim_world {
    struct retry_policy policy;
    double jitter; /* the random fraction, every time */
    struct membudget budget;
    struct xch_env env;
    int64_t now_ns;
};

struct sim_request {
    struct xch x;
    bool waiting; /* its next attempt is a retry */
};

/* What an attempt led to, and the answer if that was the end. */
struct sim_end {
    struct verdict verdict;
    bool relayed; /* its response is the answer; else retryd's own, for failure */
    enum retry_failure failure;
};

/* A quota with that many tokens. The world must not move afterwards. */
void sim_world_init(struct sim_world *w, const struct retry_policy *policy, double jitter,
                    unsigned tokens);

/* One attempt from its dial to its judgement, the first one of a request or the next; if nothing
 * follows, the request is led to its end. */
void sim_attempt(struct sim_world *w, struct sim_request *r, const struct retry_outcome *o,
                 struct sim_end *out);

#endif
