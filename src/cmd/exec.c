/* retryd exec: a private proxy around one command. The command's exit status is ours; a signal that
 * kills it gives 128 + its number, as a shell would say. */
#include "cmd/callerca.h"
#include "cmd/cmd.h"
#include "cmd/environ.h"
#include "cmd/load.h"
#include "cmd/summary.h"
#include "daemon/privs.h"
#include "daemon/worker.h"
#include "io/obs/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 };

/* Passed on to the command. */
static const int forwarded[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

struct exec {
    struct setup setup;
    struct worker worker;
    const char *callers_ca;            /* NULL: no bundle but the system's */
    char ca_bundle[CALLERCA_PATH_MAX]; /* with the caller's; empty: the general one */
    pid_t child;
    int status; /* of the child, as exit status */
};

static void on_child(void *arg, int signo)
{
    struct exec *x = arg;
    int status;
    (void)signo;
    if (x->child <= 0 || waitpid(x->child, &status, WNOHANG) != x->child)
        return;
    x->child = 0;
    x->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    /* Nobody is left to answer. */
    loop_stop(x->worker.loop);
}

/* The terminal sends these to the whole foreground group: the command has its own already. */
static bool from_terminal(int signo)
{
    return (signo == SIGINT || signo == SIGQUIT) && isatty(STDIN_FILENO) &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void on_signal(void *arg, int signo)
{
    struct exec *x = arg;
    if (x->child > 0 && !from_terminal(signo))
        kill(x->child, signo);
}

static void child_main(char **command, const struct environ_list *env)
{
    for (size_t i = 0; i < env->n; i++)
        setenv(env->v[i].name, env->v[i].value, 1);
    signal(SIGXFSZ, SIG_DFL);
    execvp(command[0], command);
    int failed = errno;
    fprintf(stderr, "retryd exec: %s: %s\n", command[0], strerror(failed));
    _exit(failed == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static bool start(struct exec *x, char **command, const sigset_t *old_mask)
{
    const struct setup *s = &x->setup;
    struct environ_list env;
    char url[ENTRANCE_URL_MAX];
    entrance_url(&s->entrances[0].rules, s->entrances[0].text, url);
    environ_build(&env, url, ca_root_path(s->ca),
                  x->ca_bundle[0] ? x->ca_bundle : ca_bundle_path(s->ca));
    x->child = fork();
    if (x->child == 0) {
        sigprocmask(SIG_SETMASK, old_mask, NULL);
        child_main(command, &env);
    }
    environ_fini(&env);
    return x->child > 0;
}

static bool open_all(struct exec *x, const struct config *config, struct err *err)
{
    int seat;
    if (!setup_open(&x->setup, config, false, err))
        return false;
    setup_claim_seats(&x->setup, &seat, 1);
    /* The command goes on trusting what its caller trusts. */
    bool joined = x->callers_ca == NULL ||
                  callerca_join(ca_bundle_path(x->setup.ca), x->callers_ca, x->ca_bundle, err);
    if (joined && worker_open(&x->worker, &x->setup, seat, NULL, err))
        return true;
    callerca_remove(x->ca_bundle);
    setup_close(&x->setup);
    return false;
}

/* The exit status of the command, or -1: nothing was started. */
static int supervise(const struct config *config, const char *callers_ca, char **command)
{
    struct exec x = {.status = 2, .callers_ca = callers_ca};
    struct err err = {""};
    sigset_t all, old;
    if (!open_all(&x, config, &err)) {
        fprintf(stderr, "retryd exec: %s\n", err.text);
        return -1;
    }
    /* A signal between the fork and the handlers of the loop must reach the command, too. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    bool started = start(&x, command, &old);
    if (started) {
        loop_on_signal(x.worker.loop, SIGCHLD, on_child, &x);
        for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
            loop_on_signal(x.worker.loop, forwarded[i], on_signal, &x);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    /* Only now: the command is to find its caller's limits and privileges, not ours. */
    privs_harden();
    if (started)
        worker_run(&x.worker);
    else
        fprintf(stderr, "retryd exec: no new process: %s\n", strerror(errno));
    worker_close(&x.worker);
    setup_close(&x.setup);
    callerca_remove(x.ca_bundle);
    return x.status;
}

/* No log among the command's output unless a file is named. */
static void keep_quiet(struct load_result *r)
{
    if (r->config->log_file == NULL)
        r->config->log_level = LOG_LEVEL_WARN;
}

/* The bundle that a variable names is trusted upstream, too, unless the configuration says what is.
 */
static const char *trust_callers_ca(struct config *c)
{
    const char *callers = callerca_find(c->state_dir);
    if (callers != NULL && c->upstream_ca_file == NULL)
        c->upstream_ca_file = arena_strdup(&c->arena, slice_str(callers));
    return callers;
}

/* AWS_MAX_ATTEMPTS=1 is what users are told to set for clients. Here it is meant for the command:
 * read as retryd's own it would turn all retries off without a word. (retry.max_attempts: 1 does,
 * with one.) */
static bool load_without_clients_attempts(int argc, char **argv, struct load_result *r)
{
    const char *attempts = getenv("AWS_MAX_ATTEMPTS");
    bool for_command = attempts != NULL && strcmp(attempts, "1") == 0;
    if (for_command)
        unsetenv("AWS_MAX_ATTEMPTS");
    bool ok = load_config(argc, argv, r);
    if (for_command)
        setenv("AWS_MAX_ATTEMPTS", "1", 1);
    return ok;
}

int cmd_exec(int argc, char **argv)
{
    bool want_summary = false, want_timeline = false;
    const struct load_switch switches[] = {{.name = "--summary", .seen = &want_summary},
                                           {.name = "--timeline", .seen = &want_timeline},
                                           {NULL}};
    struct load_result r = {.switches = switches};
    int status = 2;
    if (!load_without_clients_attempts(argc, argv, &r)) {
        load_print_problems(&r);
    } else if (r.first_operand >= argc) {
        fputs("usage: retryd exec [-c FILE] [--set PATH=VALUE]... [-D NAME=VALUE]... [--summary] "
              "[--timeline] -- "
              "COMMAND [ARG]...\n",
              stderr);
    } else {
        struct summary s;
        load_print_notes(&r);
        summary_init(&s, want_timeline);
        struct accesslog_tap tap = summary_tap(&s);
        accesslog_set_tap(&tap);
        keep_quiet(&r);
        status = supervise(r.config, trust_callers_ca(r.config), argv + r.first_operand);
        accesslog_set_tap(NULL);
        if (status >= 0 && (want_summary || want_timeline))
            summary_print(&s, stderr);
        if (status < 0)
            status = 2;
        summary_fini(&s);
    }
    load_fini(&r);
    return status;
}
