/* `retryd simulate`: vector files against the real engine, without a network (retryd-vectors(5)).
 *
 * A file is one format; a format runs one vector at a time. Nothing a file holds can crash a run:
 * what cannot be understood is SIM_BAD with a reason. */
#ifndef RETRYD_CMD_SIM_H
#define RETRYD_CMD_SIM_H

#include "core/aws/outcome.h"
#include "core/base/attr.h"
#include "core/base/err.h"
#include <jansson.h>
#include <stdio.h>

enum sim_result {
    SIM_OK,
    SIM_FAIL, /* why: step, field, expected, got */
    SIM_SKIP, /* why: what it needs that is not built */
    SIM_BAD,  /* why: what is wrong with the vector */
};

struct sim_format {
    const char *name;
    /* Whether this file of the format can be run; false with why. */
    bool (*accepts)(json_t *file, struct err *why);
    enum sim_result (*run)(json_t *vector, struct arena *a, struct err *why);
};

extern const struct sim_format sim_standard, sim_classify;

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

#endif
