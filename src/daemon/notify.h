/* The systemd notification protocol: one datagram to $NOTIFY_SOCKET (sd_notify(3)). */
#ifndef RETRYD_DAEMON_NOTIFY_H
#define RETRYD_DAEMON_NOTIFY_H

#include <stdbool.h>

/* Sends e.g. "READY=1\nSTATUS=…". Does nothing, and returns false, when nobody listens. */
bool notify_send(const char *state);

#endif
