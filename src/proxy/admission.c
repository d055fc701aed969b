/* Queues by upstream client. A queue exists while somebody waits in it. */
#include "proxy/admission.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "io/shm/budgets.h"

#include <stdlib.h>

#define LOOK_AGAIN_NS (250 * NS_PER_MS)
/* A head that did not ask for so long does not wait, whatever it says. */
#define SILENT_NS (2 * LOOK_AGAIN_NS)
#define PATIENCE_NS (20 * NS_PER_MS)
#define YIELD_NS (2 * NS_PER_MS)

struct admission_queue {
    struct list link; /* in its bucket */
    uint64_t id;
    struct list waiters;
    int64_t yielding_ns; /* since when a token is left to other workers; 0: not so */
    int64_t passed_ns;   /* those that were not seen since are waited for no more */
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

static struct admission_queue *enter(struct admission_ticket *t, struct admission_queue *q,
                                     int64_t now_ns)
{
    if (q == NULL) {
        q = xcalloc(1, sizeof *q);
        q->id = budgets_id(t->budget);
        list_init(&q->waiters);
        list_push_back(&t->all->buckets[q->id % ADMISSION_BUCKETS], &q->link);
    }
    t->queue = q;
    t->since_ns = now_ns;
    list_push_back(&q->waiters, &t->link);
    budgets_wait(t->budget, 1);
    return q;
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
        budgets_show_head(t->budget, 0);
        list_remove(&q->link);
        free(q);
    } else if (was_head) {
        budgets_show_head(t->budget, head(q)->since_ns);
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

/* How long a head leaves the next token to those of other workers that came before it; 0: not, or
 * not any more. */
static int64_t yield(struct admission_queue *q, struct budget *budget, int64_t now_ns)
{
    int64_t seen_ns = q->passed_ns > now_ns - SILENT_NS ? q->passed_ns : now_ns - SILENT_NS;
    int64_t wait_ns = 0;
    bool behind = budgets_is_behind(budget, head(q)->since_ns, seen_ns);
    if (behind)
        wait_ns = budgets_token_wait(budget, now_ns);
    if (!behind || wait_ns > 0) {
        q->yielding_ns = 0;
        return wait_ns;
    }
    if (q->yielding_ns == 0)
        q->yielding_ns = now_ns;
    if (now_ns - q->yielding_ns < PATIENCE_NS)
        return YIELD_NS;
    if (budgets_is_behind(budget, head(q)->since_ns, q->yielding_ns)) {
        q->yielding_ns = now_ns; /* they do come, and this is another token */
        return YIELD_NS;
    }
    q->passed_ns = now_ns;
    q->yielding_ns = 0;
    return 0;
}

/* Of a head, or of one before whom nobody waits here. */
static int64_t ask(struct admission_ticket *t, int64_t now_ns)
{
    struct admission_queue *q = t->queue;
    if (q == NULL && budgets_is_behind(t->budget, now_ns, now_ns - SILENT_NS))
        q = enter(t, NULL, now_ns);
    int64_t wait_ns = q != NULL ? yield(q, t->budget, now_ns) : 0;
    if (wait_ns == 0)
        wait_ns = t->budget->ops->admit(t->budget, now_ns);
    if (wait_ns == 0) {
        admission_leave(t);
        return 0;
    }
    if (q == NULL)
        enter(t, NULL, now_ns);
    budgets_show_head(t->budget, t->since_ns);
    return wait_ns < LOOK_AGAIN_NS ? wait_ns : LOOK_AGAIN_NS;
}

static int64_t admit(struct budget *b, int64_t now_ns)
{
    struct admission_ticket *t = ticket(b);
    struct admission_queue *q = t->queue != NULL ? t->queue : find(t);
    if (q == NULL || head(q) == t)
        return ask(t, now_ns);
    if (t->queue == NULL)
        enter(t, q, now_ns);
    return LOOK_AGAIN_NS;
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
