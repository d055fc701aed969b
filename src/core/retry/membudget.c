/* The budget port in plain memory: one process, one thread. */
#include "core/retry/membudget.h"

#include "core/retry/quota.h"

static struct membudget *self(struct budget *b)
{
    return (struct membudget *)b; /* base is the first member */
}

static bool spend(struct budget *b, unsigned cost, unsigned capacity)
{
    struct membudget *m = self(b);
    return quota_spend(m->debt, cost, capacity, &m->debt);
}

static void refund(struct budget *b, unsigned amount)
{
    struct membudget *m = self(b);
    m->debt = quota_refund(m->debt, amount);
}

static unsigned tokens(const struct budget *b, unsigned capacity)
{
    const struct membudget *m = (const struct membudget *)b;
    return quota_tokens(m->debt, capacity);
}

static int64_t admit(struct budget *b, int64_t now_ns)
{
    (void)b, (void)now_ns;
    return 0;
}

static void observe(struct budget *b, bool throttled, int64_t now_ns)
{
    (void)b, (void)throttled, (void)now_ns;
}

static const struct budget_ops ops = {spend, refund, tokens, admit, observe};

void membudget_init(struct membudget *b)
{
    *b = (struct membudget){.base = {&ops}};
}
