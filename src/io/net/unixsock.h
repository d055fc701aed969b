/* Listening unix sockets: a file with the permissions it is to have, from its first moment on. */
#ifndef RETRYD_IO_NET_UNIXSOCK_H
#define RETRYD_IO_NET_UNIXSOCK_H

#include "core/base/err.h"

#include <sys/types.h>

struct unixsock {
    int fd; /* listening; -1: none */
    dev_t dev;
    ino_t ino; /* of the file */
};

/* mode: of the file, who may write may connect. group: its group, NULL: that of the process. A
 * socket that a dead process left is replaced; one that is alive, and anything else of that name
 * (a symbolic link, too), is an error. */
bool unixsock_open(struct unixsock *s, const char *path, mode_t mode, const char *group,
                   struct err *err);
/* Whether a living process listens at that name; *pid: which, 0: not known. */
bool unixsock_is_held(const char *path, pid_t *pid);
/* Removes the file, unless another one has its name by now. */
void unixsock_remove(const struct unixsock *s, const char *path);

#endif
