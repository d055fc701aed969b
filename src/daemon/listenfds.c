/* The protocol of socket activation is two variables: LISTEN_PID, LISTEN_FDS; the descriptors are
 * 3, 4, ... It is spoken directly. */
#include "daemon/listenfds.h"
#include "core/base/num.h"
#include "core/base/xalloc.h"
#include "io/net/addrtext.h"
#include "io/net/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3, FDS_MAX = 64 };

/* How many were handed to this very process. */
static size_t handed_over(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t for_pid = 0, n = 0;
    bool ours = pid != NULL && count != NULL && num_u64(slice_str(pid), 10, INT32_MAX, &for_pid) &&
                for_pid == (uint64_t)getpid() && num_u64(slice_str(count), 3, FDS_MAX, &n);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return ours ? n : 0;
}

static bool is_loopback(const struct sockaddr_storage *sa)
{
    if (sa->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return sa->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

/* Whether it listens, listener_adopt() will see. */
static bool take_over(int fd, struct err *err)
{
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof sa;
    char text[ADDRTEXT_BYTES];
    if (getsockname(fd, (struct sockaddr *)&sa, &n) != 0 || !is_loopback(&sa))
        return err_set(err,
                       "descriptor %d, handed over in LISTEN_FDS, is no socket of a loopback "
                       "address: %s",
                       fd, addrtext((struct sockaddr *)&sa, text));
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 || err_set(err, "descriptor %d: not usable", fd);
}

static int open_one(const struct authority *at, struct err *err)
{
    struct sockaddr_storage sa = {0};
    socklen_t n;
    if (at->kind == AUTHORITY_IPV6) {
        struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&sa;
        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(at->port);
        memcpy(&sin6->sin6_addr, at->addr, 16);
        n = sizeof *sin6;
    } else {
        struct sockaddr_in *sin = (struct sockaddr_in *)&sa;
        sin->sin_family = AF_INET;
        sin->sin_port = htons(at->port);
        memcpy(&sin->sin_addr, at->addr, 4);
        n = sizeof *sin;
    }
    return listener_bind((struct sockaddr *)&sa, n, err);
}

/* Closes and frees what there is. */
static bool give_up(int **fds, size_t *n)
{
    while (*n > 0)
        close((*fds)[--*n]);
    free(*fds);
    *fds = NULL;
    return false;
}

bool listenfds_inherit(int **fds, size_t *n, struct err *err)
{
    size_t handed = handed_over();
    *n = 0;
    *fds = NULL;
    if (handed == 0)
        return true;
    *fds = xcalloc(handed, sizeof **fds);
    for (; *n < handed; (*n)++) {
        (*fds)[*n] = FIRST_FD + (int)*n;
        if (!take_over((*fds)[*n], err))
            return give_up(fds, n);
    }
    return true;
}

bool listenfds_open(const struct authority *listen, size_t n_listen, int **fds, size_t *n,
                    struct err *err)
{
    *fds = xcalloc(n_listen, sizeof **fds);
    for (*n = 0; *n < n_listen; (*n)++) {
        (*fds)[*n] = open_one(&listen[*n], err);
        if ((*fds)[*n] < 0)
            return give_up(fds, n);
    }
    return true;
}
