/* The master of several workers: starts them, replaces those that die, tells them to end. It
 * carries no traffic and parses nothing that comes from outside. */
#ifndef RETRYD_DAEMON_MASTER_H
#define RETRYD_DAEMON_MASTER_H

#include "daemon/setup.h"

/* Until SIGTERM or SIGINT and the end of the drain that they start; the exit status then. Returns
 * in no other process. ready(arg) is called once, when all workers accept; false from it is the
 * end, with status 2. */
int master_run(struct setup *s, unsigned workers, bool (*ready)(void *arg), void *arg);

#endif
