/* What holds for every file with a private key that the configuration names. */
#ifndef RETRYD_IO_TLS_KEYFILE_H
#define RETRYD_IO_TLS_KEYFILE_H

#include "core/base/err.h"

/* False with *err when it cannot be looked at, or when others than its owner and its group may read
 * or write it. */
bool keyfile_is_private(const char *path, struct err *err);

#endif
