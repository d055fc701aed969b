/* `retryd explain`: what the program makes of one attempt, and why, for a person at night and for
 * scripts.
 *
 *   explain_args    the command line
 *   explain_input   that, or a raw file, as one case: request, and answer or failure
 *   explain_judge   the case through the engine, under the configuration: an explanation
 *   explain_words   what is said about it
 *   explain_text, explain_json   how it is laid out
 *
 * By allow-list: of the request only what stands in struct aws_target, the host and the method can
 * get out, and of the access key its end (security requirement K2). */
#ifndef RETRYD_CMD_EXPLAIN_H
#define RETRYD_CMD_EXPLAIN_H

#include "core/aws/outcome.h"
#include "core/base/err.h"
#include "core/config/config.h"
#include "core/http/uri.h"
#include "core/retry/verdict.h"
#include <stdio.h>

/* The verb, with its surroundings given. now_s: the wall clock. */
struct explain_world {
    FILE *in, *out, *err;
    int64_t now_s;
};
int explain_main(int argc, char **argv, const struct explain_world *w);

/* --- the command line --- */

struct explain_lines {
    const char **v;
    size_t n;
};

/* NULL: not given. */
struct explain_args {
    const char *host, *method, *path, *status, *body, *raw, *failure, *attempt, *listener;
    struct explain_lines headers, response_headers;
    bool json;
};

/* Takes the verb's own options out of argv, wherever they stand before a "--"; what is left, for
 * load_config(), is in *rest and ends with NULL. Both live on the arena. */
bool explain_args_read(int argc, char **argv, struct arena *a, struct explain_args *out,
                       int *rest_n, char ***rest, struct err *why);

/* --- one attempt --- */

struct explain_case {
    struct http_req req;
    struct slice path_query;
    struct slice req_body; /* as far as it is there */
    struct authority origin;
    bool plain; /* http without TLS, by an absolute target */

    bool has_response;
    struct http_resp resp;
    struct slice body; /* of the response, its framing undone */
    bool body_ended;
    enum retry_failure failure; /* before the response, or, where there is one, within its body */

    unsigned attempt;      /* 1 for the first */
    struct slice listener; /* its name; empty: any without one in the rules */
};

/* Everything on the arena. False with a line that holds no bytes of the input. */
bool explain_input(const struct explain_args *args, FILE *in, struct arena *a,
                   struct explain_case *out, struct err *why);

/* --- what comes of it --- */

/* Whether the request is retryd's business at all. */
enum explain_access {
    EXPLAIN_OPENED, /* in a tunnel that is opened */
    EXPLAIN_PLAIN,  /* http */
    EXPLAIN_UNREAD, /* in a tunnel that is passed on unread */
    EXPLAIN_PORT,   /* refused: no allowed port */
    EXPLAIN_HOST,   /* refused: aws_only */
};

/* The judgement of an attempt, were all so far like the one explained; with the shortest wait and
 * with the longest. */
struct explain_step {
    unsigned attempt;
    struct verdict least, most;
    int64_t least_ns, most_ns; /* the wait, even where it would be too long */
    unsigned gain;             /* what a success of the retry gives back */
};

enum { EXPLAIN_STEPS_MAX = 100 };

struct explanation {
    const struct explain_case *x;
    const struct config *config;
    struct request_facts facts;
    struct aws_target target;
    struct effective effective;
    enum aws_wire wire;
    enum explain_access access;
    struct aws_reading reading;
    bool under_way;     /* the failure came when the answer was already on its way to the client */
    bool too_large;     /* the request's body, to be kept for a retry */
    bool unsent;        /* nothing of the request went out */
    int64_t deadline_s; /* of the signature; SIGTIME_NEVER */
    int64_t moment_s;   /* of the judgement: Date of the response, else now */
    bool moment_is_date;
    const char *bound; /* what a retry would first be too late for */
    struct explain_step v[EXPLAIN_STEPS_MAX];
    unsigned n; /* at least 1 */
};

/* Keeps pointers into x, c and itself. */
void explain_judge(const struct explain_case *x, const struct config *c, int64_t now_s,
                   struct arena *a, struct explanation *out);

/* Nanoseconds from the judgement to the end of the signature; INT64_MAX without one. */
int64_t explain_signature_left_ns(const struct explanation *e);

/* --- words --- */

enum { EXPLAIN_LINE_MAX = 512, EXPLAIN_TIME_MAX = 32 };

/* "would be retried: throttling, wait 0..1000 ms, costs 5 of 500 tokens" */
void explain_summary(const struct explanation *e, char out[EXPLAIN_LINE_MAX]);
/* One word for that: retry, maybe, deliver, wait_and_deliver, unseen. */
const char *explain_verdict_word(const struct explanation *e);
/* Why the request may be sent again, or why not. */
bool explain_may_repeat(const struct explanation *e);
void explain_repeat(const struct explanation *e, char out[EXPLAIN_LINE_MAX]);
const char *explain_rule_words(enum retry_rule r);
/* The table that the deciding row stands in; "" where there is none. */
void explain_table(const struct explanation *e, char out[EXPLAIN_LINE_MAX]);
const char *explain_wire_name(enum aws_wire w);
bool explain_is_seen(const struct explanation *e);
const char *explain_access_words(enum explain_access a);
/* What told service and region. */
const char *explain_found_by(const struct explanation *e);
/* The end of the access key id, or empty. */
struct slice explain_caller(const struct explanation *e);
/* The wish of the server that counts, in milliseconds, and its name; false: none. */
bool explain_server_wish(const struct explanation *e, const char **name, int64_t *ms,
                         const char **how);
/* What the client gets if nothing is retried. */
void explain_answer(const struct explanation *e, char out[EXPLAIN_LINE_MAX]);
/* "2026-06-01T00:05:00Z" */
void explain_time(int64_t s, char out[EXPLAIN_TIME_MAX]);
/* A wait as whole milliseconds, rounded up: never shorter than it is. */
int64_t explain_ms(int64_t ns);
/* Whether the first retry would begin before the end of the signature: yes, maybe, no; by its
 * shortest and longest wait. */
const char *explain_in_time(const struct explanation *e);

void explain_text(const struct explanation *e, FILE *to);
void explain_json(const struct explanation *e, FILE *to);

#endif
