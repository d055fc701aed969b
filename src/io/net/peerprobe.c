/* The state of a local peer: by asking inet_diag for exactly the reverse of our four-tuple; on a
 * unix socket the end itself tells. */
#include "io/net/peerprobe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr head;
    struct inet_diag_req_v2 diag;
};

static void put_address(const struct sockaddr_storage *sa, __be32 addr[4], __be16 *port)
{
    if (sa->ss_family == AF_INET) {
        const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
        memcpy(addr, &sin->sin_addr, 4);
        *port = sin->sin_port;
    } else {
        const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
        memcpy(addr, &sin6->sin6_addr, 16);
        *port = sin6->sin6_port;
    }
}

/* Only a loopback peer is certain to live in this network namespace. */
static bool is_loopback(const struct sockaddr_storage *sa)
{
    if (sa->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24) == 127;
    return sa->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

/* *uid: of the owner, when the state is PEER_OPEN. */
static enum peer_state ask(int nl, const struct request *req, uid_t *uid)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    if (send(nl, req, sizeof *req, 0) != (ssize_t)sizeof *req)
        return PEER_UNKNOWN;
    ssize_t n = recv(nl, &answer, sizeof answer, MSG_DONTWAIT);
    if (n < (ssize_t)sizeof answer.head)
        return PEER_UNKNOWN;
    if (answer.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *e = NLMSG_DATA(&answer.head);
        return n >= (ssize_t)NLMSG_LENGTH(sizeof *e) && e->error == -ENOENT ? PEER_GONE
                                                                            : PEER_UNKNOWN;
    }
    const struct inet_diag_msg *msg = NLMSG_DATA(&answer.head);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof *msg))
        return PEER_UNKNOWN;
    *uid = msg->idiag_uid;
    return msg->idiag_inode == 0 ? PEER_GONE : PEER_OPEN;
}

static int open_diag(void)
{
    return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

bool peerprobe_available(void)
{
    int nl = open_diag();
    if (nl >= 0)
        close(nl);
    return nl >= 0;
}

static enum peer_state look(int fd, uid_t *uid)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t n = sizeof local, m = sizeof peer;
    if (getsockname(fd, (struct sockaddr *)&local, &n) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &m) != 0 || local.ss_family != peer.ss_family ||
        !is_loopback(&peer))
        return PEER_UNKNOWN;
    struct request req = {.head = {.nlmsg_len = sizeof req,
                                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                   .nlmsg_flags = NLM_F_REQUEST},
                          .diag = {.sdiag_family = (__u8)local.ss_family,
                                   .sdiag_protocol = IPPROTO_TCP,
                                   .idiag_states = ~0U}};
    put_address(&peer, req.diag.id.idiag_src, &req.diag.id.idiag_sport);
    put_address(&local, req.diag.id.idiag_dst, &req.diag.id.idiag_dport);
    req.diag.id.idiag_cookie[0] = req.diag.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    int nl = open_diag();
    if (nl < 0)
        return PEER_UNKNOWN;
    enum peer_state state = ask(nl, &req, uid);
    close(nl);
    return state;
}

static bool is_unix(int fd)
{
    struct sockaddr_storage local = {0};
    socklen_t n = sizeof local;
    return getsockname(fd, (struct sockaddr *)&local, &n) == 0 && local.ss_family == AF_UNIX;
}

/* A half-closed peer is no hang-up: that takes both directions. */
static enum peer_state look_at_end(int fd)
{
    struct pollfd p = {.fd = fd};
    if (poll(&p, 1, 0) < 0)
        return PEER_UNKNOWN;
    return p.revents & POLLHUP ? PEER_GONE : PEER_OPEN;
}

enum peer_state peerprobe(int fd)
{
    uid_t uid = 0;
    return is_unix(fd) ? look_at_end(fd) : look(fd, &uid);
}

bool peerprobe_user(int fd, uid_t *uid)
{
    return look(fd, uid) == PEER_OPEN;
}
