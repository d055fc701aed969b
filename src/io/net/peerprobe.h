/* Has the program at the other end of a local connection really gone? An end alone does not tell a
 * client that left from one that only half-closed and still reads; the kernel knows whether the
 * peer's socket still belongs to a process (TCP: sock_diag(7), same network namespace). */
#ifndef RETRYD_IO_NET_PEERPROBE_H
#define RETRYD_IO_NET_PEERPROBE_H

#include <stdbool.h>
#include <sys/types.h>

enum peer_state {
    PEER_UNKNOWN, /* not local, or the kernel does not say: assume that it is there */
    PEER_OPEN,    /* a process holds the socket */
    PEER_GONE,    /* no socket any more, or one that no process holds */
};

/* False where the kernel or a sandbox does not let us ask: then every answer about TCP is
 * PEER_UNKNOWN. */
bool peerprobe_available(void);

/* One netlink round trip inside the kernel, or one poll(2); never waits for a peer. */
enum peer_state peerprobe(int fd);
/* Whose the TCP socket at the other end is. False: it is not known, or nobody's any more. */
bool peerprobe_user(int fd, uid_t *uid);

#endif
