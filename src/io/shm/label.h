/* What people see of an entry: whose it is, in words without secrets. */
#ifndef RETRYD_IO_SHM_LABEL_H
#define RETRYD_IO_SHM_LABEL_H

#include "core/base/slice.h"
#include "io/shm/layout.h"

/* Unless one stands there already for that id; the first SHM_LABEL_BYTES of it. */
void label_write(const struct region *r, uint32_t slot, uint64_t id, struct slice label);
/* Empty where none was written whole. */
void label_read(const struct region *r, uint32_t slot, uint64_t id, char out[SHM_LABEL_BYTES + 1]);

#endif
