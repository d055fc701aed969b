/* A worker: one loop, one proxy, from a config to the end of its drain. */
#ifndef RETRYD_DAEMON_WORKER_H
#define RETRYD_DAEMON_WORKER_H

#include "core/config/config.h"
#include "proxy/proxy.h"

struct worker {
    const struct config *config; /* borrowed */
    struct loop *loop;
    struct ca *ca;
    struct proxy *proxy;
    bool stopping;
};

/* Opens the log, the CA, the listeners. False with *err: nothing is left open. A note (a CA that
 * was made or renewed) is logged. */
bool worker_open(struct worker *w, const struct config *config, struct err *err);
/* SIGTERM and SIGINT start the drain, a second one ends it at once; SIGHUP is logged and survived.
 * For a process whose only job this is. */
void worker_handle_signals(struct worker *w);
/* Until worker_stop and the end of the drain. */
void worker_run(struct worker *w);
/* Graceful; called again: at once. */
void worker_stop(struct worker *w);
void worker_close(struct worker *w);
/* The first listener, as host:port. */
void worker_address(const struct worker *w, char out[AUTHORITY_TEXT_MAX]);

#endif
