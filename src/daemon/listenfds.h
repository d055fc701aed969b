/* Listening sockets: of our own making, or handed over by a service manager (sd_listen_fds(3)). */
#ifndef RETRYD_DAEMON_LISTENFDS_H
#define RETRYD_DAEMON_LISTENFDS_H

#include "core/base/err.h"
#include "proxy/entrance.h"

#include <stddef.h>

/* All three give an array on the heap, for listenfds_free; false with *err: nothing is left open.
 */

/* Those that LISTEN_FDS has for this process; *n 0 when there are none. Children do not see the
 * variables any more. One with the address of a listener of the configuration gets its rules; any
 * other must be a loopback address or a unix socket, and gets those of an address of listen. */
bool listenfds_inherit(const struct config *c, struct entrance **v, size_t *n, struct err *err);
/* One for each listener of the configuration. */
bool listenfds_open(const struct config *c, struct entrance **v, size_t *n, struct err *err);
/* One on a loopback port that the kernel picks, whatever the configuration says of listeners. */
bool listenfds_private(const struct config *c, struct entrance **v, size_t *n, struct err *err);

/* Leaves the sockets alone. */
void listenfds_free(struct entrance *v, size_t n);

#endif
