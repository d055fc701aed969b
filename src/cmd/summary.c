/* Lines and counts. */
#include "cmd/summary.h"
#include "core/base/units.h"

enum { LINES_MAX_BYTES = 1024 * 1024 };

static void on_attempt(void *arg, const struct access_attempt *a)
{
    struct summary *s = arg;
    s->attempts++;
    if (!s->want_timeline)
        return;
    char status[16] = "-";
    if (a->status != 0)
        snprintf(status, sizeof status, "%u", a->status);
    char wait[24] = "-";
    if (a->wait_ns > 0)
        snprintf(wait, sizeof wait, "%.0f ms", ns_to_ms(a->wait_ns));
    struct slice code =
        a->code.n > 0 ? a->code : slice_str(a->failure[0] != '\0' ? a->failure : "-");
    if (!strbuf_printf(
            &s->lines,
            "%4llu  %u/%-2u  %-16.*s  %-18.*s  %6s  %-38.*s  %-10s  %8s  %3u -> %-3u  %s\n",
            (unsigned long long)a->xid, a->attempt, a->max_attempts, SLICE_FMT(a->service),
            SLICE_FMT(a->operation), status, SLICE_FMT(code), a->class_name, wait, a->quota_before,
            a->quota_after, a->why))
        s->lines_lost++;
}

static void on_request(void *arg, const struct access_request *r)
{
    struct summary *s = arg;
    s->requests++;
    s->waited_ns += r->waited_ns;
    if (r->attempts > 1) {
        s->retried++;
        if (!s->want_timeline &&
            !strbuf_printf(&s->lines,
                           "retryd: %.*s %.*s: %u attempts, waited %.0f ms, then %u (%s)\n",
                           SLICE_FMT(r->service), SLICE_FMT(r->operation), r->attempts,
                           ns_to_ms(r->waited_ns), r->status, r->why))
            s->lines_lost++;
    }
    if (r->attempts > 1 && r->status >= 200 && r->status < 300)
        s->saved++;
    if (slice_eq(slice_str(r->end), SLICE("own_error")))
        s->own_errors++;
}

void summary_init(struct summary *s, bool want_timeline)
{
    *s = (struct summary){.want_timeline = want_timeline};
    strbuf_init(&s->lines, LINES_MAX_BYTES);
}

void summary_fini(struct summary *s)
{
    strbuf_fini(&s->lines);
}

struct accesslog_tap summary_tap(struct summary *s)
{
    return (struct accesslog_tap){on_attempt, on_request, s};
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

void summary_print(const struct summary *s, FILE *to)
{
    if (s->want_timeline)
        fprintf(to, "%4s  %-4s  %-16s  %-18s  %6s  %-38s  %-10s  %8s  %-10s  %s\n", "req", "try",
                "service", "operation", "status", "code", "class", "wait", "quota", "then");
    fprintf(to, "%.*s", SLICE_FMT(strbuf_slice(&s->lines)));
    if (s->lines_lost > 0)
        fprintf(to, "(%u more line%s)\n", s->lines_lost, plural(s->lines_lost));
    fprintf(to,
            "retryd: %u request%s, %u attempt%s; %u retried, %u of them succeeded; waited %.0f ms; "
            "%u answered by retryd itself\n",
            s->requests, plural(s->requests), s->attempts, plural(s->attempts), s->retried,
            s->saved, ns_to_ms(s->waited_ns), s->own_errors);
}
