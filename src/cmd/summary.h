/* What was done, for a person: the requests that were retried, counts, and a timeline of attempts.
 * Fed by the access log's tap. */
#ifndef RETRYD_CMD_SUMMARY_H
#define RETRYD_CMD_SUMMARY_H

#include "core/base/strbuf.h"
#include "io/obs/accesslog.h"
#include <stdio.h>

struct summary {
    unsigned requests, attempts, retried, saved, own_errors;
    int64_t waited_ns;
    bool want_timeline;
    struct strbuf lines; /* a line per attempt, or per retried request; at most 1 MiB */
    unsigned lines_lost; /* what did not fit */
};

void summary_init(struct summary *s, bool want_timeline);
void summary_fini(struct summary *s);
/* Borrows s until the tap is removed. */
struct accesslog_tap summary_tap(struct summary *s);
void summary_print(const struct summary *s, FILE *to);

#endif
