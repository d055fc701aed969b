/* File descriptors: as many as the system lets us have, and no more clients than those carry
 * (security requirement J2). */
#ifndef RETRYD_DAEMON_NOFILE_H
#define RETRYD_DAEMON_NOFILE_H

/* Raises the soft limit to the hard one. What is executed later inherits it. */
void nofile_raise(void);
/* How many clients fit into the descriptors of so many processes: two for each, its own and its
 * upstream's, and 64 of each process for everything else. At least 1. */
unsigned nofile_clients(unsigned processes);

#endif
