/* Worker life. */
#include "daemon/worker.h"
#include "admin/admin.h"
#include "core/base/units.h"
#include "daemon/nofile.h"
#include "daemon/notify.h"
#include "io/obs/log.h"

#include <signal.h>
#include <unistd.h>

/* --- among others --- */

static unsigned on_count(void *arg, unsigned n_clients)
{
    struct worker *w = arg;
    return roster_count(w->place.roster, w->place.index, n_clients);
}

static bool may_accept(void *arg)
{
    struct worker *w = arg;
    on_count(w, w->proxy->n_clients);
    return roster_may_accept(w->place.roster, w->place.index, loop_now_ns(w->loop));
}

static void on_accepted(void *arg, bool overdue)
{
    struct worker *w = arg;
    if (overdue)
        roster_overdue(w->place.roster, w->place.index, loop_now_ns(w->loop));
    roster_accepted(w->place.roster, w->place.index);
}

static uint64_t share(uint64_t total, unsigned of)
{
    return (total + of - 1) / of;
}

static void join(struct worker *w, const struct worker_place *place)
{
    struct config *c = &w->config;
    w->place = *place;
    w->door = (struct proxy_door){
        .gate = {.may_accept = may_accept, .accepted = on_accepted, .arg = w},
        .count = on_count,
        .arg = w,
    };
    c->max_parked = (unsigned)share(c->max_parked, place->of);
    c->replay_memory_total_bytes = share(c->replay_memory_total_bytes, place->of);
    c->replay_disk_total_bytes = share(c->replay_disk_total_bytes, place->of);
    roster_enter(place->roster, place->index);
}

/* No more clients than there are descriptors for. */
static void fit_clients(struct worker *w, const struct worker_place *place)
{
    struct config *c = &w->config;
    unsigned fit = nofile_clients(place != NULL ? place->of : 1);
    if (c->max_clients <= fit)
        return;
    if (place == NULL || place->index == 0)
        log_msg(LOG_LEVEL_WARN, "few_descriptors",
                "limits.max_clients is %u, the limit of open files has room for %u: that counts",
                c->max_clients, fit);
    c->max_clients = fit;
}

/* --- the admin socket --- */

#define ADMIN_RETRY_NS NS_PER_S

/* One process of the daemon tries, so that none takes a socket from another that is about to listen
 * on it. */
static void on_admin_retry(void *arg)
{
    struct worker *w = arg;
    struct err err = {""};
    if (w->stopping)
        return;
    if (!setup_retry_admin(w->setup)) {
        loop_timer_arm(&w->admin_retry, ADMIN_RETRY_NS);
        return;
    }
    w->admin = admin_new(w->loop, w->setup->admin.fd, w->setup->region, &err);
    w->setup->admin.fd = -1;
    if (w->admin == NULL)
        log_msg(LOG_LEVEL_ERROR, "no_admin_socket", "%s", err.text);
}

/* --- life --- */

bool worker_open(struct worker *w, struct setup *s, int seat, const struct worker_place *place,
                 struct err *err)
{
    *w = (struct worker){.config = *s->config, .setup = s};
    w->loop = loop_new(err);
    if (w->loop == NULL)
        return false;
    loop_timer_init(&w->admin_retry, w->loop, on_admin_retry, w);
    if (place != NULL)
        join(w, place);
    fit_clients(w, place);
    struct proxy_parts parts = {
        .loop = w->loop,
        .config = &w->config,
        .ca = s->ca,
        .entrances = s->entrances,
        .n_entrances = s->n_entrances,
        .region = s->region,
        .seat = seat,
        .door = place != NULL ? &w->door : NULL,
        /* Numbers of exchanges are unique in the log of a daemon. */
        .first_xid = place != NULL ? (uint64_t)getpid() << 32 : 0,
    };
    int admin_fd = s->admin.fd;
    setup_forget_sockets(s);
    w->proxy = proxy_new(&parts, err);
    if (w->proxy != NULL && admin_fd >= 0)
        w->admin = admin_new(w->loop, admin_fd, s->region, err);
    bool whole = w->proxy != NULL && (w->admin != NULL || admin_fd < 0);
    if (!whole)
        worker_close(w);
    else if (s->admin_missing && (place == NULL || place->index == 0))
        loop_timer_arm(&w->admin_retry, ADMIN_RETRY_NS);
    if (whole && (place == NULL || place->index == 0))
        cawatch_start(&w->cawatch, w->loop, s->ca);
    return whole;
}

static void on_drained(void *arg)
{
    struct worker *w = arg;
    loop_stop(w->loop);
}

void worker_stop(struct worker *w)
{
    if (w->stopping) {
        loop_stop(w->loop);
        return;
    }
    w->stopping = true;
    if (w->place.roster == NULL)
        notify_send("STOPPING=1");
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "stopping");
    log_int(&l, "clients", w->proxy->n_clients);
    log_end(&l);
    if (w->admin != NULL)
        admin_drain(w->admin);
    proxy_drain(w->proxy, on_drained, w);
    if (w->place.roster != NULL)
        roster_leave(w->place.roster, w->place.index);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    worker_stop(arg);
}

/* By custom a daemon reads its configuration again: what this one cannot do, it must at least
 * survive. */
static void on_hangup(void *arg, int signo)
{
    (void)arg, (void)signo;
    log_msg(LOG_LEVEL_WARN, "hangup", "ignored: a changed configuration takes a restart");
}

/* The master and a service manager may both send it: once or twice is the same. */
static void on_drain_signal(void *arg, int signo)
{
    struct worker *w = arg;
    (void)signo;
    if (!w->stopping)
        worker_stop(w);
}

static void on_end_signal(void *arg, int signo)
{
    struct worker *w = arg;
    (void)signo;
    loop_stop(w->loop);
}

void worker_handle_signals(struct worker *w)
{
    if (w->place.roster != NULL) {
        loop_on_signal(w->loop, SIGTERM, on_drain_signal, w);
        loop_on_signal(w->loop, SIGQUIT, on_end_signal, w);
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        return;
    }
    if (getpid() == 1)
        signal(SIGCHLD, SIG_IGN); /* orphans of the container: nobody else lays them to rest */
    loop_on_signal(w->loop, SIGTERM, on_signal, w);
    loop_on_signal(w->loop, SIGINT, on_signal, w);
    loop_on_signal(w->loop, SIGHUP, on_hangup, w);
}

void worker_run(struct worker *w)
{
    loop_run(w->loop);
}

void worker_close(struct worker *w)
{
    if (w->admin != NULL)
        admin_free(w->admin);
    setup_remove_admin(w->setup);
    if (w->proxy != NULL)
        proxy_free(w->proxy);
    if (w->loop != NULL) {
        loop_timer_fini(&w->admin_retry);
        cawatch_stop(&w->cawatch);
        loop_free(w->loop);
    }
    if (w->place.roster != NULL)
        roster_leave(w->place.roster, w->place.index);
    *w = (struct worker){.loop = NULL};
}
