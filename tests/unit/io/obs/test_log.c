/* Log lines: format, escaping (K1), and a sink that nobody reads (K4). */
#include "unit.h"

#include "io/obs/log.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define STAMP_LEN 24 /* 2026-11-30T17:01:03.123Z */

static char path[64];
static char text[1 << 20];

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/retryd-test-log-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    unlink(path);
}

static void teardown(void)
{
    log_close();
    unlink(path);
}

static void open_log(bool json, enum log_level level)
{
    struct err err = {""};
    ck_assert_msg(log_open(path, json, level, &err), "%s", err.text);
}

static const char *written(void)
{
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    ck_assert_uint_eq(strlen(text), n);
    return text;
}

/* The one line without its time. */
static const char *after_stamp(bool json)
{
    size_t skip = json ? strlen("{\"ts\":\"\"") + STAMP_LEN : STAMP_LEN + 1;
    const char *line = written();
    ck_assert_uint_gt(strlen(line), skip);
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    return line + skip;
}

static void one_value(bool json, struct slice value)
{
    struct log_line l;
    unlink(path);
    open_log(json, LOG_LEVEL_INFO);
    log_begin(&l, LOG_LEVEL_INFO, "e");
    log_str(&l, "v", value);
    log_end(&l);
}

START_TEST(kv_line)
{
    struct log_line l;
    open_log(false, LOG_LEVEL_INFO);
    log_begin(&l, LOG_LEVEL_WARN, "upstream_down");
    log_str(&l, "host", SLICE("s3.amazonaws.com"));
    log_int(&l, "n", -7);
    log_bool(&l, "reused", true);
    log_ms(&l, "took_ms", 1500000);
    log_xid(&l, UINT64_MAX);
    log_end(&l);
    ck_assert_str_eq(after_stamp(false),
                     "WARN  upstream_down host=s3.amazonaws.com n=-7 reused=true "
                     "took_ms=1.5 xid=ffffffffffffffff\n");
}
END_TEST

START_TEST(json_line)
{
    struct log_line l;
    open_log(true, LOG_LEVEL_INFO);
    log_begin(&l, LOG_LEVEL_ERROR, "down");
    log_str(&l, "host", SLICE("a b"));
    log_int(&l, "n", 7);
    log_bool(&l, "ok", false);
    log_end(&l);
    ck_assert_str_eq(
        after_stamp(true),
        ",\"level\":\"error\",\"event\":\"down\",\"host\":\"a b\",\"n\":7,\"ok\":false}\n");
}
END_TEST

START_TEST(time_stamp)
{
    static const char pattern[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    open_log(false, LOG_LEVEL_INFO);
    log_msg(LOG_LEVEL_INFO, "e", "hello");
    const char *line = written();
    for (size_t i = 0; i < sizeof pattern - 1; i++) {
        if (pattern[i] == 'd')
            ck_assert_msg(ascii_is_digit(line[i]), "byte %zu of %s", i, line);
        else
            ck_assert_int_eq(line[i], pattern[i]);
    }
    ck_assert_str_eq(line + sizeof pattern - 1, "INFO  e msg=hello\n");
}
END_TEST

START_TEST(milliseconds)
{
    static const struct {
        int64_t ns;
        const char *ms;
    } cases[] = {
        {0, "0"},           {999, "0"},         {1000, "0.001"},
        {1000000, "1"},     {41700000, "41.7"}, {100000000, "100"},
        {-1500000, "-1.5"}, {-2000, "-0.002"},  {1234567890, "1234.567"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log_line l;
        char want[64];
        unlink(path);
        open_log(false, LOG_LEVEL_INFO);
        log_begin(&l, LOG_LEVEL_INFO, "e");
        log_ms(&l, "t", cases[i].ns);
        log_end(&l);
        snprintf(want, sizeof want, "INFO  e t=%s\n", cases[i].ms);
        ck_assert_str_eq(after_stamp(false), want);
    }
}
END_TEST

START_TEST(kv_escapes)
{
    static const struct {
        struct slice value;
        const char *out;
    } cases[] = {
        {{"plain/1:2;x", 11}, "plain/1:2;x"},      {{"", 0}, "\"\""},
        {{"two words", 9}, "\"two words\""},       {{"a=b", 3}, "\"a=b\""},
        {{"say \"hi\"", 8}, "\"say \\\"hi\\\"\""}, {{"c:\\d", 4}, "\"c:\\\\d\""},
        {{"a\r\nb", 4}, "\"a\\x0d\\x0ab\""},       {{"\x1b[31m", 5}, "\"\\x1b[31m\""},
        {{"nul\0nul", 7}, "\"nul\\x00nul\""},      {{"\x7f\xc3\xa9", 3}, "\"\\x7f\\xc3\\xa9\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[64];
        one_value(false, cases[i].value);
        snprintf(want, sizeof want, "INFO  e v=%s\n", cases[i].out);
        ck_assert_str_eq(after_stamp(false), want);
    }
}
END_TEST

START_TEST(json_escapes)
{
    static const struct {
        struct slice value;
        const char *out;
    } cases[] = {
        {{"", 0}, ""},
        {{"a\"b\\c", 5}, "a\\\"b\\\\c"},
        {{"a\r\n\t", 4}, "a\\u000d\\u000a\\u0009"},
        {{"\0\x1b\x7f", 3}, "\\u0000\\u001b\\u007f"},
        {{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9}, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {{"\xc2\x9b", 2}, "\\u009b"},                   /* C1: CSI */
        {{"\xff\xfe", 2}, "\\u00ff\\u00fe"},            /* never in UTF-8 */
        {{"\xc3", 1}, "\\u00c3"},                       /* cut short */
        {{"\xc3(", 2}, "\\u00c3("},                     /* no continuation */
        {{"\xc0\xaf", 2}, "\\u00c0\\u00af"},            /* overlong */
        {{"\xe0\x80\xaf", 3}, "\\u00e0\\u0080\\u00af"}, /* overlong */
        {{"\xf0\x80\x80\xaf", 4}, "\\u00f0\\u0080\\u0080\\u00af"},
        {{"\xed\xa0\x80", 3}, "\\u00ed\\u00a0\\u0080"},            /* surrogate */
        {{"\xf4\x90\x80\x80", 4}, "\\u00f4\\u0090\\u0080\\u0080"}, /* above U+10FFFF */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[128];
        one_value(true, cases[i].value);
        snprintf(want, sizeof want, ",\"level\":\"info\",\"event\":\"e\",\"v\":\"%s\"}\n",
                 cases[i].out);
        ck_assert_str_eq(after_stamp(true), want);
    }
}
END_TEST

START_TEST(no_control_byte_gets_out)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    one_value(_i == 1, slice_of(all, sizeof all));
    const char *line = written();
    size_t n = strlen(line);
    ck_assert_uint_gt(n, 256);
    for (size_t i = 0; i < n - 1; i++)
        ck_assert_msg((unsigned char)line[i] >= 0x20 && line[i] != 0x7f, "byte %zu", i);
    ck_assert_int_eq(line[n - 1], '\n');
}
END_TEST

START_TEST(value_is_cut)
{
    static char big[5000];
    static const char *const fill[] = {"a", "\n"};
    for (int f = 0; f < 2; f++) {
        memset(big, fill[f][0], sizeof big);
        one_value(_i == 1, slice_of(big, sizeof big));
        const char *line = written();
        const char *open = _i == 1 ? "\"v\":\"" : "v=\"";
        const char *value = strstr(line, open);
        ck_assert_ptr_nonnull(value);
        value += strlen(open);
        const char *end = strstr(value, "...\"");
        ck_assert_ptr_nonnull(end);
        ck_assert_int_le(end + 3 - value, 1024);
        ck_assert_int_ge(end + 3 - value, 1000);
    }
}
END_TEST

START_TEST(line_is_cut_at_a_field)
{
    struct log_line l;
    char big[1000];
    memset(big, 'x', sizeof big);
    open_log(_i == 1, LOG_LEVEL_INFO);
    log_begin(&l, LOG_LEVEL_INFO, "e");
    for (int i = 0; i < 8; i++)
        log_str(&l, "big", slice_of(big, sizeof big));
    log_int(&l, "small", 1);
    log_end(&l);
    const char *line = written();
    const char *tail = _i == 1 ? ",\"small\":1,\"cut\":true}\n" : " small=1 cut=true\n";
    ck_assert_uint_le(strlen(line), LOG_LINE_MAX);
    ck_assert_str_eq(line + strlen(line) - strlen(tail), tail);
}
END_TEST

START_TEST(level_filters)
{
    open_log(false, LOG_LEVEL_WARN);
    log_msg(LOG_LEVEL_INFO, "quiet", "no");
    log_msg(LOG_LEVEL_DEBUG, "quiet", "no");
    log_msg(LOG_LEVEL_WARN, "loud", "%s", "yes");
    ck_assert_str_eq(after_stamp(false), "WARN  loud msg=yes\n");
}
END_TEST

START_TEST(closed_log_is_silent)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_ERROR, "e");
    ck_assert(l.off);
    log_str(&l, "k", SLICE("v"));
    log_end(&l);
    ck_assert_uint_eq(log_dropped(), 0);
}
END_TEST

START_TEST(file_mode_and_append)
{
    struct stat st;
    umask(0);
    open_log(false, LOG_LEVEL_INFO);
    log_msg(LOG_LEVEL_INFO, "one", "1");
    open_log(false, LOG_LEVEL_INFO);
    log_msg(LOG_LEVEL_INFO, "two", "2");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    const char *both = written();
    ck_assert_ptr_nonnull(strstr(both, "one msg=1\n"));
    ck_assert_ptr_nonnull(strstr(both, "two msg=2\n"));
}
END_TEST

START_TEST(failed_reopen_keeps_sink)
{
    struct err err = {""};
    open_log(false, LOG_LEVEL_INFO);
    ck_assert(!log_open("/nonexistent/dir/log", false, LOG_LEVEL_INFO, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/dir/log"));
    log_msg(LOG_LEVEL_INFO, "still", "here");
    ck_assert_str_eq(after_stamp(false), "INFO  still msg=here\n");
}
END_TEST

/* Reads what is there without waiting; all of it must be whole lines. */
static size_t drain(int fd, size_t *lines)
{
    size_t n = 0;
    ssize_t r;
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (n < sizeof text - 1 && (r = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)r;
    text[n] = '\0';
    *lines = 0;
    for (size_t i = 0; i < n; i++)
        *lines += text[i] == '\n';
    return n;
}

/* K4: Standard error that nobody reads: a pipe (0), a socket (1). */
START_TEST(full_sink_drops_and_counts)
{
    enum { LINES = 5000 };
    int fds[2];
    size_t got;
    struct err err = {""};
    char filler[200];
    memset(filler, 'x', sizeof filler);
    ck_assert_int_eq(_i == 0 ? pipe(fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    ck_assert_msg(log_open(NULL, false, LOG_LEVEL_INFO, &err), "%s", err.text);
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    for (int i = 0; i < LINES; i++)
        log_msg(LOG_LEVEL_INFO, "e", "%.*s", (int)sizeof filler, filler);
    uint64_t dropped = log_dropped();
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_lt(dropped, LINES);
    size_t n = drain(fds[0], &got);
    ck_assert_uint_eq(got, LINES - dropped);
    ck_assert_int_eq(text[n - 1], '\n');

    /* With room again, the log says how much is missing, once. */
    char want[64];
    log_msg(LOG_LEVEL_INFO, "back", "1");
    log_msg(LOG_LEVEL_INFO, "back", "2");
    drain(fds[0], &got);
    snprintf(want, sizeof want, "WARN  log_lines_lost lost=%llu\n", (unsigned long long)dropped);
    ck_assert_uint_eq(got, 3);
    ck_assert_ptr_nonnull(strstr(text, want));
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* K4: A terminal stopped with Ctrl-S takes nothing: lines are lost, the program goes on. */
START_TEST(stopped_terminal_does_not_block)
{
    struct err err = {""};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(tcflow(slave, TCOOFF), 0);
    ck_assert_int_ge(dup2(slave, STDERR_FILENO), 0);
    ck_assert_msg(log_open(NULL, false, LOG_LEVEL_INFO, &err), "%s", err.text);
    uint64_t before = log_dropped();
    for (int i = 0; i < 10; i++)
        log_msg(LOG_LEVEL_INFO, "e", "line %d", i);
    ck_assert_uint_eq(log_dropped() - before, 10);
    ck_assert_int_eq(fcntl(slave, F_GETFL) & O_NONBLOCK, 0);
    log_close();
    close(slave);
    close(master);
}
END_TEST

static TCase *case_log(void)
{
    TCase *tc = tcase_create("log");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, stopped_terminal_does_not_block);
    tcase_add_test(tc, kv_line);
    tcase_add_test(tc, json_line);
    tcase_add_test(tc, time_stamp);
    tcase_add_test(tc, milliseconds);
    tcase_add_test(tc, kv_escapes);
    tcase_add_test(tc, json_escapes);
    tcase_add_loop_test(tc, no_control_byte_gets_out, 0, 2);
    tcase_add_loop_test(tc, value_is_cut, 0, 2);
    tcase_add_loop_test(tc, line_is_cut_at_a_field, 0, 2);
    tcase_add_test(tc, level_filters);
    tcase_add_test(tc, closed_log_is_silent);
    tcase_add_test(tc, file_mode_and_append);
    tcase_add_test(tc, failed_reopen_keeps_sink);
    tcase_add_loop_test(tc, full_sink_drops_and_counts, 0, 2);
    return tc;
}

UNIT_MAIN("log", case_log)
