/* Two lists. Turns are handed on at the end of the loop's turn: nobody's start() is called from
 * within another's leave(). */
#include "proxy/handshakes.h"
#include "core/base/attr.h"
#include "core/base/units.h"

/* A client that means it answers our flight in one round trip. */
#define PATIENCE_NS (2 * NS_PER_S)

static void run(struct handshakes *hs, struct handshake *h)
{
    h->state = HANDSHAKE_RUNS;
    h->since_ns = loop_now_ns(hs->loop);
    list_push_back(&hs->running, &h->link);
    hs->n_running++;
    hs->start(h);
}

static struct handshake *first(struct list *l)
{
    return list_entry(l->next, struct handshake, link);
}

static void await_patience(struct handshakes *hs)
{
    if (hs->n_waiting == 0 || hs->n_running == 0)
        return;
    int64_t rest = first(&hs->running)->since_ns + PATIENCE_NS - loop_now_ns(hs->loop);
    loop_timer_arm(&hs->timer, rest > 0 ? rest : 0);
}

static void hand_on(void *obj)
{
    struct handshakes *hs = obj;
    hs->handing_on = false;
    while (hs->n_waiting > 0 && hs->n_running < hs->max) {
        struct handshake *h = first(&hs->waiting);
        list_remove(&h->link);
        hs->n_waiting--;
        run(hs, h);
    }
    if (!loop_timer_armed(&hs->timer))
        await_patience(hs);
}

/* One for each that waits, as far as their time is over. */
static void on_timer(void *arg)
{
    struct handshakes *hs = arg;
    int64_t latest = loop_now_ns(hs->loop) - PATIENCE_NS;
    for (unsigned n = hs->n_waiting; n > 0 && hs->n_running > 0; n--) {
        struct handshake *h = first(&hs->running);
        if (h->since_ns > latest)
            break;
        hs->cut(h);
        ASSERT(h->state == HANDSHAKE_IDLE);
    }
    await_patience(hs);
}

void handshakes_init(struct handshakes *hs, struct loop *l, unsigned max,
                     void (*start)(struct handshake *h), void (*cut)(struct handshake *h))
{
    *hs = (struct handshakes){.loop = l, .max = max, .start = start, .cut = cut};
    list_init(&hs->running);
    list_init(&hs->waiting);
    loop_timer_init(&hs->timer, l, on_timer, hs);
}

void handshakes_fini(struct handshakes *hs)
{
    ASSERT(hs->n_running == 0 && hs->n_waiting == 0);
    loop_timer_fini(&hs->timer);
}

void handshakes_enter(struct handshakes *hs, struct handshake *h)
{
    ASSERT(h->state == HANDSHAKE_IDLE);
    if (hs->n_running < hs->max) {
        run(hs, h);
        return;
    }
    h->state = HANDSHAKE_WAITS;
    list_push_front(&hs->waiting, &h->link);
    hs->n_waiting++;
    if (!loop_timer_armed(&hs->timer))
        await_patience(hs);
}

void handshakes_leave(struct handshakes *hs, struct handshake *h)
{
    if (h->state == HANDSHAKE_IDLE)
        return;
    list_remove(&h->link);
    if (h->state == HANDSHAKE_RUNS)
        hs->n_running--;
    else
        hs->n_waiting--;
    h->state = HANDSHAKE_IDLE;
    if (hs->n_waiting > 0 && !hs->handing_on) {
        hs->handing_on = true;
        loop_defer(hs->loop, hand_on, hs);
    }
}
