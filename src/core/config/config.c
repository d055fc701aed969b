/* The config itself: its end, and matching against its patterns and ranges. */
#include "core/config/config.h"

#include <stdlib.h>

void config_free(struct config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}

bool host_pattern_match(const struct host_pattern *p, struct slice host)
{
    struct slice text = slice_str(p->text);
    if (!p->suffix)
        return slice_eq_nocase(text, host);
    /* On a label boundary, with at least one byte before it: the suffix itself does not match. */
    return host.n > text.n + 1 && host.p[host.n - text.n - 1] == '.' &&
           slice_ends_nocase(host, text);
}

bool cidr_contains(const struct cidr *c, const unsigned char addr16[16])
{
    unsigned whole = c->prefix / 8, rest = c->prefix % 8;
    if (memcmp(c->addr, addr16, whole) != 0)
        return false;
    return rest == 0 || (c->addr[whole] ^ addr16[whole]) >> (8 - rest) == 0;
}
