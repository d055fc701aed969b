/* What the process may do and show (security requirements H4, L1). */
#ifndef RETRYD_DAEMON_PRIVS_H
#define RETRYD_DAEMON_PRIVS_H

/* No new privileges, no core dumps, not readable by other processes of the user; as many
 * descriptors as the administrator allows; SIGPIPE ignored. Cannot fail in a way that matters. */
void privs_harden(void);
/* Gives up all capabilities: once the sockets are bound and the keys are read, none is needed. */
void privs_drop(void);

#endif
