/* The program's log: one line an event, key=value or JSON, values escaped, never blocking.
 *
 * A slow sink loses lines and counts them (K4); a value is cut at 1 KiB and carries no raw control
 * byte (K1). Secrets are kept out by the callers' allow-lists, not by filters here. */
#ifndef RETRYD_IO_OBS_LOG_H
#define RETRYD_IO_OBS_LOG_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/slice.h"
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* PIPE_BUF on Linux: a line up to this size goes into a pipe whole or not at all, also when several
 * processes write to it. Fields that do not fit are left out and the line says cut=true. */
#define LOG_LINE_MAX 4096

/* A line under construction, on the stack. */
struct log_line {
    char text[LOG_LINE_MAX];
    size_t n;
    bool off, cut;
};

/* json false: key=value. path NULL: standard error (left blocking as it is when it is a terminal or
 * a file, made non-blocking writes when a pipe). The file is created 0640 and appended to. A second
 * call replaces the sink (log rotation); when it fails the old one stays. Until the first call
 * nothing is logged. The program ignores SIGPIPE. */
bool log_open(const char *path, bool json, enum log_level level, struct err *err);
void log_close(void);
/* Lines lost because the sink was slow. */
uint64_t log_dropped(void);

void log_begin(struct log_line *l, enum log_level level, const char *event);
void log_str(struct log_line *l, const char *key, struct slice value);
void log_int(struct log_line *l, const char *key, int64_t value);
void log_bool(struct log_line *l, const char *key, bool value);
void log_ms(struct log_line *l, const char *key,
            int64_t ns);                        /* milliseconds with up to 3 decimals */
void log_xid(struct log_line *l, uint64_t xid); /* xid=HEX, the same in every line */
void log_end(struct log_line *l);

/* For a message without fields of its own. */
void log_msg(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
