/* Reading single values. Hosts and addresses go through the one authority parser (security
 * requirement C5), numbers through num.h (K7). */
#include "core/config/value.h"
#include "core/base/attr.h"
#include "core/base/num.h"
#include "core/base/units.h"

#include <stdio.h>

bool value_bool(struct slice s, bool *out)
{
    int position;
    if (!value_choice(s, SLICE("false|true"), &position))
        return false;
    *out = position == 1;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit duration_units[] = {
    {"ms", NS_PER_MS},
    {"s", NS_PER_S},
    {"m", 60 * NS_PER_S},
    {"h", 3600 * NS_PER_S},
};

static const struct unit size_units[] = {
    {"", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB}, {"TiB", 1024 * GIB},
};

/* Digits followed by the name of a unit; the product fits an int64. */
static bool number_with_unit(struct slice s, const struct unit *units, size_t n, uint64_t *out)
{
    size_t digits = 0;
    while (digits < s.n && ascii_is_digit(s.p[digits]))
        digits++;
    struct slice name = slice_of(s.p + digits, s.n - digits);
    for (size_t i = 0; i < n; i++) {
        uint64_t v;
        if (!slice_eq(slice_str(units[i].name), name))
            continue;
        if (!num_u64(slice_of(s.p, digits), 19, INT64_MAX / units[i].factor, &v))
            return false;
        *out = v * units[i].factor;
        return true;
    }
    return false;
}

bool value_duration(struct slice s, int64_t *ns)
{
    uint64_t v;
    if (!number_with_unit(s, duration_units, ARRAY_LEN(duration_units), &v))
        return false;
    *ns = (int64_t)v;
    return true;
}

bool value_size(struct slice s, uint64_t *bytes)
{
    return number_with_unit(s, size_units, ARRAY_LEN(size_units), bytes);
}

bool value_port(struct slice s, uint16_t *port)
{
    uint64_t v;
    if (!num_u64(s, 5, UINT16_MAX, &v) || v == 0)
        return false;
    *port = (uint16_t)v;
    return true;
}

bool value_choice(struct slice s, struct slice choices, int *out)
{
    struct slice choice;
    bool done = false;
    for (int i = 0; slice_next(&choices, '|', &choice, &done); i++) {
        if (slice_eq(s, choice)) {
            *out = i;
            return true;
        }
    }
    return false;
}

bool value_mode(struct slice s, enum retry_mode *out)
{
    static const struct {
        const char *name;
        enum retry_mode mode;
    } modes[] = {
        {"off", RETRY_MODE_OFF},
        {"standard", RETRY_MODE_STANDARD},
        {"adaptive", RETRY_MODE_ADAPTIVE},
        {"legacy", RETRY_MODE_LEGACY},
    };
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (slice_eq(s, slice_str(modes[i].name))) {
            *out = modes[i].mode;
            return true;
        }
    }
    return false;
}

bool value_word(struct slice s)
{
    if (s.n == 0 || s.n > 128)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!ascii_is_alpha(c) && !ascii_is_digit(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

bool value_key(struct slice s)
{
    size_t from = s.n > 0 && s.p[0] == '*';
    if (s.n - from < 4 || s.n - from > 128)
        return false;
    for (size_t i = from; i < s.n; i++) {
        if (!ascii_is_alpha(s.p[i]) && !ascii_is_digit(s.p[i]))
            return false;
    }
    return true;
}

bool value_status(struct slice s, uint16_t *status)
{
    uint64_t v;
    if (!num_u64(s, 3, 599, &v) || v < 300)
        return false;
    *status = (uint16_t)v;
    return true;
}

bool value_file_mode(struct slice s, unsigned *mode)
{
    unsigned v = 0;
    if (s.n != 4 || s.p[0] != '0')
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '7')
            return false;
        v = v * 8 + (unsigned)(s.p[i] - '0');
    }
    if (v < 0600)
        return false;
    *mode = v;
    return true;
}

bool value_path(struct slice s)
{
    enum { LONGEST = 4095 };
    if (s.n == 0 || s.n > LONGEST || s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    }
    return true;
}

bool value_service(struct slice s)
{
    if (s.n == 0 || s.n > 63)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !ascii_is_digit(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

/* Cuts ":PORT" off the end; false when there is none. Colons within brackets belong to the host. */
static bool split_port(struct slice s, struct slice *host, struct slice *port)
{
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':' && s.p[colon - 1] != ']')
        colon--;
    if (colon == 0 || s.p[colon - 1] == ']')
        return false;
    *host = slice_of(s.p, colon - 1);
    *port = slice_of(s.p + colon, s.n - colon);
    return true;
}

/* A host without a port. The parser wants a port, and is given one that means nothing. */
static bool parse_host(struct slice s, struct authority *out, const char **why)
{
    enum { ANY_PORT = 1 };
    struct slice host, digits;
    if (split_port(s, &host, &digits)) {
        *why = "a colon too many";
        return false;
    }
    return authority_parse(s, ANY_PORT, out, why);
}

static bool parse_address(struct slice s, struct authority *out, const char **why)
{
    if (!parse_host(s, out, why))
        return false;
    if (out->kind == AUTHORITY_NAME)
        *why = "a name where an address is needed";
    return out->kind != AUTHORITY_NAME;
}

bool value_address(struct slice s, struct authority *out, const char **why)
{
    struct slice host = s, digits;
    struct authority a;
    uint16_t port = 0;
    if (split_port(s, &host, &digits) && !value_port(digits, &port)) {
        *why = "bad port";
        return false;
    }
    if (!parse_address(host, &a, why))
        return false;
    a.port = port;
    *out = a;
    return true;
}

bool value_is_loopback(const struct authority *a)
{
    static const unsigned char one[16] = {[15] = 1};
    if (a->kind == AUTHORITY_IPV4)
        return a->addr[0] == 127;
    return memcmp(a->addr, one, sizeof one) == 0;
}

/* ADDRESS:PORT; 0 is a port here. */
static bool address_and_port(struct slice s, struct authority *out, const char **why)
{
    struct slice host, digits;
    struct authority a;
    uint16_t port = 0;
    if (!split_port(s, &host, &digits)) {
        *why = "the port is missing";
        return false;
    }
    if (!value_port(digits, &port) && !slice_eq(digits, SLICE("0"))) {
        *why = "bad port";
        return false;
    }
    if (!parse_address(host, &a, why))
        return false;
    a.port = port;
    *out = a;
    return true;
}

bool value_listen(struct slice s, struct authority *out, const char **why)
{
    struct authority a;
    if (!address_and_port(s, &a, why))
        return false;
    if (!value_is_loopback(&a)) {
        *why = "not a loopback address; listeners may have others";
        return false;
    }
    *out = a;
    return true;
}

bool value_endpoint(struct slice s, struct arena *a, struct listen_address *out, const char **why)
{
    enum { SUN_PATH_MAX = 107 }; /* unix(7) */
    struct slice path = slice_of(s.p + 5, s.n - 5);
    struct authority at;
    if (!slice_starts(s, SLICE("unix:"))) {
        if (!address_and_port(s, &at, why))
            return false;
        *out = (struct listen_address){.at = at};
        return true;
    }
    if (!value_path(path) || path.n > SUN_PATH_MAX) {
        *why = "not an absolute path of at most 107 bytes";
        return false;
    }
    *out = (struct listen_address){.path = arena_strdup(a, path)};
    return true;
}

bool value_proxy_url(struct slice s, struct proxy_url *out, const char **why)
{
    struct proxy_url url = {.given = true, .tls = slice_starts(s, SLICE("https://"))};
    struct slice scheme = url.tls ? SLICE("https://") : SLICE("http://"), host, digits;
    if (!slice_starts(s, scheme)) {
        *why = "is not a URL of a proxy";
        return false;
    }
    s = slice_of(s.p + scheme.n, s.n - scheme.n);
    if (s.n > 0 && s.p[s.n - 1] == '/')
        s.n--;
    uint16_t port;
    if (slice_index(s, '@') < s.n) {
        *why = "has a user in it; that belongs into parent.credentials_file";
        return false;
    }
    if (slice_index(s, '/') < s.n) {
        *why = "has a path";
        return false;
    }
    if (!split_port(s, &host, &digits)) {
        *why = "has no port";
        return false;
    }
    if (!value_port(digits, &port)) {
        *why = "has a port that is not 1..65535";
        return false;
    }
    if (!parse_host(host, &url.at, why))
        return false;
    url.at.port = port;
    *out = url;
    return true;
}

/* The 16 bytes of an address; IPv4 mapped. */
static bool address_bytes(struct slice s, unsigned char out[16], bool *v4, const char **why)
{
    struct authority a;
    char bracketed[64];
    if (slice_index(s, ':') < s.n && s.p[0] != '[' && s.n < sizeof bracketed - 2) {
        int n = snprintf(bracketed, sizeof bracketed, "[%.*s]", SLICE_FMT(s));
        s = slice_of(bracketed, (size_t)n);
    }
    if (!parse_address(s, &a, why))
        return false;
    *v4 = a.kind == AUTHORITY_IPV4;
    if (*v4) {
        static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + sizeof mapped, a.addr, 4);
    } else {
        memcpy(out, a.addr, 16);
    }
    return true;
}

static bool bits_beyond(const struct cidr *c)
{
    for (unsigned bit = c->prefix; bit < 128; bit++) {
        if (c->addr[bit / 8] & (0x80u >> bit % 8))
            return true;
    }
    return false;
}

bool value_cidr(struct slice s, struct cidr *out, const char **why)
{
    struct cidr c = {.prefix = 128};
    size_t slash = slice_index(s, '/');
    bool v4 = false;
    if (!address_bytes(slice_of(s.p, slash), c.addr, &v4, why))
        return false;
    if (slash < s.n) {
        uint64_t bits;
        if (!num_u64(slice_of(s.p + slash + 1, s.n - slash - 1), 3, v4 ? 32 : 128, &bits)) {
            *why = v4 ? "the prefix is not 0..32" : "the prefix is not 0..128";
            return false;
        }
        c.prefix = (unsigned)bits + (v4 ? 96 : 0);
    }
    if (bits_beyond(&c)) {
        *why = "the address has bits set beyond its prefix";
        return false;
    }
    *out = c;
    return true;
}

bool value_host(struct slice s, struct arena *a, struct host_pattern *out, uint16_t *port,
                const char **why)
{
    struct slice host = s, digits;
    struct authority name;
    uint16_t found = 0;
    if (split_port(s, &host, &digits)) {
        if (!port || !value_port(digits, &found)) {
            *why = port ? "bad port" : "a port does not belong here";
            return false;
        }
    }
    bool suffix = slice_starts(host, SLICE("*.")) || slice_starts(host, SLICE("."));
    if (suffix) {
        size_t skip = host.p[0] == '*' ? 2 : 1;
        host = slice_of(host.p + skip, host.n - skip);
    }
    if (slice_index(host, '*') < host.n) {
        *why = "\"*\" may only stand for the first labels: *.suffix";
        return false;
    }
    if (!parse_host(host, &name, why))
        return false;
    if (suffix && name.kind != AUTHORITY_NAME) {
        *why = "an address has no names below it";
        return false;
    }
    *out = (struct host_pattern){arena_strdup(a, slice_str(name.host)), suffix};
    if (port)
        *port = found;
    return true;
}

bool value_no_proxy(struct slice s, struct arena *a, struct slice *out, const char **why)
{
    struct host_pattern pattern;
    struct cidr range;
    uint16_t port;
    if (s.n == 0) {
        *why = "is empty";
        return false;
    }
    bool good = slice_eq(s, SLICE("*")) || value_cidr(s, &range, why) ||
                value_host(s, a, &pattern, &port, why);
    if (!good)
        return false;
    char *text = arena_strdup(a, s);
    for (char *c = text; *c; c++)
        *c = ascii_lower(*c);
    *out = slice_of(text, s.n);
    return true;
}
