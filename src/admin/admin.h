/* The way to look at a running daemon, and to reset a budget: HTTP/1.1 on a unix socket.
 *
 *   GET  /healthz                  is it there, is it draining
 *   GET  /budgets                  every upstream client's quota and limiter
 *   POST /budgets/reset?key=KEY    makes one new; KEY is its id or its label
 *
 * Answers are JSON; one request a connection. Any worker answers, as all state is shared. Only the
 * daemon's own user and root may change anything (security requirement I7); who may look says the
 * mode of the socket. */
#ifndef RETRYD_ADMIN_ADMIN_H
#define RETRYD_ADMIN_ADMIN_H

#include "io/net/loop.h"
#include "io/shm/region.h"

struct admin;

/* Takes the listening socket, borrows the loop and the region. NULL with *err. */
struct admin *admin_new(struct loop *loop, int listen_fd, const struct region *region,
                        struct err *err);
/* From now on /healthz says that the daemon is about to end. */
void admin_drain(struct admin *a);
void admin_free(struct admin *a);

#endif
