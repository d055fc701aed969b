/* Which hosts are reached without the parent proxy: the words of NO_PROXY as curl reads them
 * (since 7.86), and what other programs take besides: ports, "*." and
 * brackets.
 *
 *   *                 every host
 *   example.com       that name and every name below it; a dot in front or at the end is the same
 *   *.example.com     the names below it
 *   192.0.2.1, ::1    that address, IPv6 with or without brackets
 *   10.0.0.0/8        the addresses of that range
 *   example.com:8443  any of them (IPv6 in brackets), on that port only
 *
 * Names are compared without regard to letter case, addresses only with targets that are addresses:
 * nothing is resolved. A range of prefix 0 is all addresses of its family; curl takes it for the
 * one address. */
#ifndef RETRYD_CORE_CONFIG_NOPROXY_H
#define RETRYD_CORE_CONFIG_NOPROXY_H

#include "core/base/slice.h"
#include "core/http/uri.h"

enum noproxy_kind { NOPROXY_ALL, NOPROXY_NAME, NOPROXY_IPV4, NOPROXY_IPV6 };

struct noproxy_rule {
    enum noproxy_kind kind;
    uint16_t port;          /* 0: any */
    struct slice name;      /* borrowed from the word */
    bool below;             /* the name itself does not count */
    unsigned char addr[16]; /* network order; IPv4 in the first four bytes */
    unsigned prefix;
};

/* One word, without spaces or commas; its text must outlive the rule. False: it can match nothing.
 */
bool noproxy_parse(struct slice word, struct noproxy_rule *out);
bool noproxy_match(const struct noproxy_rule *rules, size_t n, const struct authority *to);

#endif
