/* Listening sockets: of our own making, or handed over by a service manager (sd_listen_fds(3)). */
#ifndef RETRYD_DAEMON_LISTENFDS_H
#define RETRYD_DAEMON_LISTENFDS_H

#include "core/base/err.h"
#include "core/http/uri.h"

#include <stddef.h>

/* Those that LISTEN_FDS has for this process, on the heap; *n 0 when there are none. Children do
 * not see the variables any more. They must be TCP sockets of loopback addresses. */
bool listenfds_inherit(int **fds, size_t *n, struct err *err);
/* One for each address, on the heap. */
bool listenfds_open(const struct authority *listen, size_t n_listen, int **fds, size_t *n,
                    struct err *err);

#endif
