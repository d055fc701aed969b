/* What a daemon has before it has processes: the log, the authority, the listening sockets, the
 * shared memory. Opened once, inherited by every worker. */
#ifndef RETRYD_DAEMON_SETUP_H
#define RETRYD_DAEMON_SETUP_H

#include "core/config/config.h"
#include "io/net/unixsock.h"
#include "io/shm/region.h"
#include "io/tls/ca.h"
#include "proxy/entrance.h"

struct setup {
    const struct config *config; /* borrowed */
    struct ca *ca;
    struct region *region;
    struct entrance *entrances;
    size_t n_entrances;
    bool sockets_open; /* those of the entrances are ours */
    struct unixsock admin;
    char *admin_path;
    pid_t admin_owner;  /* who made its file */
    bool admin_missing; /* another process has it: setup_retry_admin */
};

/* service: others reach it, so sockets that a service manager passed on (LISTEN_FDS) are used in
 * place of those that the configuration names, and there is an admin socket; else there is one
 * listener, on a loopback port that the kernel picks. False with *err: nothing is left open. Notes
 * are logged. */
bool setup_open(struct setup *s, const struct config *config, bool service, struct err *err);
/* The sockets are somebody else's from here on. */
void setup_forget_sockets(struct setup *s);
void setup_close_sockets(struct setup *s);
/* Tries for the admin socket again; never waits. True: s->admin.fd is it. */
bool setup_retry_admin(struct setup *s);
/* Seats in the region for n writers. Where a shared file has not as many left, the daemon goes on
 * with memory of its own, and says so. */
void setup_claim_seats(struct setup *s, int *seats, unsigned n);
/* Removes the files of unix sockets: for the process that opened them, at its end. That of the
 * admin socket alone: nothing happens in a process that did not. */
void setup_remove_admin(struct setup *s);
void setup_remove_files(struct setup *s);
void setup_close(struct setup *s);

#endif
