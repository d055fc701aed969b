/* Budgets by upstream client: one quota per key, in a table that peers cannot grow (security
 * requirement E8).
 *
 * All-zero is a full budget, so an entry that owes nothing and serves nobody is as good as absent
 * and its slot is free for another key. When all candidate slots are busy, the key falls back to
 * one of a few shared overflow slots: never a refusal, never a fresh budget for invented keys. */
#ifndef RETRYD_IO_SHM_BUDGETS_H
#define RETRYD_IO_SHM_BUDGETS_H

#include "core/base/hash.h"
#include "core/retry/retry.h"

enum { BUDGETS_SLOTS = 1024, BUDGETS_OVERFLOW = 8, BUDGETS_PROBE = 16 };

struct budgets;

struct budgets *budgets_new(struct hash_key key);
void budgets_free(struct budgets *t);

/* The budget of the key, held until budgets_release. */
struct budget *budgets_acquire(struct budgets *t, struct slice key);
void budgets_release(struct budget *b);
/* How often the overflow slots had to serve. */
uint64_t budgets_overflowed(const struct budgets *t);

#endif
