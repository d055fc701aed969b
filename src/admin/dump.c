/* Writing JSON. Labels hold what clients put in their requests, so they are taken for nothing but
 * text. */
#include "admin/dump.h"
#include "core/base/units.h"
#include "io/shm/budgets.h"

#include <inttypes.h>

enum { TAIL_BYTES = 64 }; /* kept free for the end of the object */

/* Length of the printable character at the front; 0: there is none. */
static size_t character(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > s.n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    bool control = p[0] == 0xc2 && p[1] < 0xa0;
    return overlong || beyond || control ? 0 : n;
}

void dump_string(struct strbuf *out, struct slice s)
{
    strbuf_putc(out, '"');
    while (s.n > 0) {
        size_t n = character(s);
        if (n == 0)
            strbuf_put(out, SLICE("\xef\xbf\xbd"));
        else if (s.p[0] == '"' || s.p[0] == '\\')
            strbuf_printf(out, "\\%c", s.p[0]);
        else
            strbuf_put(out, slice_of(s.p, n));
        s = slice_of(s.p + (n > 0 ? n : 1), s.n - (n > 0 ? n : 1));
    }
    strbuf_putc(out, '"');
}

struct dump {
    struct strbuf *out;
    int64_t now_ns;
    bool any;
};

/* Seconds since then, null for never. */
static void age(struct strbuf *out, const char *name, int64_t then_ns, int64_t now_ns)
{
    if (then_ns == 0 || then_ns > now_ns)
        strbuf_printf(out, ",\"%s\":%s", name, then_ns == 0 ? "null" : "0");
    else
        strbuf_printf(out, ",\"%s\":%.3f", name, (double)(now_ns - then_ns) / NS_PER_S);
}

static bool row(void *arg, const struct budgets_entry *e)
{
    struct dump *d = arg;
    struct strbuf *out = d->out;
    size_t before = out->n;
    strbuf_printf(out, "%s{\"id\":\"%016" PRIx64 "\",\"client\":", d->any ? ",\n" : "\n",
                  e->fingerprint);
    dump_string(out, slice_str(e->label));
    strbuf_printf(out, ",\"quota\":{\"tokens\":%u,\"capacity\":%u}", e->tokens, e->capacity);
    strbuf_printf(out,
                  ",\"send\":{\"limited\":%s,\"rate_limit\":%.3f,\"rate_measured\":%.3f,"
                  "\"tokens\":%.3f,\"capacity\":%.3f}",
                  e->limited ? "true" : "false", e->rate_limit, e->rate_measured, e->send_tokens,
                  e->send_capacity);
    strbuf_printf(out,
                  ",\"throttles\":%" PRIu64 ",\"retries\":%" PRIu64 ",\"refused\":%" PRIu64
                  ",\"waiting\":%u",
                  e->throttles, e->granted, e->refused, e->waiting);
    age(out, "changed_s", e->changed_ns, d->now_ns);
    age(out, "used_s", e->used_ns, d->now_ns);
    strbuf_putc(out, '}');
    if (!out->overflow && out->n + TAIL_BYTES <= out->max) {
        d->any = true;
        return true;
    }
    out->n = before;
    out->overflow = false;
    return false;
}

void dump_budgets(struct strbuf *out, const struct region *r, int64_t now_ns)
{
    struct dump d = {.out = out, .now_ns = now_ns};
    struct budgets_totals t;
    budgets_totals(r, &t);
    strbuf_printf(
        out,
        "{\"version\":\"%s\",\"entries\":%u,\"slots\":%u,\"seats\":%u,\"overflowed\":%" PRIu64
        ",\"evicted\":%" PRIu64 ",\"budgets\":[",
        RETRYD_VERSION, t.entries, t.slots, t.seats, t.overflowed, t.evicted);
    bool whole = budgets_walk(r, now_ns, row, &d);
    strbuf_printf(out, "\n],\"truncated\":%s}\n", whole ? "false" : "true");
}
