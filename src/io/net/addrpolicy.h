/* Which addresses may be dialled (security requirements I3, I5). Applied to each socket address
 * right before connect(): what was checked is what is dialled. */
#ifndef RETRYD_IO_NET_ADDRPOLICY_H
#define RETRYD_IO_NET_ADDRPOLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct addr_range {
    unsigned char addr[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned prefix;        /* of the 128 bits */
};

struct addr_policy {
    const struct addr_range *allow; /* beats every rule below but own listeners */
    size_t n_allow;
    const struct sockaddr_storage *listeners; /* the proxy's own: never */
    size_t n_listeners;
};

/* True if dialling sa is allowed. private_ok: private addresses (10/8, 172.16/12, 192.168/16,
 * 100.64/10, fc00::/7) are. *why gets a static reason when denied ("loopback", "link-local",
 * "metadata", "private", "own listener", "reserved", "multicast"). */
bool addr_policy_allows(const struct addr_policy *p, const struct sockaddr *sa, bool private_ok,
                        const char **why);
/* True if sa is one of the proxy's own listeners: the rule that nothing overrides (I5). */
bool addr_policy_is_own(const struct addr_policy *p, const struct sockaddr *sa);

#endif
