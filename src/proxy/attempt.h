/* One request on one upstream connection: writes head and body from a cursor at 0, reads the
 * response head, holds what must be held, relays what may go. Tells the drive milestones; decides
 * nothing about retries.
 *
 * phase   | true in it                                       | waits for
 * IDLE    | nothing                                          | -
 * DIAL    | a dial is under way, or waits for a slot         | the dial, the slot
 * READY   | connected, nothing written                       | the drive
 * HEAD    | the request runs or is written                   | response head
 * HOLD    | the response body is read into `held`            | bytes, end, bound
 * HELD    | the drive knows; nothing is read                 | the drive
 * RELAY   | the response runs to the client                  | bytes, room, end */
#ifndef RETRYD_PROXY_ATTEMPT_H
#define RETRYD_PROXY_ATTEMPT_H

#include "core/exchange/hold.h"
#include "core/http/h1_body.h"
#include "core/retry/retry.h"
#include "io/net/dial.h"
#include "io/net/slots.h"
#include "proxy/bodylog.h"

enum attempt_phase {
    ATTEMPT_IDLE,
    ATTEMPT_DIAL,
    ATTEMPT_READY,
    ATTEMPT_HEAD,
    ATTEMPT_HOLD,
    ATTEMPT_HELD,
    ATTEMPT_RELAY,
};

struct drive;

struct attempt {
    struct drive *drive;
    enum attempt_phase phase;
    struct slot slot; /* held from DIAL on, until the connection is kept or dropped */
    bool fresh;       /* what was asked for is not to come from the pool */
    struct dial *dial;
    struct conn *conn;
    bool reused;
    int64_t started_ns;
    char detail[160]; /* about a failure, for the log and the answer */

    /* request */
    struct bodycur cur;
    bool sending;            /* the body is not fully written */
    bool awaiting_continue;  /* Expect: the body waits for the upstream's word, or the timer */
    struct loop_timer timer; /* the interim answer is due; the longest hold is over */
    struct loop_timer turn;  /* the body goes on in the next turn */

    /* response */
    struct arena arena;
    struct h1_head head;
    struct http_resp resp;
    bool have_head;
    struct h1_body body;
    unsigned interim;
    struct hold hold;
    struct strbuf held;
    size_t held_counted; /* of its memory, in the total of the worker */
    bool whole;          /* the response was read to its end */
    bool saw_bytes;      /* any byte of a response arrived */
};

void attempt_init(struct attempt *at, struct drive *d);
void attempt_fini(struct attempt *at);

/* Actions of the machine. */
void attempt_dial(struct attempt *at, bool fresh);
void attempt_send(struct attempt *at);
void attempt_hold(struct attempt *at);
void attempt_relay(struct attempt *at);
void attempt_keep(struct attempt *at);
void attempt_drop(struct attempt *at);

/* The funnel: every failure of a connection passes here and gets its kind. */
void attempt_failed(struct attempt *at, enum retry_failure failure, const char *detail);

/* The client takes bytes again. */
void attempt_client_drained(struct attempt *at);

#endif
