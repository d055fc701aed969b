/* The machine of one request: events in, actions out (design: architecture, "The exchange
 * machine").
 *
 * xch_step is the only place where a request changes state. It sees milestones, never body bytes:
 * those flow beside it. It owns exactly one timer. Connection and read timeouts belong to the
 * network and arrive as XEV_FAIL / XEV_BROKEN with a kind.
 *
 * state    | true in it                                         | waits for
 * NEW      | nothing asked yet                                  | START
 * ADMIT    | the limiter said wait; timer armed                 | TIMER
 * DIAL     | a connection was asked for                         | UP, FAIL
 * SEND     | head written, body running                         | SENT, HEAD, BROKEN
 * WAIT     | request fully written                              | HEAD, BROKEN
 * PEEK     | a response head is held, its body is being read    | PEEKED, BROKEN
 * BACKOFF  | nothing held, no connection; timer armed           | TIMER
 * PENALTY  | a final response is held; timer armed              | TIMER, BROKEN
 * RELAY    | the answer runs to the client                      | END, BROKEN
 * DONE     | finished                                           | -
 *
 * Invariants (asserted, and kept by a random walk in the tests): one answer and one finish per
 * exchange; nothing is dialled after the answer began; timer armed <=> ADMIT, BACKOFF, PENALTY;
 * every connection is kept or dropped exactly once; only a sending attempt can make a body
 * unreplayable. */
#ifndef RETRYD_CORE_EXCHANGE_EXCHANGE_H
#define RETRYD_CORE_EXCHANGE_EXCHANGE_H

#include "core/retry/verdict.h"

enum xch_state {
    XST_NEW,
    XST_ADMIT,
    XST_DIAL,
    XST_SEND,
    XST_WAIT,
    XST_PEEK,
    XST_BACKOFF,
    XST_PENALTY,
    XST_RELAY,
    XST_DONE,
};

enum xch_event_kind {
    XEV_START,
    XEV_TIMER,
    XEV_UP,           /* connected; .reused: from the pool */
    XEV_FAIL,         /* no connection; .failure */
    XEV_SENT,         /* the request is fully written */
    XEV_UNREPLAYABLE, /* the log gave up bytes that a retry would need */
    XEV_HEAD,         /* response head; .peek: something must be held before the judgement, else
                         .outcome complete and .whole: there is no body */
    XEV_PEEKED,       /* .outcome complete; .whole: the response is fully read */
    XEV_BROKEN,       /* the connection failed; .failure, .silent: no response byte was seen */
    XEV_END,          /* the relayed response ended well; .keep: connection fit for reuse */
    XEV_CLIENT_GONE,
};

struct xch_event {
    enum xch_event_kind kind;
    bool reused;
    bool peek;
    bool whole;
    bool silent;
    bool keep;
    struct retry_outcome outcome; /* PEEKED and HEAD without peek: complete; FAIL, BROKEN: failure,
                                     and what of status, code and retry_after had arrived before */
};

enum xch_action_kind {
    XACT_ARM,    /* start the timer: .delay_ns */
    XACT_DISARM, /* stop it */
    XACT_DIAL,   /* get a connection; .fresh: not from the pool */
    XACT_SEND,   /* write head and body from byte 0 on the connection */
    XACT_PEEK,   /* read and hold the body as `hold` says, then report PEEKED */
    XACT_KEEP, /* connection back to the pool, if the response's own head does not forbid it; a held
                  response, if any, is forgotten */
    XACT_DROP, /* close the connection; a held response, if any, is forgotten */
    XACT_LOSE, /* close the connection, what is held of the response is no longer deliverable */
    XACT_RELAY,  /* hand the held (or just arrived) response to the client */
    XACT_REPLY,  /* answer with an error of our own, for .failure */
    XACT_FINISH, /* the exchange is over, a dial under way is called off; always last */
};

struct xch_action {
    enum xch_action_kind kind;
    int64_t delay_ns;
    bool fresh;
    enum retry_failure failure;
};

enum { XCH_MAX_ACTIONS = 4 };

struct xch_acts {
    struct xch_action v[XCH_MAX_ACTIONS];
    unsigned n;
    /* Facts for the record, valid when .judged: an attempt came to an end in this step. */
    bool judged;
    struct verdict verdict;
};

/* What the world says at the moment of a judgement; asked through the environment below. */
struct xch_env {
    const struct retry_policy *policy;
    struct budget *budget;
    struct rng_source rng;
    /* Longest wait after which an attempt may still start; INT64_MAX without bound. Called at most
     * once a step. */
    int64_t (*max_delay_ns)(void *arg, int64_t now_ns);
    /* Adaptive: longest wait for a send token; 0: no bound of its own. */
    int64_t max_admission_ns;
    /* Room for one more parked request? */
    bool (*can_park)(void *arg);
    void *arg;
};

struct xch {
    enum xch_state state;
    struct xch_env env;
    struct retry_run run;
    bool admitting; /* waits for a send token, since */
    int64_t admitting_since_ns;
    bool once; /* must not be repeated once bytes of it went out */
    bool replayable;
    bool distrust;  /* the next connection is not to come from the pool */
    bool reused;    /* the present connection came from the pool */
    bool redialled; /* this attempt already had its free second connection (spec 13.1) */
    bool holding;   /* a response is held */
    bool conn;      /* a connection is owned */
    bool sent;      /* the request was written to its end on it */
    bool whole;     /* the response was read to its end from it: with `sent`, fit to be kept */
    enum retry_failure failure; /* of the last attempt, for REPLY */
};

/* replayable: false for a request that must not be repeated once bytes of it went out (RFC
 * 9110 9.2.2). A connection that could not be made sent none; a pooled one may be stale, so it
 * never gets one. */
void xch_init(struct xch *x, const struct xch_env *env, bool replayable);

/* Feeds one event; *acts is overwritten. acts->n == 0 when there is nothing to do. An event that
 * makes no sense in the state is a broken invariant, except CLIENT_GONE (any state, DONE included)
 * and SENT, UNREPLAYABLE in states where they are late news (PEEK, PENALTY, RELAY). */
void xch_step(struct xch *x, const struct xch_event *ev, int64_t now_ns, struct xch_acts *acts);

const char *xch_state_name(enum xch_state s);
const char *xch_event_name(enum xch_event_kind e);
const char *xch_action_name(enum xch_action_kind a);

#endif
