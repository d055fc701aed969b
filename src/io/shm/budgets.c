/* Table of budgets: open addressing over a keyed fingerprint. */
#include "io/shm/budgets.h"
#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include "core/retry/membudget.h"

#include <stdlib.h>

struct slot {
    struct membudget budget; /* first: a budget is its slot */
    uint64_t fingerprint;    /* 0: free */
    unsigned holders;
};

struct budgets {
    struct hash_key key;
    uint64_t overflowed;
    struct slot slot[BUDGETS_SLOTS + BUDGETS_OVERFLOW];
};

struct budgets *budgets_new(struct hash_key key)
{
    struct budgets *t = xcalloc(1, sizeof *t);
    t->key = key;
    for (size_t i = 0; i < ARRAY_LEN(t->slot); i++)
        membudget_init(&t->slot[i].budget);
    return t;
}

void budgets_free(struct budgets *t)
{
    free(t);
}

static bool idle(const struct slot *s)
{
    return s->fingerprint == 0 || (s->holders == 0 && s->budget.debt == 0);
}

struct budget *budgets_acquire(struct budgets *t, struct slice key)
{
    uint64_t f = hash_bytes(t->key, key);
    if (f == 0)
        f = 1;
    struct slot *found = NULL;
    for (unsigned i = 0; i < BUDGETS_PROBE; i++) {
        struct slot *s = &t->slot[(f + i) % BUDGETS_SLOTS];
        if (s->fingerprint == f) {
            found = s;
            break;
        }
        if (found == NULL && idle(s))
            found = s;
    }
    if (found == NULL) {
        t->overflowed++;
        found = &t->slot[BUDGETS_SLOTS + f % BUDGETS_OVERFLOW];
    } else {
        found->fingerprint = f;
    }
    found->holders++;
    return &found->budget.base;
}

void budgets_release(struct budget *b)
{
    struct slot *s = (struct slot *)b;
    ASSERT(s->holders > 0);
    s->holders--;
}

uint64_t budgets_overflowed(const struct budgets *t)
{
    return t->overflowed;
}
