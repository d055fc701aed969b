/* The address rules (security requirement I3) as one table, and the own-listener rule (I5).
 *
 * An address is looked at in all its meanings: as what it is, and as the IPv4 address that an IPv6
 * form embeds, since a translator or the kernel may take the packet there. The allow list names
 * socket addresses as they are: listing 10.0.0.1 does not list its NAT64 form. */
#include "io/net/addrpolicy.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rule {
    unsigned char addr[16];
    unsigned prefix;
    bool private; /* open to those who may go there */
    const char *why;
};

#define V4(a, b, c, d)                                                                             \
    {                                                                                              \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                                       \
    }

/* First match decides. */
static const struct rule RULES[] = {
    {V4(169, 254, 169, 254), 128, false, "metadata"}, /* instance metadata */
    {V4(169, 254, 170, 2), 128, false, "metadata"},   /* ECS task credentials */
    {V4(169, 254, 170, 23), 128, false, "metadata"},  /* EKS pod identity */
    {V4(0, 0, 0, 0), 96 + 8, false, "reserved"},      /* "this host": the kernel dials loopback */
    {V4(10, 0, 0, 0), 96 + 8, true, "private"},
    {V4(100, 64, 0, 0), 96 + 10, true, "private"},
    {V4(127, 0, 0, 0), 96 + 8, false, "loopback"},
    {V4(169, 254, 0, 0), 96 + 16, false, "link-local"},
    {V4(172, 16, 0, 0), 96 + 12, true, "private"},
    {V4(192, 0, 0, 0), 96 + 24, false, "reserved"},
    {V4(192, 168, 0, 0), 96 + 16, true, "private"},
    {V4(198, 18, 0, 0), 96 + 15, false, "reserved"},
    {V4(224, 0, 0, 0), 96 + 4, false, "multicast"},
    {V4(240, 0, 0, 0), 96 + 4, false, "reserved"}, /* and broadcast */

    {{0}, 128, false, "reserved"}, /* ::, the kernel dials loopback */
    {{[15] = 1}, 128, false, "loopback"},
    {{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, false, "metadata"}, /* fd00:ec2::254 */
    {{0xfd, 0, 0x0e, 0xc2, [15] = 0x23}, 128, false, "metadata"}, /* EKS: fd00:ec2::23 */
    {{0xfe, 0x80}, 10, false, "link-local"},
    {{0xfc}, 7, true, "private"},
    {{0xff}, 8, false, "multicast"},
};

static const unsigned char MAPPED[16] = V4(0, 0, 0, 0);

/* Where IPv6 addresses carry an IPv4 address, and at which byte. */
static const struct {
    unsigned char addr[16];
    unsigned prefix;
    unsigned at;
} EMBEDDED[] = {
    {{0}, 96, 12},                   /* ::/96, compatible */
    {{0, 0x64, 0xff, 0x9b}, 96, 12}, /* 64:ff9b::/96, NAT64 */
    {{0x20, 0x02}, 16, 2},           /* 2002::/16, 6to4 */
};

static bool in_range(const unsigned char addr[16], const unsigned char range[16], unsigned prefix)
{
    unsigned whole = prefix / 8;
    unsigned rest = prefix % 8;
    if (memcmp(addr, range, whole) != 0)
        return false;
    return rest == 0 || (addr[whole] ^ range[whole]) >> (8 - rest) == 0;
}

static const struct rule *find_rule(const unsigned char addr[16])
{
    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        if (in_range(addr, RULES[i].addr, RULES[i].prefix))
            return &RULES[i];
    }
    return NULL;
}

/* As 128 bits, IPv4 mapped, so that an IPv4 address and its mapped form are one. */
static bool to_bits(const struct sockaddr *sa, unsigned char addr[16], in_port_t *port)
{
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)sa;
        memcpy(addr, MAPPED, 12);
        memcpy(addr + 12, &v4->sin_addr, 4);
        *port = v4->sin_port;
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)sa;
        memcpy(addr, &v6->sin6_addr, 16);
        *port = v6->sin6_port;
        return true;
    }
    return false;
}

enum local { NOT_LOCAL, ANY, LOOPBACK };

static enum local locality(const unsigned char addr[16])
{
    static const unsigned char v4_loopback[16] = V4(127, 0, 0, 0);
    static const unsigned char none[16] = {0};
    static const unsigned char loopback[16] = {[15] = 1};
    if (memcmp(addr, none, 16) == 0 || memcmp(addr, MAPPED, 16) == 0)
        return ANY;
    if (memcmp(addr, loopback, 16) == 0 || in_range(addr, v4_loopback, 96 + 8))
        return LOOPBACK;
    return NOT_LOCAL;
}

/* Some interface of this machine has the address: then a socket can be bound to it. */
static bool is_ours(const struct sockaddr *sa)
{
    struct sockaddr_storage any = {.ss_family = sa->sa_family};
    socklen_t n =
        sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    memcpy(&any, sa, n);
    if (sa->sa_family == AF_INET)
        ((struct sockaddr_in *)&any)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&any)->sin6_port = 0;
    int fd = socket(sa->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ours = fd >= 0 && bind(fd, (const struct sockaddr *)&any, n) == 0;
    if (fd >= 0)
        close(fd);
    return ours;
}

/* As the IPv4 socket that a mapped address stands for. */
static const struct sockaddr *unmapped(const struct sockaddr *sa, const unsigned char addr[16],
                                       struct sockaddr_in *v4)
{
    if (sa->sa_family != AF_INET6 || memcmp(addr, MAPPED, 12) != 0)
        return sa;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET};
    memcpy(&v4->sin_addr, addr + 12, 4);
    return (const struct sockaddr *)v4;
}

bool addr_policy_is_own(const struct addr_policy *p, const struct sockaddr *sa)
{
    unsigned char addr[16];
    unsigned char own[16];
    in_port_t port;
    in_port_t own_port;
    if (!to_bits(sa, addr, &port))
        return false;
    for (size_t i = 0; i < p->n_listeners; i++) {
        if (!to_bits((const struct sockaddr *)&p->listeners[i], own, &own_port) || own_port != port)
            continue;
        /* A wildcard listener answers on every address of the machine; a dialled wildcard goes to
         * loopback. */
        struct sockaddr_in v4;
        if (memcmp(own, addr, 16) == 0 || (locality(own) == LOOPBACK && locality(addr) == ANY) ||
            (locality(own) == ANY &&
             (locality(addr) != NOT_LOCAL || is_ours(unmapped(sa, addr, &v4)))))
            return true;
    }
    return false;
}

static bool listed(const struct addr_policy *p, const unsigned char addr[16])
{
    for (size_t i = 0; i < p->n_allow; i++) {
        if (p->allow[i].prefix <= 128 && in_range(addr, p->allow[i].addr, p->allow[i].prefix))
            return true;
    }
    return false;
}

bool addr_policy_allows(const struct addr_policy *p, const struct sockaddr *sa, bool private_ok,
                        const char **why)
{
    unsigned char addr[16];
    in_port_t port;
    *why = NULL;
    if (!to_bits(sa, addr, &port)) {
        *why = "reserved";
        return false;
    }
    if (addr_policy_is_own(p, sa)) {
        *why = "own listener";
        return false;
    }
    if (listed(p, addr))
        return true;
    const struct rule *rule = find_rule(addr);
    for (size_t i = 0; !rule && i < sizeof EMBEDDED / sizeof EMBEDDED[0]; i++) {
        if (!in_range(addr, EMBEDDED[i].addr, EMBEDDED[i].prefix))
            continue;
        unsigned char inner[16];
        memcpy(inner, MAPPED, 12);
        memcpy(inner + 12, addr + EMBEDDED[i].at, 4);
        rule = find_rule(inner);
    }
    if (!rule || (rule->private && private_ok))
        return true;
    *why = rule->why;
    return false;
}
