/* Socket addresses as people write them: "192.0.2.1:80", "[2001:db8::1]:443", "unix". */
#ifndef RETRYD_IO_NET_ADDRTEXT_H
#define RETRYD_IO_NET_ADDRTEXT_H

#include <sys/socket.h>

enum { ADDRTEXT_BYTES = 72 }; /* the longest IPv6 text, a scope, brackets, port */

/* Fills buf and returns it. */
const char *addrtext(const struct sockaddr *sa, char buf[ADDRTEXT_BYTES]);
/* Of the other end of a connected socket. */
const char *addrtext_peer(int fd, char buf[ADDRTEXT_BYTES]);

#endif
