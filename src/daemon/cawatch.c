/* One look a day. The authority is not renewed under way: its root has to be trusted by hand. */
#include "daemon/cawatch.h"
#include "core/base/units.h"
#include "io/obs/log.h"

#define DAY_S ((time_t)86400)
#define WARN_DAYS 30
#define DAY_NS (86400 * NS_PER_S)

enum cawatch_state cawatch_look(time_t begin, time_t end, time_t now, int *days)
{
    *days = 0;
    if (now < begin)
        return CAWATCH_EARLY;
    if (now >= end)
        return CAWATCH_OVER;
    if (end - now >= WARN_DAYS * DAY_S)
        return CAWATCH_WELL;
    *days = (int)((end - now) / DAY_S);
    return CAWATCH_ENDING;
}

static void tell(const struct ca *ca)
{
    int days;
    switch (cawatch_look(ca_begin(ca), ca_end(ca), time(NULL), &days)) {
    case CAWATCH_WELL:
        break;
    case CAWATCH_ENDING:
        log_msg(
            LOG_LEVEL_WARN, "ca_ends",
            "the local authority ends in %d days: restart retryd, which makes a new one, and let "
            "clients trust the new %s",
            days, ca_root_path(ca));
        break;
    case CAWATCH_OVER:
        log_msg(
            LOG_LEVEL_ERROR, "ca_ended",
            "the local authority has ended, so no TLS is opened any more: restart retryd, which "
            "makes a new one, and let clients trust the new %s",
            ca_root_path(ca));
        break;
    case CAWATCH_EARLY:
        log_msg(LOG_LEVEL_ERROR, "ca_early",
                "the local authority begins in the future, so no TLS is opened: set the clock");
        break;
    }
}

static void on_day(void *arg)
{
    struct cawatch *w = arg;
    tell(w->ca);
    loop_timer_arm(&w->timer, DAY_NS);
}

void cawatch_start(struct cawatch *w, struct loop *l, const struct ca *ca)
{
    w->ca = ca;
    loop_timer_init(&w->timer, l, on_day, w);
    on_day(w);
}

void cawatch_stop(struct cawatch *w)
{
    if (w->ca != NULL)
        loop_timer_fini(&w->timer);
    w->ca = NULL;
}
