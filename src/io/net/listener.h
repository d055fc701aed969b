/* Listening sockets on the loop. Out of descriptors: paused for 100 ms instead of spinning (J2). */
#ifndef RETRYD_IO_NET_LISTENER_H
#define RETRYD_IO_NET_LISTENER_H

#include "core/base/err.h"
#include "io/net/loop.h"
#include <sys/socket.h>

struct listener;

/* fd: accepted, non-blocking, close-on-exec, TCP_NODELAY set; the callee's. */
typedef void listener_fn(void *arg, int fd, const struct sockaddr *peer);

/* Binds and listens. Port 0: the kernel picks. */
struct listener *listener_open(struct loop *l, const struct sockaddr *sa, socklen_t len,
                               listener_fn *fn, void *arg, struct err *err);
/* The same without a loop: a descriptor for listener_adopt, here or in a child. -1 with err. */
int listener_bind(const struct sockaddr *sa, socklen_t len, struct err *err);
/* Takes an inherited listening socket. */
struct listener *listener_adopt(struct loop *l, int fd, listener_fn *fn, void *arg,
                                struct err *err);
void listener_close(struct listener *ls);
/* Stop and go on accepting. */
void listener_pause(struct listener *ls, bool paused);

/* For a socket that several processes accept from. */
struct listener_gate {
    /* Asked before each accept. False: the next connection is better off elsewhere, so this
     * listener rests for 2 ms. */
    bool (*may_accept)(void *arg);
    /* One was accepted, before listener_fn hears of it. overdue: it had been left to others, and
     * nobody took it in that time. */
    void (*accepted)(void *arg, bool overdue);
    void *arg;
};
void listener_set_gate(struct listener *ls, const struct listener_gate *gate);
/* fn(arg) whenever there was no descriptor for a connection: to give some up. */
void listener_on_starved(struct listener *ls, void (*fn)(void *arg), void *arg);
/* The bound address, port filled in. */
const struct sockaddr_storage *listener_addr(const struct listener *ls);

#endif
