/* Worker life. */
#include "daemon/worker.h"
#include "core/aws/aws.h"
#include "core/base/xalloc.h"
#include "daemon/notify.h"
#include "io/net/peerprobe.h"
#include "io/obs/log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The names that the CA may ever vouch for: the suffixes of the AWS partitions and the configured
 * hosts. */
static bool open_ca(struct worker *w, struct err *err)
{
    const struct config *c = w->config;
    size_t n_aws = 0, n = 0;
    const struct slice *aws = aws_suffixes(&n_aws);
    struct slice *names = xcalloc(n_aws + c->n_intercept_hosts, sizeof *names);
    bool ip_literals = false;
    for (size_t i = 0; c->intercept_aws && i < n_aws; i++)
        names[n++] = aws[i];
    for (size_t i = 0; i < c->n_intercept_hosts; i++) {
        struct authority a;
        const char *why;
        struct slice text = slice_str(c->intercept_hosts[i].text);
        if (authority_parse(text, 443, &a, &why) && a.kind != AUTHORITY_NAME)
            ip_literals = true;
        else
            names[n++] = text;
    }
    struct err note = {""};
    w->ca = ca_open(c->state_dir, names, n, ip_literals, time(NULL), &note, err);
    free(names);
    if (w->ca != NULL && note.text[0] != '\0')
        log_msg(LOG_LEVEL_WARN, "ca", "%s", note.text);
    return w->ca != NULL;
}

bool worker_open(struct worker *w, const struct config *config, struct err *err)
{
    *w = (struct worker){.config = config};
    if (!log_open(config->log_file, config->log_format == LOG_FORMAT_JSON, config->log_level, err))
        return false;
    if (!peerprobe_available())
        log_msg(LOG_LEVEL_WARN, "no_peer_probe",
                "netlink is not to be had: a client that only closed its end counts as waiting");
    w->loop = loop_new(err);
    if (w->loop != NULL && open_ca(w, err))
        w->proxy = proxy_new(w->loop, config, w->ca, err);
    if (w->proxy == NULL)
        worker_close(w);
    return w->proxy != NULL;
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
    notify_send("STOPPING=1");
    log_msg(LOG_LEVEL_INFO, "stopping", "clients=%u", w->proxy->n_clients);
    proxy_drain(w->proxy, on_drained, w);
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

void worker_handle_signals(struct worker *w)
{
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
    if (w->proxy != NULL)
        proxy_free(w->proxy);
    if (w->loop != NULL)
        loop_free(w->loop);
    if (w->ca != NULL)
        ca_free(w->ca);
    log_close();
    *w = (struct worker){0};
}

void worker_address(const struct worker *w, char out[AUTHORITY_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_storage *sa = listener_addr(w->proxy->listeners[0]);
    if (sa->ss_family == AF_INET6) {
        const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
        inet_ntop(AF_INET6, &sin6->sin6_addr, host, sizeof host);
        snprintf(out, AUTHORITY_TEXT_MAX, "[%s]:%u", host, ntohs(sin6->sin6_port));
    } else {
        const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
        inet_ntop(AF_INET, &sin->sin_addr, host, sizeof host);
        snprintf(out, AUTHORITY_TEXT_MAX, "%s:%u", host, ntohs(sin->sin_port));
    }
}
