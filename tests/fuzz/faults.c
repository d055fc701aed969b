/* Faults on order. One order at a time: it holds for a number of calls of its kind. */
#include "faults.h"

#include "core/base/attr.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

bool faults_on, faults_broke;
uint64_t faults_injected;

enum call { RECV, SEND, SOCKET, CONNECT, SHUTDOWN, OPEN, PWRITE, PREAD };

/* error 0: at most one byte is moved. */
static const struct fault {
    enum call call;
    int error;
    unsigned times;
} faults[] = {
    {RECV, 0, 40},
    {SEND, 0, 40},
    {RECV, ECONNRESET, 1},
    {SEND, EPIPE, 1},
    {SOCKET, EMFILE, 1},
    {CONNECT, ECONNREFUSED, 1},
    {CONNECT, ENETUNREACH, 4},
    {SHUTDOWN, ENOTCONN, 1},
    {OPEN, EMFILE, 2},
    {OPEN, EACCES, 1},
    {PWRITE, ENOSPC, 1},
    {PWRITE, 0, 8},
    {PREAD, EIO, 1},
    {PREAD, 0, 8},
};

static struct fault order;

void faults_reset(void)
{
    faults_on = faults_broke = false;
    order.times = 0;
}

void faults_order(unsigned which)
{
    order = faults[which % ARRAY_LEN(faults)];
}

/* True: the call fails, with errno set. *n falls to 1 when it is to be cut short. */
static bool fails(enum call call, size_t *n)
{
    if (!faults_on || order.times == 0 || order.call != call)
        return false;
    order.times--;
    faults_injected++;
    if (order.error == 0) {
        *n = *n > 0;
        return false;
    }
    faults_broke = faults_broke || call == RECV || call == SEND || call == SHUTDOWN;
    errno = order.error;
    return true;
}

#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAP(ssize_t, recv, int fd, void *p, size_t n, int flags)
{
    return fails(RECV, &n) ? -1 : __real_recv(fd, p, n, flags);
}

WRAP(ssize_t, send, int fd, const void *p, size_t n, int flags)
{
    return fails(SEND, &n) ? -1 : __real_send(fd, p, n, flags);
}

WRAP(ssize_t, pwrite, int fd, const void *p, size_t n, off_t at)
{
    return fails(PWRITE, &n) ? -1 : __real_pwrite(fd, p, n, at);
}

WRAP(ssize_t, pread, int fd, void *p, size_t n, off_t at)
{
    return fails(PREAD, &n) ? -1 : __real_pread(fd, p, n, at);
}

WRAP(int, socket, int family, int type, int protocol)
{
    size_t none = 0;
    return fails(SOCKET, &none) ? -1 : __real_socket(family, type, protocol);
}

WRAP(int, connect, int fd, const struct sockaddr *sa, socklen_t n)
{
    size_t none = 0;
    return fails(CONNECT, &none) ? -1 : __real_connect(fd, sa, n);
}

WRAP(int, shutdown, int fd, int how)
{
    size_t none = 0;
    return fails(SHUTDOWN, &none) ? -1 : __real_shutdown(fd, how);
}

WRAP(int, mkostemp, char *path, int flags)
{
    size_t none = 0;
    return fails(OPEN, &none) ? -1 : __real_mkostemp(path, flags);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    size_t none = 0;
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    return fails(OPEN, &none) ? -1 : __real_open(path, flags, mode);
}
