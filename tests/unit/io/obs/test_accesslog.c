/* The two lines of the access log, in both formats, and the tap. */
#include "unit.h"

#include "core/base/units.h"
#include "io/obs/accesslog.h"
#include "io/obs/log.h"
#include <stdio.h>
#include <unistd.h>

static char path[64];
static char text[16384];

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/retryd-test-acc-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
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

/* What was written, from the event's name on. */
static const char *written(const char *event)
{
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    const char *at = strstr(text, event);
    ck_assert_msg(at != NULL, "no %s in %s", event, text);
    return at;
}

static const struct access_attempt throttled = {
    .xid = 0x2a,
    .host = {"dynamodb.us-east-1.amazonaws.com", 32},
    .service = {"dynamodb", 8},
    .operation = {"PutItem", 7},
    .attempt = 2,
    .max_attempts = 3,
    .status = 400,
    .failure = "",
    .detail = "",
    .code = {"ThrottlingException", 19},
    .class_name = "throttling",
    .rule = "error_code",
    .decision = "retry",
    .why = "",
    .wait_ns = 132 * NS_PER_MS + 500000,
    .took_ns = 41 * NS_PER_MS,
    .quota_before = 500,
    .quota_after = 495,
    .reused = true,
    .redialled = true,
};

static const struct access_request finished = {
    .xid = 0x2a,
    .method = {"POST", 4},
    .host = {"dynamodb.us-east-1.amazonaws.com", 32},
    .service = {"dynamodb", 8},
    .region = {"us-east-1", 9},
    .operation = {"PutItem", 7},
    .status = 200,
    .attempts = 3,
    .end = "delivered",
    .why = "",
    .took_ns = 402 * NS_PER_MS,
    .waited_ns = 261 * NS_PER_MS,
    .body_in = 120,
    .body_out = 2,
    .key = {"WXYZ", 4},
};

START_TEST(attempt_kv)
{
    open_log(false, LOG_LEVEL_INFO);
    accesslog_attempt(&throttled);
    ck_assert_str_eq(
        written("attempt xid"),
        "attempt xid=2a host=dynamodb.us-east-1.amazonaws.com service=dynamodb op=PutItem "
        "attempt=2/3 status=400 code=ThrottlingException class=throttling rule=error_code "
        "decision=retry wait_ms=132.5 took_ms=41 quota_before=500 quota_after=495 "
        "reused=true redialled=true\n");
}
END_TEST

START_TEST(attempt_json)
{
    open_log(true, LOG_LEVEL_INFO);
    accesslog_attempt(&throttled);
    ck_assert_str_eq(
        written("\"event\""),
        "\"event\":\"attempt\",\"xid\":\"2a\",\"host\":\"dynamodb.us-east-1.amazonaws.com\","
        "\"service\":\"dynamodb\",\"op\":\"PutItem\",\"attempt\":\"2/3\",\"status\":400,"
        "\"code\":\"ThrottlingException\",\"class\":\"throttling\",\"rule\":\"error_code\","
        "\"decision\":\"retry\",\"wait_ms\":132.5,\"took_ms\":41,\"quota_before\":500,"
        "\"quota_after\":495,\"reused\":true,\"redialled\":true}\n");
}
END_TEST

/* A transport failure: no status, an empty quota is told, NULL texts are empty texts. */
START_TEST(attempt_without_answer)
{
    struct access_attempt a = {.xid = 1,
                               .attempt = 1,
                               .max_attempts = 3,
                               .failure = "connect_refused",
                               .detail = "peer said \"no\"\r\n"};
    open_log(false, LOG_LEVEL_INFO);
    accesslog_attempt(&a);
    ck_assert_str_eq(
        written("attempt xid"),
        "attempt xid=1 attempt=1/3 failure=connect_refused "
        "detail=\"peer said \\\"no\\\"\\x0d\\x0a\" took_ms=0 quota_before=0 quota_after=0\n");
}
END_TEST

START_TEST(request_kv)
{
    open_log(false, LOG_LEVEL_INFO);
    accesslog_request(&finished);
    ck_assert_str_eq(
        written("request xid"),
        "request xid=2a method=POST host=dynamodb.us-east-1.amazonaws.com service=dynamodb "
        "op=PutItem region=us-east-1 status=200 attempts=3 end=delivered took_ms=402 "
        "waited_ms=261 body_in=120 body_out=2 key=WXYZ\n");
}
END_TEST

START_TEST(key_is_never_whole)
{
    struct access_request r = finished;
    r.key = SLICE("AKIAIOSFODNN7EXAMPLE");
    open_log(_i == 1, LOG_LEVEL_INFO);
    accesslog_request(&r);
    const char *line = written("request");
    ck_assert_ptr_null(strstr(line, "AKIA"));
    ck_assert_ptr_nonnull(strstr(line, _i == 1 ? "\"key\":\"MPLE\"" : "key=MPLE"));
}
END_TEST

struct seen {
    const struct access_attempt *attempt;
    const struct access_request *request;
};

static void on_attempt(void *arg, const struct access_attempt *a)
{
    ((struct seen *)arg)->attempt = a;
}

static void on_request(void *arg, const struct access_request *r)
{
    ((struct seen *)arg)->request = r;
}

START_TEST(tap_sees_records_whatever_the_level)
{
    struct seen seen = {NULL, NULL};
    struct accesslog_tap tap = {on_attempt, on_request, &seen};
    open_log(false, LOG_LEVEL_ERROR);
    accesslog_set_tap(&tap);
    accesslog_attempt(&throttled);
    accesslog_request(&finished);
    ck_assert_ptr_eq(seen.attempt, &throttled);
    ck_assert_ptr_eq(seen.request, &finished);
    seen = (struct seen){NULL, NULL};
    accesslog_set_tap(NULL);
    accesslog_attempt(&throttled);
    ck_assert_ptr_null(seen.attempt);
}
END_TEST

static TCase *case_accesslog(void)
{
    TCase *tc = tcase_create("accesslog");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, attempt_kv);
    tcase_add_test(tc, attempt_json);
    tcase_add_test(tc, attempt_without_answer);
    tcase_add_test(tc, request_kv);
    tcase_add_loop_test(tc, key_is_never_whole, 0, 2);
    tcase_add_test(tc, tap_sees_records_whatever_the_level);
    return tc;
}

UNIT_MAIN("accesslog", case_accesslog)
