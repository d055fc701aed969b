/* Budgets by upstream client: one quota and one limiter per key, in a region that outlives whoever
 * uses them, in a table that peers cannot grow (security requirement E8).
 *
 * All-zero is a full quota and a limiter never used, so an entry that owes nothing and remembers
 * nothing is as good as absent, and its place is free for another key; so is one that nobody used
 * for long. A key that finds no place falls back to one of a few shared overflow entries: never a
 * refusal, never a fresh budget for invented keys. */
#ifndef RETRYD_IO_SHM_BUDGETS_H
#define RETRYD_IO_SHM_BUDGETS_H

#include "core/base/slice.h"
#include "core/retry/retry.h"
#include "io/shm/region.h"

enum { BUDGETS_LABEL_MAX = 48 };

/* The table as one seat sees it. Of one thread. */
struct budgets;

/* Borrows the region until budgets_free. */
struct budgets *budgets_new(struct region *r, int seat);
void budgets_free(struct budgets *t);

/* The budget of the key, held until budgets_release. The key is kept as a keyed fingerprint only;
 * the label is what people see of it, without secrets, cut at BUDGETS_LABEL_MAX bytes.
 * An entry is not pinned by being held: one that loses its place finds another by itself, with what
 * it owed forgotten, as if it had been idle. now_ns: the region's clock is CLOCK_MONOTONIC. */
struct budget *budgets_acquire(struct budgets *t, struct slice key, struct slice label,
                               int64_t now_ns);
void budgets_release(struct budget *b);

/* The same number for every handle of one key, in this table. */
uint64_t budgets_id(const struct budget *b);

/* One more, or one less, request of this seat that waits for the budget's limiter. */
void budgets_wait(struct budget *b, int change);

/* --- whose turn it is among the seats: hints, taken for true by nobody --- */

/* The first of this seat's waiters began to wait then, and asks now; 0: nobody waits. Keys that
 * share an overflow entry keep no order. */
void budgets_show_head(struct budget *b, int64_t since_ns);
/* Whether the first waiter of another seat, seen asking after seen_ns, began to wait earlier. */
bool budgets_is_behind(const struct budget *b, int64_t since_ns, int64_t seen_ns);
/* What admit would return, with nothing taken. */
int64_t budgets_token_wait(struct budget *b, int64_t now_ns);

/* --- for people --- */

struct budgets_entry {
    uint64_t fingerprint; /* 0: an overflow entry */
    char label[BUDGETS_LABEL_MAX + 1];
    unsigned tokens, capacity; /* of the quota, the capacity as it was seen last; 0: never */
    bool limited;              /* the limiter holds back */
    double rate_limit;         /* send tokens/s, while it does */
    double rate_measured;      /* results/s */
    double send_tokens, send_capacity;
    uint64_t throttles, granted, refused; /* answers that throttled; retries */
    unsigned waiting;
    int64_t changed_ns; /* last change of quota or limiter; 0: none */
    int64_t used_ns;    /* within a second */
};

/* Tells fn of every entry until it returns false; then returns false itself. */
bool budgets_walk(const struct region *r, int64_t now_ns,
                  bool (*fn)(void *arg, const struct budgets_entry *e), void *arg);
/* Makes entries new: those of that label or, in hexadecimal, of that fingerprint. How many. */
unsigned budgets_reset(const struct region *r, struct slice which);

struct budgets_totals {
    unsigned seats;      /* taken */
    unsigned entries;    /* places that are taken, idle ones among them */
    unsigned slots;      /* places there are */
    uint64_t overflowed; /* how often a key found none */
    uint64_t evicted;    /* how often one got the place of another */
};

void budgets_totals(const struct region *r, struct budgets_totals *out);

#endif
