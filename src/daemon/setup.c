/* Opening what all processes of a daemon share. */
#include "daemon/setup.h"
#include "core/aws/aws.h"
#include "core/base/xalloc.h"
#include "daemon/listenfds.h"
#include "daemon/nofile.h"
#include "io/net/peerprobe.h"
#include "io/obs/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ADMIN_OWNER_ONLY = 0600, ADMIN_GROUP_TOO = 0660 };

/* The line of a failure begins with the option that has to do with it. */
static bool of_option(const char *option, struct err *err)
{
    struct err inner = *err;
    return err_set(err, "%s: %.480s", option, inner.text);
}

/* The names that the CA may ever vouch for: the suffixes of the AWS partitions and the configured
 * hosts. */
static bool open_ca(struct setup *s, struct err *err)
{
    const struct config *c = s->config;
    size_t n_aws = 0, n = 0;
    const struct slice *aws = aws_suffixes(&n_aws);
    struct slice *names = xcalloc(n_aws + c->n_intercept_hosts + 1, sizeof *names);
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
    /* Nothing is to be opened: a name that nobody has (RFC 6761) keeps the authority constrained.
     */
    if (n == 0 && !ip_literals)
        names[n++] = SLICE("retryd.invalid");
    struct err note = {""};
    s->ca = ca_open(c->state_dir, names, n, ip_literals, time(NULL), &note, err);
    free(names);
    if (s->ca != NULL && note.text[0] != '\0')
        log_msg(LOG_LEVEL_WARN, "ca", "%s", note.text);
    return s->ca != NULL || of_option("state_dir", err);
}

static bool open_sockets(struct setup *s, bool service, struct err *err)
{
    const struct config *c = s->config;
    bool ok = service ? listenfds_inherit(c, &s->entrances, &s->n_entrances, err)
                      : listenfds_private(c, &s->entrances, &s->n_entrances, err);
    if (ok && s->n_entrances == 0)
        ok = listenfds_open(c, &s->entrances, &s->n_entrances, err);
    s->sockets_open = ok;
    return ok;
}

static bool bind_admin(struct setup *s, struct err *err)
{
    const char *group = s->config->admin_group;
    mode_t mode = group != NULL ? ADMIN_GROUP_TOO : ADMIN_OWNER_ONLY;
    if (!unixsock_open(&s->admin, s->admin_path, mode, group, err))
        return false;
    s->admin_owner = getpid();
    return true;
}

/* Two daemons of one user and state directory are fine, and in a restart the old one may still be
 * at its last requests: the new one gets the socket when it is free. */
static bool open_admin(struct setup *s, struct err *err)
{
    const struct config *c = s->config;
    static const char name[] = "/admin.sock";
    size_t n = strlen(c->state_dir) + sizeof name;
    if (c->admin_socket != NULL) {
        s->admin_path = xstrdup(c->admin_socket);
    } else {
        s->admin_path = xmalloc(n);
        snprintf(s->admin_path, n, "%s%s", c->state_dir, name);
    }
    pid_t holder;
    if (unixsock_is_held(s->admin_path, &holder)) {
        s->admin_missing = true;
        log_msg(LOG_LEVEL_WARN, "no_admin_socket",
                "%s: process %d has it; tried again every second until it is free", s->admin_path,
                holder);
        return true;
    }
    if (bind_admin(s, err))
        return true;
    if (c->admin_socket != NULL || c->admin_group != NULL)
        return of_option("admin.socket", err);
    log_msg(LOG_LEVEL_WARN, "no_admin_socket", "%s", err->text);
    return true;
}

bool setup_retry_admin(struct setup *s)
{
    struct err err;
    pid_t holder;
    if (unixsock_is_held(s->admin_path, &holder) || !bind_admin(s, &err))
        return false;
    s->admin_missing = false;
    log_msg(LOG_LEVEL_INFO, "admin_socket", "%s: free by now, and taken", s->admin_path);
    return true;
}

static bool open_log(const struct config *c, struct err *err)
{
    bool json = c->log_format == LOG_FORMAT_JSON;
    return log_open(c->log_file, json, c->log_level, err) || of_option("log.file", err);
}

static bool open_region(struct setup *s, struct err *err)
{
    const struct config *c = s->config;
    const struct region_options options = {.path = c->budgets_file, .slots = c->budgets_entries};
    s->region = region_open(&options, err);
    return s->region != NULL || of_option("budgets.file", err);
}

static bool claim_seats(struct region *r, int *seats, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        seats[i] = region_seat_claim(r);
        if (seats[i] >= 0)
            continue;
        while (i-- > 0)
            region_seat_release(r, seats[i]);
        return false;
    }
    return true;
}

void setup_claim_seats(struct setup *s, int *seats, unsigned n)
{
    const struct region_options own = {.slots = s->config->budgets_entries};
    struct err err;
    if (claim_seats(s->region, seats, n))
        return;
    log_msg(LOG_LEVEL_WARN, "budgets_apart",
            "%s: its %d seats do not suffice; this daemon keeps its quotas and limiters for itself",
            s->config->budgets_file, REGION_SEATS);
    region_close(s->region);
    s->region = region_open(&own, &err);
    bool seated = s->region != NULL && claim_seats(s->region, seats, n);
    ASSERT(seated); /* there are more seats than a daemon may have workers */
}

bool setup_open(struct setup *s, const struct config *config, bool service, struct err *err)
{
    *s = (struct setup){.config = config, .admin = {.fd = -1}};
    if (!open_log(config, err))
        return false;
    if (service)
        nofile_raise();
    if (!peerprobe_available())
        log_msg(LOG_LEVEL_WARN, "no_peer_probe",
                "netlink is not to be had: a client that only closed its end counts as waiting");
    if (open_region(s, err) && open_ca(s, err) && open_sockets(s, service, err) &&
        (!service || open_admin(s, err)))
        return true;
    setup_close(s);
    return false;
}

void setup_forget_sockets(struct setup *s)
{
    s->sockets_open = false;
    s->admin.fd = -1;
}

void setup_close_sockets(struct setup *s)
{
    for (size_t i = 0; i < s->n_entrances && s->sockets_open; i++)
        close(s->entrances[i].fd);
    if (s->admin.fd >= 0)
        close(s->admin.fd);
    setup_forget_sockets(s);
}

void setup_remove_admin(struct setup *s)
{
    if (s->admin_owner == getpid())
        unixsock_remove(&s->admin, s->admin_path);
}

void setup_remove_files(struct setup *s)
{
    setup_remove_admin(s);
    for (size_t i = 0; i < s->n_entrances; i++)
        entrance_remove_file(&s->entrances[i]);
}

void setup_close(struct setup *s)
{
    setup_close_sockets(s);
    listenfds_free(s->entrances, s->n_entrances);
    free(s->admin_path);
    if (s->ca != NULL)
        ca_free(s->ca);
    if (s->region != NULL)
        region_close(s->region);
    log_close();
    *s = (struct setup){.admin = {.fd = -1}};
}
