/* What was done, for a person: counts, and a timeline of attempts. Fed by the access log's tap. */
#ifndef RETRYD_CMD_SUMMARY_H
#define RETRYD_CMD_SUMMARY_H

#include "core/base/strbuf.h"
#include "io/obs/accesslog.h"
#include <stdio.h>

struct summary {
    unsigned requests, attempts, retried, saved, own_errors;
    int64_t waited_ns;
    bool want_timeline;
    struct strbuf timeline; /* at most 1 MiB of lines; what does not fit is counted */
    unsigned lines_lost;
};

void summary_init(struct summary *s, bool want_timeline);
void summary_fini(struct summary *s);
/* Borrows s until the tap is removed. */
struct accesslog_tap summary_tap(struct summary *s);
void summary_print(const struct summary *s, FILE *to);

#endif
