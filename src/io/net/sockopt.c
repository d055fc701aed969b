/* Socket options. Failures of tuning are not reported: a connection without an option still works.
 */
#include "io/net/sockopt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum {
    /* A dead peer of a long wait is noticed after 60 + 6 * 15 s; most NATs keep an entry longer. */
    KEEPALIVE_IDLE_S = 60,
    KEEPALIVE_INTERVAL_S = 15,
    KEEPALIVE_PROBES = 6,
};

static void set_int(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

void sockopt_tune(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

void sockopt_late_port(int fd)
{
    set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
}

bool sockopt_adopt(int fd)
{
    int status = fcntl(fd, F_GETFL);
    return status >= 0 && fcntl(fd, F_SETFL, status | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}
