/* Socket addresses as text, for logs and messages. */
#include "io/net/addrtext.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

const char *addrtext(const struct sockaddr *sa, char buf[ADDRTEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)sa;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(buf, ADDRTEXT_BYTES, "%s:%u", host, ntohs(v4->sin_port));
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)sa;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(buf, ADDRTEXT_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        snprintf(buf, ADDRTEXT_BYTES, "%s", sa->sa_family == AF_UNIX ? "unix" : "unknown");
    }
    return buf;
}

const char *addrtext_peer(int fd, char buf[ADDRTEXT_BYTES])
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof peer;
    (void)getpeername(fd, (struct sockaddr *)&peer, &len);
    return addrtext((struct sockaddr *)&peer, buf);
}
