/* Building and writing log lines (security requirements K1, K4).
 *
 * key=value:  2026-11-30T17:01:03.123Z WARN  event key=value other="two words\x0a"
 * JSON:       {"ts":"2026-11-30T17:01:03.123Z","level":"warn","event":"event","key":"value"}
 *
 * Invariants: a line is one write() of at most LOG_LINE_MAX bytes, ends with its only line feed and
 * holds no other control byte; a field is in the line whole or not at all; nothing here waits for a
 * reader. */
#include "io/obs/log.h"

#include "core/base/fixtext.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line must go into a pipe in one piece");

#define VALUE_MAX 1024 /* K1, of the escaped text */
#define CUT_MARK "..."
#define TAIL_MAX 16 /* kept free for what log_end adds: ,"cut":true}\n */

/* How a write to the sink is kept from blocking. */
enum sink_kind {
    SINK_PLAIN,  /* a file, or a descriptor that is non-blocking itself */
    SINK_POLLED, /* a pipe or terminal whose blocking description is shared with other programs */
    SINK_SOCKET,
};

static struct {
    int fd; /* -1: closed, nothing is logged */
    bool owned, json;
    enum sink_kind kind;
    enum log_level level;
    uint64_t dropped, reported;
} sink = {.fd = -1};

static const char *const level_upper[] = {"ERROR", "WARN ", "INFO ", "DEBUG"};
static const char *const level_lower[] = {"error", "warn", "info", "debug"};

/* O_NONBLOCK belongs to the open file description, which the shell and its other children share:
 * setting it there would break them. A pipe or a terminal (stopped with Ctrl-S it takes nothing) is
 * therefore opened once more; where that is not allowed, poll() has to do (a pipe with room for a
 * page takes a line). */
static void sink_standard_error(void)
{
    struct stat st;
    sink.fd = STDERR_FILENO;
    sink.owned = false;
    sink.kind = SINK_PLAIN;
    if (fstat(STDERR_FILENO, &st) != 0)
        return;
    if (S_ISSOCK(st.st_mode)) {
        sink.kind = SINK_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND | O_CLOEXEC);
        sink.kind = fd < 0 ? SINK_POLLED : SINK_PLAIN;
        sink.owned = fd >= 0;
        sink.fd = fd < 0 ? STDERR_FILENO : fd;
    }
}

bool log_open(const char *path, bool json, enum log_level level, struct err *err)
{
    int fd = -1;
    if (path != NULL) {
        /* O_NONBLOCK matters for a FIFO and a terminal only. */
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
        if (fd < 0)
            return err_set(err, "log file %s: %s", path, strerror(errno));
    }
    log_close();
    if (path != NULL) {
        sink.fd = fd;
        sink.owned = true;
        sink.kind = SINK_PLAIN;
    } else {
        sink_standard_error();
    }
    sink.json = json;
    sink.level = level;
    return true;
}

void log_close(void)
{
    if (sink.owned)
        close(sink.fd);
    sink.fd = -1;
    sink.owned = false;
}

uint64_t log_dropped(void)
{
    return sink.dropped;
}

static bool sink_write(const char *p, size_t n)
{
    ssize_t wrote;
    struct pollfd pfd = {.fd = sink.fd, .events = POLLOUT};
    if (sink.kind == SINK_POLLED && (poll(&pfd, 1, 0) <= 0 || !(pfd.revents & POLLOUT)))
        return false;
    do {
        wrote = sink.kind == SINK_SOCKET ? send(sink.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                                         : write(sink.fd, p, n);
    } while (wrote < 0 && errno == EINTR);
    return wrote >= 0 && (size_t)wrote == n;
}

/* Appends all of it or, when it does not fit, nothing; the caller then takes the whole field back.
 */
static bool put(struct log_line *l, const char *p, size_t n)
{
    if (n > sizeof l->text - TAIL_MAX - l->n)
        return false;
    memcpy(l->text + l->n, p, n);
    l->n += n;
    return true;
}

static bool put_str(struct log_line *l, const char *s)
{
    return put(l, s, strlen(s));
}

/* Length of the well-formed UTF-8 sequence at p (RFC 3629), 0 when there is none. */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (len == 0 || len > n || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool too_high = p[0] == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : len;
}

/* Writes one character of s as it may stand between quotes; returns how many bytes of s it took. */
static size_t escape_json(struct slice s, char out[8], size_t *n_out)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t len = utf8_sequence(p, s.n);
    /* C1 controls move terminals as C0 controls do. */
    bool control = p[0] < 0x20 || p[0] == 0x7f || (len == 2 && p[0] == 0xc2 && p[1] < 0xa0);
    if (len == 0 || control) {
        *n_out = (size_t)snprintf(out, 8, "\\u%04x", len == 2 ? p[1] : p[0]);
        return len == 0 ? 1 : len;
    }
    *n_out = 0;
    if (p[0] == '"' || p[0] == '\\')
        out[(*n_out)++] = '\\';
    memcpy(out + *n_out, p, len);
    *n_out += len;
    return len;
}

static size_t escape_kv(struct slice s, char out[8], size_t *n_out)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c < 0x20 || c > 0x7e)
        *n_out = (size_t)snprintf(out, 8, "\\x%02x", c);
    else if (c == '"' || c == '\\')
        *n_out = (size_t)snprintf(out, 8, "\\%c", c);
    else
        *n_out = (size_t)snprintf(out, 8, "%c", c);
    return 1;
}

/* A value that a reader can tell from its surroundings without quotes. */
static bool is_bare(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return s.n > 0 && s.n <= VALUE_MAX;
}

static bool put_value(struct log_line *l, struct slice s)
{
    if (!sink.json && is_bare(s))
        return put(l, s.p, s.n);
    size_t room = VALUE_MAX - strlen(CUT_MARK);
    bool ok = put(l, "\"", 1);
    while (ok && s.n > 0) {
        char piece[8];
        size_t n;
        size_t took = sink.json ? escape_json(s, piece, &n) : escape_kv(s, piece, &n);
        if (n > room) {
            ok = put_str(l, CUT_MARK);
            break;
        }
        ok = put(l, piece, n);
        room -= n;
        s = slice_of(s.p + took, s.n - took);
    }
    return ok && put(l, "\"", 1);
}

static bool put_key(struct log_line *l, const char *key)
{
    if (!sink.json)
        return put(l, " ", 1) && put_str(l, key) && put(l, "=", 1);
    return put(l, ",\"", 2) && put_str(l, key) && put(l, "\":", 2);
}

/* A field whose value needs no escaping in either format. */
static void put_plain_field(struct log_line *l, const char *key, const char *value)
{
    size_t mark = l->n;
    if (!l->off && !(put_key(l, key) && put_str(l, value))) {
        l->n = mark;
        l->cut = true;
    }
}

static void put_head(struct log_line *l, enum log_level level, const char *event)
{
    struct timespec ts;
    struct tm tm;
    char stamp[96];
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + n, sizeof stamp - n, ".%03dZ", (int)(ts.tv_nsec / 1000000));
    if (sink.json) {
        put_str(l, "{\"ts\":\"");
        put_str(l, stamp);
        put_str(l, "\",\"level\":\"");
        put_str(l, level_lower[level]);
        put_str(l, "\",\"event\":");
    } else {
        put_str(l, stamp);
        put_str(l, " ");
        put_str(l, level_upper[level]);
        put_str(l, " ");
    }
    put_value(l, slice_str(event));
}

void log_begin(struct log_line *l, enum log_level level, const char *event)
{
    l->n = 0;
    l->cut = false;
    l->off = sink.fd < 0 || level > sink.level;
    if (!l->off)
        put_head(l, level, event);
}

void log_str(struct log_line *l, const char *key, struct slice value)
{
    size_t mark = l->n;
    if (!l->off && !(put_key(l, key) && put_value(l, value))) {
        l->n = mark;
        l->cut = true;
    }
}

static void put_signed(struct fixtext *to, int64_t value)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        fixtext_put(to, SLICE("-"));
    fixtext_number(to, size);
}

void log_int(struct log_line *l, const char *key, int64_t value)
{
    char text[24];
    if (l->off)
        return;
    struct fixtext number = fixtext_in(text, sizeof text);
    put_signed(&number, value);
    put_plain_field(l, key, text);
}

void log_bool(struct log_line *l, const char *key, bool value)
{
    put_plain_field(l, key, value ? "true" : "false");
}

void log_ms(struct log_line *l, const char *key, int64_t ns)
{
    char text[32];
    if (l->off)
        return;
    struct fixtext number = fixtext_in(text, sizeof text);
    int64_t us = ns / 1000;
    uint64_t size = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    unsigned rest = (unsigned)(size % 1000);
    if (us < 0)
        fixtext_put(&number, SLICE("-"));
    fixtext_number(&number, size / 1000);
    /* As many decimals as there is to say. */
    for (unsigned unit = 100; rest > 0; rest %= unit, unit /= 10) {
        if (unit == 100)
            fixtext_put(&number, SLICE("."));
        fixtext_number(&number, rest / unit);
    }
    put_plain_field(l, key, text);
}

void log_xid(struct log_line *l, uint64_t xid)
{
    char digits[16];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[xid & 15];
        xid >>= 4;
    } while (xid > 0);
    log_str(l, "xid", slice_of(digits + at, sizeof digits - at));
}

/* Says once that lines are missing, as soon as the sink takes lines again. */
static void report_drops(void)
{
    struct log_line l;
    uint64_t lost = sink.dropped - sink.reported;
    log_begin(&l, LOG_LEVEL_WARN, "log_lines_lost");
    log_int(&l, "lost", (int64_t)lost);
    if (sink.json)
        l.text[l.n++] = '}';
    l.text[l.n++] = '\n';
    if (!l.off && sink_write(l.text, l.n))
        sink.reported += lost;
}

void log_end(struct log_line *l)
{
    if (l->off)
        return;
    int saved = errno;
    const char *tail = sink.json ? l->cut ? ",\"cut\":true}\n" : "}\n"
                       : l->cut  ? " cut=true\n"
                                 : "\n";
    size_t n = strlen(tail);
    memcpy(l->text + l->n, tail, n);
    l->n += n;
    if (!sink_write(l->text, l->n))
        sink.dropped++;
    else if (sink.dropped != sink.reported)
        report_drops();
    errno = saved;
}

void log_msg(enum log_level level, const char *event, const char *fmt, ...)
{
    struct log_line l;
    char text[2 * VALUE_MAX];
    va_list ap;
    log_begin(&l, level, event);
    if (l.off)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_str(&l, "msg", slice_str(text));
    log_end(&l);
}
