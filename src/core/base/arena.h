/* Memory that is freed all at once: one arena an exchange. What lives on it must be bounded by its
 * users (heads and codes are). Blocks come from malloc; allocation never fails (see xalloc.h). */
#ifndef RETRYD_CORE_BASE_ARENA_H
#define RETRYD_CORE_BASE_ARENA_H

#include "core/base/slice.h"

struct arena_block;

struct arena {
    struct arena_block *head;
    size_t used, cap;   /* within the newest block */
    size_t total_bytes; /* ever handed out, for accounting */
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);
/* Frees everything but the first block, so that a connection's next request costs no malloc. */
void arena_reset(struct arena *a);

/* Aligned for any type, zeroed. */
void *arena_alloc(struct arena *a, size_t bytes);
/* A NUL-terminated copy. */
char *arena_strdup(struct arena *a, struct slice s);
struct slice arena_copy(struct arena *a, struct slice s);

#endif
