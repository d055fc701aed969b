/* The socket of the admin interface: a file that only its user, and one group if so wished, can
 * connect to. */
#ifndef RETRYD_ADMIN_ADMINSOCK_H
#define RETRYD_ADMIN_ADMINSOCK_H

#include "core/base/err.h"

#include <sys/types.h>

struct adminsock {
    int fd; /* listening; -1: none */
    dev_t dev;
    ino_t ino; /* of the file */
};

/* Mode 0600; with a group 0660 and that group. A file that a dead daemon left is replaced. */
bool adminsock_open(struct adminsock *s, const char *path, const char *group, struct err *err);
/* Removes the file, unless another daemon's is there by now. */
void adminsock_remove(const struct adminsock *s, const char *path);

#endif
