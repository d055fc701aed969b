/* Queues by upstream client. A queue exists while somebody waits in it. */
#include "proxy/admission.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/shm/budgets.h"

#include <stdlib.h>

#define LOOK_AGAIN_NS (250 * NS_PER_MS)

struct admission_queue {
    struct list link; /* in its bucket */
    uint64_t id;
    struct list waiters;
};

void admission_init(struct admission *a)
{
    for (unsigned i = 0; i < ADMISSION_BUCKETS; i++)
        list_init(&a->buckets[i]);
}

static struct admission_queue *find(const struct admission_ticket *t)
{
    uint64_t id = budgets_id(t->budget);
    const struct list *bucket = &t->all->buckets[id % ADMISSION_BUCKETS];
    for (struct list *l = bucket->next; l != bucket; l = l->next) {
        struct admission_queue *q = list_entry(l, struct admission_queue, link);
        if (q->id == id)
            return q;
    }
    return NULL;
}

static struct admission_ticket *head(const struct admission_queue *q)
{
    return list_entry(q->waiters.next, struct admission_ticket, link);
}

static void enter(struct admission_ticket *t, struct admission_queue *q)
{
    if (q == NULL) {
        q = xcalloc(1, sizeof *q);
        q->id = budgets_id(t->budget);
        list_init(&q->waiters);
        list_push_back(&t->all->buckets[q->id % ADMISSION_BUCKETS], &q->link);
    }
    t->queue = q;
    list_push_back(&q->waiters, &t->link);
    budgets_wait(t->budget, 1);
}

void admission_leave(struct admission_ticket *t)
{
    struct admission_queue *q = t->queue;
    if (q == NULL)
        return;
    bool was_head = head(q) == t;
    t->queue = NULL;
    list_remove(&t->link);
    budgets_wait(t->budget, -1);
    if (list_empty(&q->waiters)) {
        list_remove(&q->link);
        free(q);
    } else if (was_head) {
        head(q)->wake(head(q)->arg);
    }
}

static struct admission_ticket *ticket(const struct budget *b)
{
    return (struct admission_ticket *)b;
}

static bool spend(struct budget *b, unsigned cost, unsigned capacity)
{
    struct budget *real = ticket(b)->budget;
    return real->ops->spend(real, cost, capacity);
}

static void refund(struct budget *b, unsigned amount)
{
    struct budget *real = ticket(b)->budget;
    real->ops->refund(real, amount);
}

static unsigned tokens(const struct budget *b, unsigned capacity)
{
    const struct budget *real = ticket(b)->budget;
    return real->ops->tokens(real, capacity);
}

static int64_t admit(struct budget *b, int64_t now_ns)
{
    struct admission_ticket *t = ticket(b);
    struct admission_queue *q = t->queue != NULL ? t->queue : find(t);
    if (q != NULL && head(q) != t) {
        if (t->queue == NULL)
            enter(t, q);
        return LOOK_AGAIN_NS;
    }
    int64_t wait_ns = t->budget->ops->admit(t->budget, now_ns);
    if (wait_ns == 0) {
        admission_leave(t);
        return 0;
    }
    if (t->queue == NULL)
        enter(t, NULL);
    return wait_ns < LOOK_AGAIN_NS ? wait_ns : LOOK_AGAIN_NS;
}

static void observe(struct budget *b, bool throttled, int64_t now_ns)
{
    struct admission_ticket *t = ticket(b);
    t->budget->ops->observe(t->budget, throttled, now_ns);
    struct admission_queue *q = find(t);
    if (q != NULL && head(q) != t)
        head(q)->wake(head(q)->arg);
}

void admission_ticket_init(struct admission_ticket *t, struct admission *a, struct budget *budget,
                           void (*wake)(void *arg), void *arg)
{
    static const struct budget_ops ops = {spend, refund, tokens, admit, observe};
    *t = (struct admission_ticket){
        .base = {&ops}, .all = a, .budget = budget, .wake = wake, .arg = arg};
    list_init(&t->link);
}
