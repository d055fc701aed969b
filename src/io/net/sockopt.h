/* Socket options of the program's TCP connections, in one place. */
#ifndef RETRYD_IO_NET_SOCKOPT_H
#define RETRYD_IO_NET_SOCKOPT_H

#include <stdbool.h>

/* TCP_NODELAY (conn does its own batching) and SO_KEEPALIVE with a probe after a minute of silence.
 * On a listening socket: accepted ones inherit them. Without effect on a unix socket. */
void sockopt_tune(int fd);
/* O_NONBLOCK and FD_CLOEXEC on an inherited descriptor. */
bool sockopt_adopt(int fd);

#endif
