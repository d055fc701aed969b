/* One line of trouble, for people: what, where, what to do. Filled by the callee, printed by
 * whoever decides that it matters. Never holds a secret. */
#ifndef RETRYD_CORE_BASE_ERR_H
#define RETRYD_CORE_BASE_ERR_H

#include "core/base/attr.h"
#include <stdbool.h>

struct err {
    char text[512];
};

/* Writes the line (cut at the size of the buffer) and returns false, so that a callee can say
 * `return err_set(err, "…")`. err may be NULL. */
bool err_set(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
