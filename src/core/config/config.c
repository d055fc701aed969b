/* The config itself: its end, and matching against its patterns and ranges. */
#include "core/config/config.h"

#include <stdio.h>
#include <stdlib.h>

void config_free(struct config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}

void origin_text(const struct origin *o, char out[ORIGIN_TEXT_MAX])
{
    if (o->line)
        snprintf(out, ORIGIN_TEXT_MAX, "%s:%u", o->name, o->line);
    else
        snprintf(out, ORIGIN_TEXT_MAX, "%s", o->name);
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

bool host_pattern_covers(const struct host_pattern *wide, const struct host_pattern *p)
{
    bool same = strcmp(wide->text, p->text) == 0 && wide->suffix == p->suffix;
    return same || (wide->suffix && host_pattern_match(wide, slice_str(p->text)));
}

bool host_pattern_may_be_aws(const struct host_pattern *p)
{
    size_t n;
    const struct slice *suffixes = aws_suffixes(&n);
    if (aws_host(slice_str(p->text)))
        return true;
    for (size_t i = 0; i < n && p->suffix; i++) {
        if (slice_eq(suffixes[i], slice_str(p->text)) || host_pattern_match(p, suffixes[i]))
            return true;
    }
    return false;
}

const struct origin_config *config_origin(const struct config *c, struct slice host)
{
    for (size_t i = 0; i < c->n_origins; i++) {
        const struct origin_config *o = &c->origins[i];
        for (size_t j = 0; j < o->n_hosts; j++) {
            if (host_pattern_match(&o->hosts[j], host))
                return o;
        }
    }
    return NULL;
}

bool cidr_contains(const struct cidr *c, const unsigned char addr16[16])
{
    unsigned whole = c->prefix / 8, rest = c->prefix % 8;
    if (memcmp(c->addr, addr16, whole) != 0)
        return false;
    return rest == 0 || (c->addr[whole] ^ addr16[whole]) >> (8 - rest) == 0;
}
