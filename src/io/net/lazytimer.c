/* Lazily moved deadline over a loop timer. */
#include "io/net/lazytimer.h"

static void arm(struct lazytimer *t)
{
    int64_t wait = t->due_ns - loop_now_ns(t->timer.loop);
    t->armed_ns = t->due_ns;
    loop_timer_arm(&t->timer, wait > 0 ? wait : 0);
}

static void on_timer(void *arg)
{
    struct lazytimer *t = arg;
    t->armed_ns = 0;
    if (t->due_ns == 0)
        return;
    if (loop_now_ns(t->timer.loop) < t->due_ns) {
        arm(t);
        return;
    }
    t->due_ns = 0;
    t->fn(t->arg);
}

void lazytimer_init(struct lazytimer *t, struct loop *l, void (*fn)(void *arg), void *arg)
{
    *t = (struct lazytimer){.fn = fn, .arg = arg};
    loop_timer_init(&t->timer, l, on_timer, t);
}

void lazytimer_fini(struct lazytimer *t)
{
    loop_timer_fini(&t->timer);
}

void lazytimer_set(struct lazytimer *t, int64_t due_ns)
{
    t->due_ns = due_ns;
    if (due_ns != 0 && (t->armed_ns == 0 || due_ns < t->armed_ns))
        arm(t);
}
