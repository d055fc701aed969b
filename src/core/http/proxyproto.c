/* PROXY protocol headers. */
#include "core/http/proxyproto.h"
#include "core/base/num.h"

#include <arpa/inet.h>

static const struct slice v1_start = {"PROXY ", 6};
static const struct slice v2_start = {"\r\n\r\n\0\r\nQUIT\n", 12};

/* After the signature: version and command, family and protocol, length in two bytes. */
enum { V2_COMMAND_AT = 12, V2_FAMILY_AT = 13, V2_LENGTH_AT = 14, V2_HEAD = 16 };
enum { V2_LOCAL = 0x20, V2_PROXY = 0x21 };
enum { V2_UNSPEC = 0x00, V2_TCP4 = 0x11, V2_TCP6 = 0x21, V2_UNIX = 0x31 };
enum { V2_TCP4_BYTES = 12, V2_TCP6_BYTES = 36, V2_UNIX_BYTES = 216 };

static enum proxyproto_result bad(struct proxyproto *out, const char *problem)
{
    *out = (struct proxyproto){.problem = problem};
    return PROXYPROTO_BAD;
}

static bool begins_like(struct slice in, struct slice start)
{
    return slice_starts(start, slice_of(in.p, in.n < start.n ? in.n : start.n));
}

/* --- version 1 --- */

/* Decimal without leading zeros. */
static bool read_port(struct slice text, uint16_t *port)
{
    uint64_t n;
    if (!num_u64(text, 5, UINT16_MAX, &n) || (text.n > 1 && text.p[0] == '0'))
        return false;
    *port = (uint16_t)n;
    return true;
}

static bool read_address(struct slice text, bool ipv6, unsigned char out[16])
{
    char name[INET6_ADDRSTRLEN];
    if (text.n == 0 || text.n >= sizeof name)
        return false;
    memcpy(name, text.p, text.n);
    name[text.n] = '\0';
    return inet_pton(ipv6 ? AF_INET6 : AF_INET, name, out) == 1;
}

/* TCP4 or TCP6, then source, destination and their ports; or UNKNOWN and whatever. */
static bool read_line(struct slice line, struct proxyproto *out)
{
    struct slice part[5], rest = line;
    unsigned char destination[16];
    uint16_t port;
    size_t n = 0;
    bool done = false;
    for (; n < 5 && slice_next(&rest, ' ', &part[n], &done); n++)
        ;
    if (n > 0 && slice_eq(part[0], SLICE("UNKNOWN")))
        return true;
    out->named = true;
    out->ipv6 = n > 0 && slice_eq(part[0], SLICE("TCP6"));
    return n == 5 && done && (out->ipv6 || slice_eq(part[0], SLICE("TCP4"))) &&
           read_address(part[1], out->ipv6, out->address) &&
           read_address(part[2], out->ipv6, destination) && read_port(part[3], &out->port) &&
           read_port(part[4], &port);
}

static enum proxyproto_result read_v1(struct slice in, struct proxyproto *out)
{
    size_t end = v1_start.n;
    while (end < in.n && end < PROXYPROTO_V1_MAX && in.p[end] >= ' ' && in.p[end] <= '~')
        end++;
    if (end >= PROXYPROTO_V1_MAX - 1)
        return bad(out, "the line is too long");
    if (end == in.n)
        return PROXYPROTO_MORE;
    if (in.p[end] != '\r' || (end + 1 < in.n && in.p[end + 1] != '\n'))
        return bad(out, "the line does not end in CRLF");
    if (end + 1 == in.n)
        return PROXYPROTO_MORE;
    if (!read_line(slice_of(in.p + v1_start.n, end - v1_start.n), out))
        return bad(out, "the line does not say TCP4, TCP6 or UNKNOWN as it must");
    out->consumed = end + 2;
    return PROXYPROTO_OK;
}

/* --- version 2 --- */

static unsigned byte_at(struct slice in, size_t at)
{
    return (unsigned char)in.p[at];
}

/* How many bytes of addresses a family has; -1: none that comes over a stream. */
static int address_bytes(unsigned family)
{
    switch (family) {
    case V2_UNSPEC:
        return 0;
    case V2_TCP4:
        return V2_TCP4_BYTES;
    case V2_TCP6:
        return V2_TCP6_BYTES;
    case V2_UNIX:
        return V2_UNIX_BYTES;
    default:
        return -1;
    }
}

/* Source and destination, then their ports. */
static void take_address(struct slice block, bool ipv6, struct proxyproto *out)
{
    size_t n = ipv6 ? 16 : 4;
    out->named = true;
    out->ipv6 = ipv6;
    memcpy(out->address, block.p, n);
    out->port = (uint16_t)(byte_at(block, 2 * n) << 8 | byte_at(block, 2 * n + 1));
}

static enum proxyproto_result read_v2(struct slice in, struct proxyproto *out)
{
    if (in.n > V2_COMMAND_AT && byte_at(in, V2_COMMAND_AT) != V2_LOCAL &&
        byte_at(in, V2_COMMAND_AT) != V2_PROXY)
        return bad(out, "neither LOCAL nor PROXY of version 2");
    if (in.n < V2_HEAD)
        return PROXYPROTO_MORE;
    bool local = byte_at(in, V2_COMMAND_AT) == V2_LOCAL;
    unsigned family = byte_at(in, V2_FAMILY_AT);
    int needed = address_bytes(family);
    size_t n = byte_at(in, V2_LENGTH_AT) << 8 | byte_at(in, V2_LENGTH_AT + 1);
    if (V2_HEAD + n > PROXYPROTO_V2_MAX)
        return bad(out, "the header is too long");
    if (!local && (needed < 0 || n < (size_t)needed))
        return bad(out, needed < 0 ? "not a family of stream sockets" : "addresses are cut short");
    if (in.n < V2_HEAD + n)
        return PROXYPROTO_MORE;
    if (!local && (family == V2_TCP4 || family == V2_TCP6))
        take_address(slice_of(in.p + V2_HEAD, n), family == V2_TCP6, out);
    out->consumed = V2_HEAD + n;
    return PROXYPROTO_OK;
}

enum proxyproto_result proxyproto_read(struct slice in, struct proxyproto *out)
{
    *out = (struct proxyproto){.named = false};
    if (in.n == 0)
        return PROXYPROTO_MORE;
    if (begins_like(in, v1_start))
        return in.n < v1_start.n ? PROXYPROTO_MORE : read_v1(in, out);
    if (begins_like(in, v2_start))
        return in.n < v2_start.n ? PROXYPROTO_MORE : read_v2(in, out);
    return bad(out, "no header of the PROXY protocol");
}
