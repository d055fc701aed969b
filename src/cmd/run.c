/* retryd run: the daemon in the foreground. retryd env: the variables for a shell. */
#include "cmd/cmd.h"
#include "cmd/environ.h"
#include "cmd/load.h"
#include "daemon/master.h"
#include "daemon/notify.h"
#include "daemon/privs.h"
#include "daemon/worker.h"
#include "io/obs/log.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_exports(const char *url, const char *root, const char *bundle)
{
    struct environ_list l;
    environ_build(&l, url, root, bundle);
    for (size_t i = 0; i < l.n; i++) {
        /* Single quotes, with those inside a value closed and escaped: safe in every POSIX shell.
         */
        printf("export %s='", l.v[i].name);
        for (const char *p = l.v[i].value; *p != '\0'; p++)
            fputs(*p == '\'' ? "'\\''" : (char[]){*p, '\0'}, stdout);
        puts("'");
    }
    environ_fini(&l);
}

/* FILE gets a line for each listener, "host:port" or "unix:/path", whole or not at all. */
static bool write_ready_file(const char *path, const struct setup *s)
{
    char tmp[4096];
    int n = snprintf(tmp, sizeof tmp, "%s.tmp", path);
    if (n < 0 || (size_t)n >= sizeof tmp)
        return false;
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return false;
    bool ok = true;
    for (size_t i = 0; i < s->n_entrances; i++)
        ok = dprintf(fd, "%s\n", s->entrances[i].text) > 0 && ok;
    ok = close(fd) == 0 && ok;
    return ok && rename(tmp, path) == 0;
}

struct run {
    struct setup setup;
    const char *ready_file; /* NULL: none */
};

/* All workers accept: says so to whoever waits for it. */
static bool announce(void *arg)
{
    struct run *r = arg;
    const struct setup *s = &r->setup;
    char url[ENTRANCE_URL_MAX];
    struct log_line l;
    bool has_url = false;
    for (size_t i = 0; i < s->n_entrances; i++) {
        const struct entrance *e = &s->entrances[i];
        printf("listening on %s\n", e->text);
        log_begin(&l, LOG_LEVEL_INFO, "listening");
        log_str(&l, "listener", slice_str(e->rules.name));
        log_str(&l, "listen", slice_str(e->text));
        log_end(&l);
        has_url = has_url || entrance_url(&e->rules, e->text, url);
    }
    if (getenv("NOTIFY_SOCKET") == NULL && has_url) {
        puts("# for the programs that shall use it:");
        print_exports(url, ca_root_path(r->setup.ca), ca_bundle_path(r->setup.ca));
    }
    fflush(stdout);
    if (r->ready_file != NULL && !write_ready_file(r->ready_file, s)) {
        fprintf(stderr, "retryd: %s: cannot be written\n", r->ready_file);
        return false;
    }
    log_begin(&l, LOG_LEVEL_INFO, "ready");
    log_str(&l, "version", SLICE(RETRYD_VERSION));
    log_end(&l);
    notify_send("READY=1");
    return true;
}

static int serve_alone(struct run *r)
{
    struct worker w;
    struct err err = {""};
    int seat;
    setup_claim_seats(&r->setup, &seat, 1);
    privs_drop();
    if (!worker_open(&w, &r->setup, seat, NULL, &err)) {
        fprintf(stderr, "retryd: %s\n", err.text);
        return 2;
    }
    worker_handle_signals(&w);
    int status = announce(r) ? 0 : 2;
    if (status == 0)
        worker_run(&w);
    worker_close(&w);
    return status;
}

/* One for each CPU that we may use. */
static unsigned automatic_workers(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < ROSTER_MAX ? (unsigned)n : ROSTER_MAX;
}

static int serve(const struct config *config, const char *ready_file)
{
    struct run r = {.ready_file = ready_file};
    struct err err = {""};
    unsigned workers = config->workers != 0 ? config->workers : automatic_workers();
    if (!setup_open(&r.setup, config, true, &err)) {
        fprintf(stderr, "retryd: %s\n", err.text);
        return 2;
    }
    int status = workers > 1 ? master_run(&r.setup, workers, announce, &r) : serve_alone(&r);
    setup_remove_files(&r.setup);
    setup_close(&r.setup);
    return status;
}

int cmd_run(int argc, char **argv)
{
    const char *ready_file = NULL;
    const struct load_switch switches[] = {{.name = "--ready-file", .value = &ready_file}, {NULL}};
    struct load_result r = {.switches = switches};
    int status = 2;
    if (!load_config(argc, argv, &r))
        load_print_problems(&r);
    else if (r.first_operand < argc)
        fprintf(stderr,
                "%s: unexpected; retryd run [-c FILE] [--set PATH=VALUE]... [--ready-file FILE]\n",
                argv[r.first_operand]);
    else {
        load_print_notes(&r);
        privs_harden();
        status = serve(r.config, ready_file);
    }
    load_fini(&r);
    return status;
}

/* Of the first listener that has one. Returns what is in the way, or NULL. */
static const char *configured_url(const struct config *c, char url[ENTRANCE_URL_MAX])
{
    for (size_t i = 0; i < c->n_listeners; i++) {
        const struct listener_config *l = &c->listeners[i];
        char text[AUTHORITY_TEXT_MAX];
        if (l->address.path != NULL)
            continue;
        if (l->address.at.port == 0)
            return "listen has port 0, which is chosen at start: see what `retryd run` prints";
        authority_text(&l->address.at, text);
        if (entrance_url(l, text, url))
            return NULL;
    }
    return "no listener has a proxy URL: all are unix sockets, or behind load balancers";
}

int cmd_env(int argc, char **argv)
{
    struct load_result r = {.switches = NULL};
    char url[ENTRANCE_URL_MAX];
    const char *why;
    int status = 2;
    if (!load_config(argc, argv, &r)) {
        load_print_problems(&r);
    } else if ((why = configured_url(r.config, url)) != NULL) {
        fprintf(stderr, "retryd env: %s\n", why);
    } else {
        char root[4096], bundle[4096];
        snprintf(root, sizeof root, "%s/ca.pem", r.config->state_dir);
        snprintf(bundle, sizeof bundle, "%s/ca-bundle.pem", r.config->state_dir);
        print_exports(url, root, bundle);
        status = 0;
    }
    load_fini(&r);
    return status;
}
