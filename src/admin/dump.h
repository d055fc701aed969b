/* The shared budgets as JSON. */
#ifndef RETRYD_ADMIN_DUMP_H
#define RETRYD_ADMIN_DUMP_H

#include "core/base/strbuf.h"
#include "io/shm/region.h"

#include <stdint.h>

/* One object; "budgets" in it has a row for each entry. Where not all fit into the buffer,
 * "truncated" is true. */
void dump_budgets(struct strbuf *out, const struct region *r, int64_t now_ns);
/* A JSON string. What is no UTF-8, or could steer a terminal, is replaced by U+FFFD. */
void dump_string(struct strbuf *out, struct slice s);

#endif
