/* One exchange at work: owns the machine, the attempt and the timer; performs the machine's
 * actions, feeds it events, keeps the record. */
#ifndef RETRYD_PROXY_DRIVE_H
#define RETRYD_PROXY_DRIVE_H

#include "core/exchange/exchange.h"
#include "proxy/attempt.h"
#include "proxy/client.h"
#include "proxy/route.h"

enum { DRIVE_MAX_PENDING = 6 };

struct drive {
    struct proxy *px;
    struct client *client;
    struct xch xch;
    struct route route;
    struct admission_ticket ticket; /* for the send tokens of the route's budget */
    struct attempt attempt;
    struct loop_timer timer;
    struct strbuf head; /* the request head as every attempt sends it */

    struct xch_event pending[DRIVE_MAX_PENDING];
    unsigned n_pending;
    bool stepping;
    struct parking_place place; /* while it waits on its timer */
    bool begun;                 /* the machine was started: what it hangs on is known */
    bool looked;                /* at the body, for the operation */
    bool told_unreplayable;

    uint64_t xid;
    int64_t started_ns;
    int64_t deadline_s;        /* wall clock of the server, from the signature; SIGTIME_NEVER */
    int64_t clock_skew_s;      /* server's Date minus ours, from the last response */
    unsigned status;           /* what the client got; 0: nothing */
    const char *end;           /* how it ended, for the record */
    enum retry_failure cut_by; /* what broke the relayed response off */
    bool ended_well;           /* the client got a whole answer: its connection may go on */
    enum verdict_why why;
    bool given_up; /* by the end of a drain: that is why */
    int64_t parked_until_ns;
};

/* Copies the route. The client's request stays the client's. Begins at once, or when so much of the
 * body is there as the key of the upstream client hangs on. */
struct drive *drive_start(struct client *c, const struct route *route);

/* From the attempt. */
void drive_event(struct drive *d, const struct xch_event *ev);
bool drive_may_retry(const struct drive *d);
/* Seconds the server's clock is ahead, learnt from a Date header. */
void drive_server_date(struct drive *d, struct slice date);

/* From the client. */
/* The running attempt's place in the body; NULL when none reads it. */
const struct bodycur *drive_cursor(const struct drive *d);
void drive_body_more(struct drive *d);
void drive_client_drained(struct drive *d);
/* The client left, or sent a request body that is not one: nothing more goes to it from here. */
void drive_client_gone(struct drive *d, const char *end);

/* Waits on its timer: nothing is under way. */
bool drive_is_parked(const struct drive *d);
/* The end of a drain: answer 503 if nothing was answered, then stop. */
void drive_give_up(struct drive *d);

#endif
