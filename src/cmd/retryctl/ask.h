/* One request to the admin socket of a running retryd. */
#ifndef RETRYD_CMD_RETRYCTL_ASK_H
#define RETRYD_CMD_RETRYCTL_ASK_H

#include "core/base/err.h"
#include "core/base/strbuf.h"

/* Room for the largest answer. */
enum { ASK_ANSWER_BYTES = 5 * 1024 * 1024 };

/* *answer is initialised and holds all that came, *body the body in it; *status that of HTTP.
 * False with *err: no whole answer. */
bool ask(const char *socket_path, const char *method, const char *target, struct strbuf *answer,
         struct slice *body, unsigned *status, struct err *err);

#endif
