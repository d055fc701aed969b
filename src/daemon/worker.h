/* A worker: one loop, one proxy, until the end of its drain. */
#ifndef RETRYD_DAEMON_WORKER_H
#define RETRYD_DAEMON_WORKER_H

#include "daemon/cawatch.h"
#include "daemon/roster.h"
#include "daemon/setup.h"
#include "proxy/proxy.h"

/* Its place among others. */
struct worker_place {
    struct roster *roster;
    unsigned index, of; /* 0..of-1 */
};

struct worker {
    struct config config; /* its share of the totals; the rest as everywhere */
    struct loop *loop;
    struct proxy *proxy;
    struct admin *admin;       /* NULL: there is no socket for it */
    struct worker_place place; /* roster NULL: it is alone */
    struct proxy_door door;
    struct setup *setup;           /* borrowed */
    struct loop_timer admin_retry; /* while another process has the admin socket */
    struct cawatch cawatch;        /* in one of the workers */
    bool stopping;
};

/* Takes the sockets of the setup and borrows the rest of it. seat: in its region. place NULL: no
 * other process serves these sockets. False with *err: nothing is left open. */
bool worker_open(struct worker *w, struct setup *s, int seat, const struct worker_place *place,
                 struct err *err);
/* SIGTERM and SIGINT start the drain, a second one ends it at once; SIGHUP is logged and survived.
 * With others it is the master who decides: SIGTERM drains, SIGQUIT ends it at once, and what a
 * terminal sends is left to the master. */
void worker_handle_signals(struct worker *w);
/* Until worker_stop and the end of the drain. */
void worker_run(struct worker *w);
/* Graceful; called again: at once. */
void worker_stop(struct worker *w);
void worker_close(struct worker *w);

#endif
