/* One poll() over a signalfd and a pipe for each worker that starts. No event loop: nothing of it
 * could be left behind in a child, and all that happens here is small and rare.
 *
 * A place is empty (no process; one is started when respawn.h says so), starting (forked; its byte
 * in the pipe has not come) or working. Until all work for the first time, one that ends by itself
 * has said why, and that is the end of the daemon: a bad configuration is not tried again and
 * again. */
#include "daemon/master.h"
#include "core/base/attr.h"
#include "daemon/notify.h"
#include "daemon/privs.h"
#include "daemon/respawn.h"
#include "daemon/worker.h"
#include "io/obs/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_AFTER_NS (3 * NS_PER_S) /* beyond the drain timeout, which workers keep themselves */

struct place {
    pid_t pid;    /* 0: empty */
    int seat;     /* in the region; -1: none, then there is no process either */
    int ready_fd; /* -1: its byte came, or there is no process */
    struct respawn respawn;
};

enum phase { STARTING, SERVING, DRAINING };

struct master {
    struct setup *setup;
    struct roster *roster;
    struct place place[ROSTER_MAX];
    unsigned n;
    enum phase phase;
    int signal_fd;
    sigset_t old_mask;
    int64_t kill_at_ns; /* DRAINING: when patience ends */
    int status;
};

static int64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static unsigned present(const struct master *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->n; i++)
        n += m->place[i].pid != 0;
    return n;
}

/* --- workers --- */

/* In the child: all that is the master's goes; the signals stay blocked until they have handlers.
 */
static NORETURN void work(struct master *m, unsigned i, pid_t master, int ready_fd)
{
    struct worker w;
    struct err err = {""};
    const struct worker_place place = {.roster = m->roster, .index = i, .of = m->n};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "retryd-worker");
    if (getppid() != master)
        exit(0);
    close(m->signal_fd);
    for (unsigned k = 0; k < m->n; k++)
        if (m->place[k].ready_fd >= 0)
            close(m->place[k].ready_fd);
    privs_drop();
    if (!worker_open(&w, m->setup, m->place[i].seat, &place, &err)) {
        fprintf(stderr, "retryd: %s\n", err.text);
        exit(2);
    }
    worker_handle_signals(&w);
    sigprocmask(SIG_SETMASK, &m->old_mask, NULL);
    bool told = write(ready_fd, "r", 1) == 1;
    close(ready_fd);
    if (told)
        worker_run(&w);
    worker_close(&w);
    setup_close(m->setup);
    roster_free(m->roster);
    exit(0);
}

static void failed_to_start(struct place *p, const char *what)
{
    log_msg(LOG_LEVEL_ERROR, "no_worker", "%s", what);
    respawn_died(&p->respawn, clock_ns());
}

static void start(struct master *m, unsigned i)
{
    struct place *p = &m->place[i];
    int ready[2];
    respawn_started(&p->respawn, clock_ns());
    if (pipe2(ready, O_CLOEXEC | O_NONBLOCK) != 0) {
        failed_to_start(p, "no pipe");
        return;
    }
    fflush(NULL);
    if (p->seat < 0)
        p->seat = region_seat_claim(m->setup->region);
    pid_t self = getpid(), pid = p->seat < 0 ? -1 : fork();
    if (pid == 0) {
        close(ready[0]);
        work(m, i, self, ready[1]);
    }
    close(ready[1]);
    p->ready_fd = ready[0];
    p->pid = pid;
    if (pid > 0)
        return;
    failed_to_start(p, p->seat < 0 ? "budgets.file: all seats are taken" : "no process");
    close(p->ready_fd);
    p->ready_fd = -1;
    p->pid = 0;
}

static void tell_all(const struct master *m, int signo)
{
    for (unsigned i = 0; i < m->n; i++)
        if (m->place[i].pid != 0)
            kill(m->place[i].pid, signo);
}

static void drain(struct master *m)
{
    if (m->phase == DRAINING) {
        tell_all(m, SIGQUIT);
        return;
    }
    m->phase = DRAINING;
    m->kill_at_ns = clock_ns() + m->setup->config->drain_timeout_ns + KILL_AFTER_NS;
    notify_send("STOPPING=1");
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "stopping");
    log_int(&l, "workers", present(m));
    log_end(&l);
    setup_close_sockets(m->setup);
    tell_all(m, SIGTERM);
}

static void record_start(const struct place *p)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "worker_started");
    log_int(&l, "pid", p->pid);
    log_int(&l, "seat", p->seat);
    log_end(&l);
}

static void record_death(const struct place *p, pid_t pid, int status, bool expected)
{
    struct log_line l;
    log_begin(&l, expected ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "worker_ended");
    log_int(&l, "pid", pid);
    if (WIFSIGNALED(status))
        log_int(&l, "signal", WTERMSIG(status));
    else
        log_int(&l, "status", WEXITSTATUS(status));
    log_ms(&l, "lived_ms", p->respawn.died_ns - p->respawn.started_ns);
    log_end(&l);
}

static void on_death(struct master *m, unsigned i, int status)
{
    struct place *p = &m->place[i];
    respawn_died(&p->respawn, clock_ns());
    record_death(p, p->pid, status, m->phase == DRAINING);
    region_seat_release(m->setup->region, p->seat);
    p->seat = -1;
    roster_leave(m->roster, i);
    p->pid = 0;
    if (p->ready_fd >= 0)
        close(p->ready_fd);
    p->ready_fd = -1;
    if (m->phase == STARTING && WIFEXITED(status)) {
        m->status = 2;
        drain(m);
    }
}

/* All children, also those that were left to us as process 1 of a container. */
static void reap(struct master *m)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < m->n; i++)
            if (m->place[i].pid == pid)
                on_death(m, i, status);
}

/* --- events --- */

static void read_signals(struct master *m)
{
    struct signalfd_siginfo si;
    while (read(m->signal_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        if (si.ssi_signo == SIGCHLD)
            reap(m);
        else if (si.ssi_signo == SIGHUP)
            log_msg(LOG_LEVEL_WARN, "hangup", "ignored: a changed configuration takes a restart");
        else
            drain(m);
    }
}

static bool all_work(const struct master *m)
{
    for (unsigned i = 0; i < m->n; i++)
        if (m->place[i].pid == 0 || m->place[i].ready_fd >= 0)
            return false;
    return true;
}

static void read_ready(struct master *m, unsigned i)
{
    struct place *p = &m->place[i];
    char byte;
    ssize_t n = read(p->ready_fd, &byte, 1);
    if (n < 0)
        return;
    close(p->ready_fd); /* at the end of the pipe its death is on the way */
    p->ready_fd = -1;
    if (n == 1)
        record_start(p);
}

/* Starts what is due. Returns when to look again; 0: nothing is to come. */
static int64_t fill_places(struct master *m, int64_t now_ns)
{
    int64_t next_ns = 0;
    if (m->phase == DRAINING)
        return m->kill_at_ns;
    for (unsigned i = 0; i < m->n; i++) {
        struct place *p = &m->place[i];
        bool scarce = present(m) * 2 < m->n;
        if (p->pid == 0 && respawn_at(&p->respawn, scarce) <= now_ns)
            start(m, i);
        if (p->pid != 0)
            continue;
        int64_t at_ns = respawn_at(&p->respawn, scarce);
        if (next_ns == 0 || at_ns < next_ns)
            next_ns = at_ns;
    }
    return next_ns;
}

static void wait_for_events(struct master *m, int64_t until_ns)
{
    struct pollfd fds[1 + ROSTER_MAX] = {{.fd = m->signal_fd, .events = POLLIN}};
    int64_t left_ns = until_ns - clock_ns();
    int timeout_ms = -1;
    if (until_ns != 0)
        timeout_ms = left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    for (unsigned i = 0; i < m->n; i++) /* a negative descriptor is passed over */
        fds[1 + i] = (struct pollfd){.fd = m->place[i].ready_fd, .events = POLLIN};
    if (poll(fds, 1 + m->n, timeout_ms) <= 0)
        return;
    for (unsigned i = 0; i < m->n; i++)
        if (fds[1 + i].revents != 0)
            read_ready(m, i);
    if (fds[0].revents != 0)
        read_signals(m);
}

static void serve(struct master *m, bool (*ready)(void *arg), void *arg)
{
    while (m->phase != DRAINING || present(m) > 0) {
        int64_t now_ns = clock_ns();
        if (m->phase == DRAINING && now_ns >= m->kill_at_ns) {
            tell_all(m, SIGKILL);
            m->kill_at_ns = now_ns + KILL_AFTER_NS;
        }
        wait_for_events(m, fill_places(m, now_ns));
        if (m->phase != STARTING || !all_work(m))
            continue;
        m->phase = SERVING;
        if (!ready(arg)) {
            m->status = 2;
            drain(m);
        }
    }
}

int master_run(struct setup *s, unsigned workers, bool (*ready)(void *arg), void *arg)
{
    struct master m = {.setup = s, .n = workers};
    struct err err;
    sigset_t set;
    m.roster = roster_new(workers, &err);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &m.old_mask);
    m.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int seats[ROSTER_MAX];
    setup_claim_seats(s, seats, workers);
    for (unsigned i = 0; i < m.n; i++) {
        m.place[i].ready_fd = -1;
        m.place[i].seat = seats[i];
    }
    if (m.roster == NULL || m.signal_fd < 0) {
        fprintf(stderr, "retryd: %s\n", m.roster == NULL ? err.text : strerror(errno));
        m.status = 2;
    } else {
        serve(&m, ready, arg);
    }
    if (m.signal_fd >= 0)
        close(m.signal_fd);
    if (m.roster != NULL)
        roster_free(m.roster);
    sigprocmask(SIG_SETMASK, &m.old_mask, NULL);
    return m.status;
}
