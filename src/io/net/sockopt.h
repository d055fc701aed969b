/* Socket options of the program's TCP connections, in one place. */
#ifndef RETRYD_IO_NET_SOCKOPT_H
#define RETRYD_IO_NET_SOCKOPT_H

#include <stdbool.h>

/* TCP_NODELAY (conn does its own batching) and SO_KEEPALIVE with a probe after a minute of silence.
 * On a listening socket: accepted ones inherit them. Without effect on a unix socket. */
void sockopt_tune(int fd);
/* Before bind() to port 0: the port is chosen by connect(), so that one serves many targets. */
void sockopt_late_port(int fd);
/* O_NONBLOCK and FD_CLOEXEC on an inherited descriptor. */
bool sockopt_adopt(int fd);

#endif
