/* NO_PROXY words, read once and matched for each connection. */
#include "core/config/noproxy.h"

#include "core/base/num.h"
#include <arpa/inet.h>

enum { ADDRESS_TEXT_MAX = 46 }; /* INET6_ADDRSTRLEN */

/* An address in its usual spelling. */
static bool read_address(struct slice text, struct noproxy_rule *r)
{
    char buf[ADDRESS_TEXT_MAX];
    if (text.n >= sizeof buf)
        return false;
    memcpy(buf, text.p, text.n);
    buf[text.n] = '\0';
    if (inet_pton(AF_INET, buf, r->addr) == 1) {
        r->kind = NOPROXY_IPV4;
        r->prefix = 32;
        return true;
    }
    r->kind = NOPROXY_IPV6;
    r->prefix = 128;
    return inet_pton(AF_INET6, buf, r->addr) == 1;
}

/* ADDRESS or ADDRESS/PREFIX. */
static bool read_range(struct slice text, struct noproxy_rule *r)
{
    size_t slash = slice_index(text, '/');
    uint64_t bits;
    if (!read_address(slice_of(text.p, slash), r))
        return false;
    if (slash == text.n)
        return true;
    if (!num_u64(slice_of(text.p + slash + 1, text.n - slash - 1), 3, r->prefix, &bits))
        return false;
    r->prefix = (unsigned)bits;
    return true;
}

static bool read_port(struct slice text, uint16_t *port)
{
    uint64_t n;
    if (!num_u64(text, 5, UINT16_MAX, &n) || n == 0)
        return false;
    *port = (uint16_t)n;
    return true;
}

static struct slice without_dots(struct slice s)
{
    if (s.n > 0 && s.p[0] == '.')
        s = slice_of(s.p + 1, s.n - 1);
    if (s.n > 0 && s.p[s.n - 1] == '.')
        s.n--;
    return s;
}

/* "[ADDRESS]", "[ADDRESS/PREFIX]", "[ADDRESS]/PREFIX" without its brackets, into buf. False: the
 * brackets do not fit. */
static bool without_brackets(struct slice text, char buf[ADDRESS_TEXT_MAX + 4], struct slice *out)
{
    size_t end = slice_index(text, ']');
    size_t rest = text.n - end - 1;
    if (end == text.n || end - 1 + rest > ADDRESS_TEXT_MAX + 3 ||
        (rest > 0 && text.p[end + 1] != '/'))
        return false;
    memcpy(buf, text.p + 1, end - 1);
    if (rest > 0)
        memcpy(buf + end - 1, text.p + end + 1, rest);
    *out = slice_of(buf, end - 1 + rest);
    return true;
}

/* Cuts ":PORT" off. A text with several colons outside brackets is an IPv6 address. */
static bool cut_port(struct slice *text, uint16_t *port)
{
    size_t start = text->n > 0 && text->p[0] == '[' ? slice_index(*text, ']') : 0;
    struct slice after = slice_of(text->p + start, text->n - start);
    size_t colon = slice_index(after, ':');
    if (colon == after.n)
        return true;
    struct slice digits = slice_of(after.p + colon + 1, after.n - colon - 1);
    if (start == 0 && slice_index(digits, ':') < digits.n)
        return true;
    text->n = start + colon;
    return read_port(digits, port);
}

bool noproxy_parse(struct slice word, struct noproxy_rule *out)
{
    struct noproxy_rule r = {.kind = NOPROXY_NAME};
    char buf[ADDRESS_TEXT_MAX + 4];
    if (!cut_port(&word, &r.port) || word.n == 0)
        return false;
    if (slice_eq(word, SLICE("*"))) {
        r.kind = NOPROXY_ALL;
    } else if (word.p[0] == '[') {
        struct slice inside;
        if (!without_brackets(word, buf, &inside) || !read_range(inside, &r) ||
            r.kind != NOPROXY_IPV6)
            return false;
    } else if (!read_range(word, &r)) {
        r.kind = NOPROXY_NAME;
        r.below = slice_starts(word, SLICE("*."));
        r.name = without_dots(r.below ? slice_of(word.p + 1, word.n - 1) : word);
        if (r.name.n == 0 || slice_index(r.name, '/') < r.name.n)
            return false;
    }
    *out = r;
    return true;
}

static bool in_range(const struct noproxy_rule *r, const unsigned char *addr)
{
    unsigned whole = r->prefix / 8, rest = r->prefix % 8;
    if (memcmp(r->addr, addr, whole) != 0)
        return false;
    return rest == 0 || (r->addr[whole] ^ addr[whole]) >> (8 - rest) == 0;
}

static bool is_named(const struct noproxy_rule *r, struct slice host)
{
    if (!slice_ends_nocase(host, r->name))
        return false;
    return host.n == r->name.n ? !r->below : host.p[host.n - r->name.n - 1] == '.';
}

static bool matches(const struct noproxy_rule *r, const struct authority *to)
{
    if (r->port != 0 && r->port != to->port)
        return false;
    switch (r->kind) {
    case NOPROXY_ALL:
        return true;
    case NOPROXY_NAME:
        return to->kind == AUTHORITY_NAME && is_named(r, slice_str(to->host));
    case NOPROXY_IPV4:
        return to->kind == AUTHORITY_IPV4 && in_range(r, to->addr);
    case NOPROXY_IPV6:
        return to->kind == AUTHORITY_IPV6 && in_range(r, to->addr);
    }
    return false;
}

bool noproxy_match(const struct noproxy_rule *rules, size_t n, const struct authority *to)
{
    for (size_t i = 0; i < n; i++)
        if (matches(&rules[i], to))
            return true;
    return false;
}
