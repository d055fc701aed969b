/* Authorities and request targets. An authority either has one unmistakable reading or is refused:
 * what a resolver, a certificate check or another parser could read differently does not get
 * through (RFC 3986 3.2; security requirements C5, I4). */
#include "core/http/uri.h"
#include "core/base/fixtext.h"
#include "core/base/num.h"

#include <arpa/inet.h>

enum { LABEL_MAX = 63, PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

static bool fail(const char **why, const char *text)
{
    *why = text;
    return false;
}

static bool parse_port(struct slice text, uint16_t *port, const char **why)
{
    uint64_t value;
    if (!num_u64(text, PORT_DIGITS_MAX, PORT_MAX, &value) || value == 0)
        return fail(why, "bad port");
    *port = (uint16_t)value;
    return true;
}

static bool parse_ipv6(struct slice text, struct authority *out, const char **why)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.n >= sizeof copy || slice_index(text, '\0') < text.n)
        return fail(why, "bad IPv6 address");
    if (slice_index(text, '%') < text.n)
        return fail(why, "IPv6 zone id");
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (inet_pton(AF_INET6, copy, out->addr) != 1)
        return fail(why, "bad IPv6 address");
    inet_ntop(AF_INET6, out->addr, out->host, sizeof out->host);
    out->kind = AUTHORITY_IPV6;
    return true;
}

/* Exactly four decimal octets without leading zeros. */
static bool parse_ipv4(struct slice text, unsigned char addr[4])
{
    struct slice part;
    size_t octets = 0;
    for (bool done = false; slice_next(&text, '.', &part, &done);) {
        uint64_t value;
        if (octets == 4 || !num_u64(part, 3, 255, &value) || (part.n > 1 && part.p[0] == '0'))
            return false;
        addr[octets++] = (unsigned char)value;
    }
    return octets == 4;
}

/* Decimal, octal or hexadecimal: what address parsers of the C library would take for a number. */
static bool is_number(struct slice label)
{
    if (slice_starts_nocase(label, SLICE("0x")))
        return true;
    for (size_t i = 0; i < label.n; i++)
        if (!ascii_is_digit(label.p[i]))
            return false;
    return true;
}

static bool is_name_byte(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c) || c == '-' || c == '_' || c == '.';
}

static bool parse_name(struct slice text, struct authority *out, const char **why)
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_name_byte(text.p[i]))
            return fail(why, text.p[i] == '@' ? "user information in the authority"
                                              : "bad byte in the host name");
    if (text.n > 0 && text.p[text.n - 1] == '.')
        text.n--;
    if (text.n == 0)
        return fail(why, "empty host");
    if (text.n > HTTP_HOST_MAX)
        return fail(why, "host name too long");
    struct slice rest = text, label = SLICE_NONE;
    for (bool done = false; slice_next(&rest, '.', &label, &done);)
        if (label.n == 0 || label.n > LABEL_MAX)
            return fail(why, "empty or too long label in the host name");
    if (is_number(label))
        return fail(why, "number as a host name");
    for (size_t i = 0; i < text.n; i++)
        out->host[i] = ascii_lower(text.p[i]);
    out->kind = AUTHORITY_NAME;
    return true;
}

static bool parse_host(struct slice text, struct authority *out, const char **why)
{
    unsigned char addr[4];
    if (!parse_ipv4(text, addr))
        return parse_name(text, out, why);
    memcpy(out->addr, addr, sizeof addr);
    memcpy(out->host, text.p, text.n);
    out->kind = AUTHORITY_IPV4;
    return true;
}

bool authority_parse(struct slice text, uint16_t default_port, struct authority *out,
                     const char **why)
{
    *out = (struct authority){.port = default_port};
    struct slice after;
    if (text.n > 0 && text.p[0] == '[') {
        size_t close = slice_index(text, ']');
        if (close == text.n)
            return fail(why, "bracket not closed");
        if (!parse_ipv6(slice_of(text.p + 1, close - 1), out, why))
            return false;
        after = slice_of(text.p + close + 1, text.n - close - 1);
    } else {
        size_t colon = slice_index(text, ':');
        if (!parse_host(slice_of(text.p, colon), out, why))
            return false;
        after = slice_of(text.p + colon, text.n - colon);
    }
    if (after.n == 0)
        return default_port != 0 || fail(why, "port missing");
    if (after.p[0] != ':')
        return fail(why, "text after the host");
    return parse_port(slice_of(after.p + 1, after.n - 1), &out->port, why);
}

bool authority_eq(const struct authority *a, const struct authority *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void authority_text(const struct authority *a, char out[AUTHORITY_TEXT_MAX])
{
    bool brackets = a->kind == AUTHORITY_IPV6;
    struct fixtext t = fixtext_in(out, AUTHORITY_TEXT_MAX);
    fixtext_put(&t, brackets ? SLICE("[") : SLICE_NONE);
    fixtext_put(&t, slice_str(a->host));
    fixtext_put(&t, brackets ? SLICE("]:") : SLICE(":"));
    fixtext_number(&t, a->port);
}

static enum target_form bad(struct target *out, const char **why, const char *text)
{
    *why = text;
    return out->form = TARGET_BAD;
}

static enum target_form parse_absolute(struct slice text, struct target *out, const char **why)
{
    static const struct slice http = {"http://", 7}, https = {"https://", 8};
    out->https = slice_starts_nocase(text, https);
    if (!out->https && !slice_starts_nocase(text, http))
        return bad(out, why, "target is not an http or https URI");
    size_t start = out->https ? https.n : http.n, end = start;
    while (end < text.n && text.p[end] != '/' && text.p[end] != '?')
        end++;
    if (!authority_parse(slice_of(text.p + start, end - start), out->https ? 443 : 80,
                         &out->authority, why))
        return out->form = TARGET_BAD;
    out->no_path = end == text.n;
    out->path_query = out->no_path ? SLICE("/") : slice_of(text.p + end, text.n - end);
    return out->form = TARGET_ABSOLUTE;
}

enum target_form target_parse(struct slice text, bool is_connect, struct target *out,
                              const char **why)
{
    *out = (struct target){.path_query = text};
    if (is_connect) {
        out->path_query = SLICE_NONE;
        return out->form =
                   authority_parse(text, 0, &out->authority, why) ? TARGET_AUTHORITY : TARGET_BAD;
    }
    if (slice_eq(text, SLICE("*")))
        return out->form = TARGET_ASTERISK;
    if (text.n > 0 && text.p[0] == '/')
        return out->form = TARGET_ORIGIN;
    return parse_absolute(text, out, why);
}

struct slice target_path(struct slice path_query)
{
    size_t end = slice_index(path_query, '?');
    return end > 0 ? slice_of(path_query.p, end) : SLICE("/");
}

struct slice target_query(struct slice path_query)
{
    size_t at = slice_index(path_query, '?');
    return at < path_query.n ? slice_of(path_query.p + at + 1, path_query.n - at - 1) : SLICE_NONE;
}

struct slice query_param(struct slice query, struct slice name)
{
    struct slice part;
    for (bool done = false; slice_next(&query, '&', &part, &done);) {
        size_t eq = slice_index(part, '=');
        if (!slice_eq(slice_of(part.p, eq), name))
            continue;
        return eq < part.n ? slice_of(part.p + eq + 1, part.n - eq - 1) : SLICE("");
    }
    return SLICE_NONE;
}
