/* The verb on the shipped vectors, on vectors that must fail, and on everything that a file can get
 * wrong: a clear line and status 2, never a crash. */
#include "unit.h"

#include "cmd/sim.h"
#include "core/base/attr.h"
#include <unistd.h>

struct result {
    int status;
    char *out, *err;
};

static struct result run(int argc, const char *const *argv)
{
    struct result r;
    size_t n_out, n_err;
    FILE *out = open_memstream(&r.out, &n_out), *err = open_memstream(&r.err, &n_err);
    r.status = sim_main(argc, argv, out, err);
    fclose(out);
    fclose(err);
    return r;
}

static void result_fini(struct result *r)
{
    free(r->out);
    free(r->err);
}

static struct result run_text(const char *text)
{
    char path[] = "/tmp/retryd-simulate-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    struct result r = run(2, (const char *[]){"simulate", path, NULL});
    unlink(path);
    return r;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* --- what is shipped --- */

START_TEST(shipped_vectors_pass)
{
    struct result r =
        run(3, (const char *[]){"simulate", TEST_DATA_DIR "/vectors/standard-2.1.json",
                                TEST_DATA_DIR "/vectors/classify.json", NULL});
    ck_assert_str_eq(r.err, "");
    ck_assert_ptr_null(strstr(r.out, "FAIL"));
    ck_assert_int_eq(r.status, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "ok quota-13-denies-transient-allows-throttle\n"));
    ck_assert_ptr_nonnull(strstr(r.out, "ok s3-200-truncated-xml\n"));
    ck_assert_ptr_null(strstr(r.out, "skip "));
    result_fini(&r);
}
END_TEST

START_TEST(level_core_leaves_out_extended)
{
    const char *file = TEST_DATA_DIR "/vectors/standard-2.1.json";
    struct result core = run(4, (const char *[]){"simulate", "--level", "core", file, NULL});
    struct result all = run(4, (const char *[]){"simulate", "--level", "extended", file, NULL});
    ck_assert(ends_with(core.out, "\n74 passed, 0 failed, 0 skipped\n"));
    ck_assert(ends_with(all.out, "\n77 passed, 0 failed, 0 skipped\n"));
    result_fini(&core);
    result_fini(&all);
}
END_TEST

START_TEST(command_lines)
{
    static const char *const lines[][5] = {
        {"simulate", NULL},
        {"simulate", "--level", NULL},
        {"simulate", "--level", "core", NULL},
        {"simulate", "--level", "most", "f", NULL},
        {"simulate", "--fast", "f", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        int argc = 0;
        while (lines[i][argc])
            argc++;
        struct result r = run(argc, lines[i]);
        ck_assert_int_eq(r.status, 2);
        ck_assert_ptr_nonnull(strstr(r.err, "usage: retryd simulate"));
        result_fini(&r);
    }
    struct result r = run(3, (const char *[]){"simulate", "--", "/nonexistent/-x", NULL});
    ck_assert_int_eq(r.status, 2);
    ck_assert_str_eq(r.err, "/nonexistent/-x: No such file or directory\n");
    result_fini(&r);
}
END_TEST

/* --- vectors that fail: which field is named --- */

#define STANDARD(given, steps)                                                                     \
    "{\"format\": \"retryd-standard-vectors/1\", \"spec\": \"2.1\", \"vectors\": [{\"name\": "     \
    "\"v\", \"given\": {\"mode\": \"standard\", \"jitter\": 1" given "}, \"steps\": [" steps       \
    "]}]}"
#define STEP(response, expected) "{\"response\": {" response "}, \"expected\": {" expected "}}"
#define RETRY_50                                                                                   \
    "\"outcome\": \"retry\", \"class\": \"transient\", \"quota_after\": 486, \"delay_ms\": 50"
#define CLASSIFY(request, response, expected)                                                      \
    "{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"v\", \"request\": {"   \
    "\"method\": \"POST\", \"host\": \"example.us-east-1.amazonaws.com\", \"path\": "              \
    "\"/\"" request "}, \"response\": {" response "}, \"expected\": {" expected "}}]}"

static const struct {
    const char *text, *line;
} failing[] = {
    {STANDARD("", STEP("\"status\": 500", "\"outcome\": \"success\", \"class\": \"transient\", "
                                          "\"quota_after\": 486")),
     "FAIL v: step 1, outcome, expected success, got retry\n"},
    {STANDARD("", STEP("\"status\": 500", "\"outcome\": \"retry\", \"class\": \"none\", "
                                          "\"quota_after\": 486, \"delay_ms\": 50")),
     "FAIL v: step 1, class, expected none, got transient\n"},
    {STANDARD("", STEP("\"status\": 500", RETRY_50) ", " STEP("\"status\": 200",
                                                              "\"outcome\": \"success\", "
                                                              "\"class\": \"success\", "
                                                              "\"quota_after\": 499")),
     "FAIL v: step 2, quota_after, expected 499, got 500\n"},
    {STANDARD("", STEP("\"status\": 500", "\"outcome\": \"retry\", \"class\": \"transient\", "
                                          "\"quota_after\": 486, \"delay_ms\": 48.5")),
     "FAIL v: step 1, delay_ms, expected 48.5, got 50\n"},
    {STANDARD("", STEP("\"status\": 500", "\"outcome\": \"retry\", \"class\": \"transient\", "
                                          "\"quota_after\": 486")),
     "FAIL v: step 1, delay_ms, expected 0, got 50\n"},
    {STANDARD(", \"service\": \"dynamodb\"", STEP("\"status\": 500", RETRY_50)),
     "FAIL v: step 1, delay_ms, expected 50, got 25\n"},
    {CLASSIFY("", "\"status\": 503", "\"code\": \"SlowDown\", \"class\": \"transient\""),
     "FAIL v: step 1, code, expected SlowDown, got none\n"},
    {CLASSIFY("", "\"status\": 503, \"headers\": {\"x-amzn-errortype\": \"SlowDown\"}",
              "\"code\": null, \"class\": \"throttling\""),
     "FAIL v: step 1, code, expected none, got SlowDown\n"},
    {CLASSIFY("", "\"status\": 503", "\"code\": null, \"class\": \"throttling\""),
     "FAIL v: step 1, class, expected throttling, got transient\n"},
};

START_TEST(failures_name_the_field)
{
    struct result r = run_text(failing[_i].text);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.status, 1);
    ck_assert_msg(strncmp(r.out, failing[_i].line, strlen(failing[_i].line)) == 0, "got: %s",
                  r.out);
    ck_assert(ends_with(r.out, "\n0 passed, 1 failed, 0 skipped\n"));
    result_fini(&r);
}
END_TEST

static const char *const passing[] = {
    STANDARD("", STEP("\"status\": 500", RETRY_50)),
    /* Two header lines of the same name: ignored. */
    STANDARD("", STEP("\"status\": 500, \"headers\": {\"x-amz-retry-after\": [\"900\", \"900\"]}",
                      RETRY_50)),
    STANDARD("", STEP("\"status\": 500, \"headers\": {\"X-Amz-Retry-After\": [\" 900 \"]}",
                      "\"outcome\": \"retry\", \"class\": \"transient\", \"quota_after\": 486, "
                      "\"delay_ms\": 900")),
    STANDARD("", STEP("\"transport_error\": \"certificate\"",
                      "\"outcome\": \"non_retryable\", \"class\": \"none\", \"quota_after\": 500")),
    STANDARD("", STEP("\"transport_error\": \"malformed\"", RETRY_50)),
    CLASSIFY("", "\"status\": 400, \"body_base64\": \"eyJjb2RlIjogIlNsb3dEb3duIn0=\"",
             "\"code\": \"SlowDown\", \"class\": \"throttling\""),
};

START_TEST(details_of_the_formats)
{
    struct result r = run_text(passing[_i]);
    ck_assert_str_eq(r.err, "");
    ck_assert_str_eq(r.out, "ok v\n1 passed, 0 failed, 0 skipped\n");
    ck_assert_int_eq(r.status, 0);
    result_fini(&r);
}
END_TEST

/* --- what is optional is on for extended vectors --- */

#define LEVEL(level, request, response, expected)                                                  \
    "{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"v\", \"level\": "      \
    "\"" level "\", \"request\": {" request "}, \"response\": {" response                          \
    "}, \"expected\": {" expected "}}]}"
#define OMICS "\"method\": \"GET\", \"host\": \"omics.us-east-1.amazonaws.com\", \"path\": \"/\""
#define RANGE                                                                                      \
    "\"status\": 416, \"headers\": {\"x-amzn-errortype\": \"RangeNotSatisfiableException\"}"
#define DYNAMODB                                                                                   \
    "\"method\": \"POST\", \"host\": \"dynamodb.us-east-1.amazonaws.com\", \"path\": \"/\""
#define FOO "\"status\": 200, \"headers\": {\"x-amz-crc32\": \"2356372768\"}, \"body\": \"foo\""
#define LIST                                                                                       \
    "\"method\": \"GET\", \"host\": \"b.s3.us-east-1.amazonaws.com\", \"path\": \"/?list-type=2\""
#define ERROR "\"status\": 200, \"body\": \"<Error><Code>SlowDown</Code></Error>\""

static const char *const by_level[] = {
    LEVEL("core", OMICS, RANGE, "\"code\": \"RangeNotSatisfiableException\", \"class\": \"none\""),
    LEVEL("extended", OMICS, RANGE,
          "\"code\": \"RangeNotSatisfiableException\", \"class\": \"transient\""),
    LEVEL("core", DYNAMODB, FOO, "\"code\": null, \"class\": \"success\""),
    LEVEL("extended", DYNAMODB, FOO, "\"code\": null, \"class\": \"transient\""),
    LEVEL("core", LIST, ERROR, "\"code\": null, \"class\": \"success\""),
    LEVEL("extended", LIST, ERROR, "\"code\": \"SlowDown\", \"class\": \"throttling\""),
};

START_TEST(options_by_level)
{
    struct result r = run_text(by_level[_i]);
    ck_assert_str_eq(r.err, "");
    ck_assert_str_eq(r.out, "ok v\n1 passed, 0 failed, 0 skipped\n");
    result_fini(&r);
}
END_TEST

/* --- files that make no sense --- */

static const struct {
    const char *text, *says;
} broken[] = {
    {"", ":1:0: "},
    {"{\n  \"a\": 1,\n}", ":3:1: "},
    {"{\"a\": 1, \"a\": 2}", "duplicate"},
    {"[]", "Expected object"},
    {"{}", "format"},
    {"{\"format\": \"x/1\", \"vectors\": []}", "format \"x/1\" cannot be run"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": 1}", "must be an array"},
    {"{\"format\": \"retryd-standard-vectors/1\", \"vectors\": []}", "spec"},
    {"{\"format\": \"retryd-standard-vectors/1\", \"spec\": \"2.0\", \"vectors\": []}",
     "spec \"2.0\" cannot be run"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [7]}", "vector 1: Expected object"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"a b\"}]}", "blanks"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"a\"}]}", "request"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"a\", \"level\": "
     "\"x\"}]}",
     "level"},
    {"{\"format\": \"retryd-classify-vectors/1\", \"vectors\": [{\"name\": \"a\"}, {\"name\": "
     "\"a\"}]}",
     "vector 2: a: the name is taken"},
    {STANDARD("", ""), "v: steps: "},
    {STANDARD(", \"max_atempts\": 3", STEP("\"status\": 500", RETRY_50)), "max_atempts"},
    {STANDARD(", \"max_attempts\": 0", STEP("\"status\": 500", RETRY_50)), "from 1 to 100"},
    {STANDARD(", \"max_attempts\": 2.5", STEP("\"status\": 500", RETRY_50)), "whole number"},
    {STANDARD(", \"quota_capacity\": 10, \"quota_initial\": 11", STEP("\"status\": 500", RETRY_50)),
     "quota_initial: must be a whole number from 0 to 10"},
    {STANDARD(", \"service\": \"dynamdb\"", STEP("\"status\": 500", RETRY_50)),
     "\"dynamdb\" is not known"},
    {STANDARD("", STEP("\"status\": 42", RETRY_50)), "step 1: response: status"},
    {STANDARD("", STEP("", RETRY_50)), "needs status or transport_error"},
    {STANDARD("", STEP("\"transport_error\": \"gremlins\"", RETRY_50)), "\"gremlins\""},
    {STANDARD("", STEP("\"transport_error\": \"reset\", \"status\": 500", RETRY_50)),
     "stands alone"},
    {STANDARD("", STEP("\"status\": 500, \"s3_error_in_200\": true", RETRY_50)), "status 200"},
    {STANDARD("", STEP("\"status\": 500, \"headers\": {\"a\": 1}", RETRY_50)), "headers: a: "},
    {STANDARD("", STEP("\"status\": 500, \"headers\": []", RETRY_50)), "headers: must be"},
    {STANDARD("", STEP("\"status\": 500", "\"outcome\": \"retry\"")), "step 1: expected: "},
    {STANDARD("", STEP("\"status\": 500", RETRY_50 ", \"delay\": 3")), "delay"},
    {CLASSIFY(", \"headers\": {\"a\": [1]}", "\"status\": 500",
              "\"code\": null, \"class\": \"transient\""),
     "headers: a: "},
    {CLASSIFY("", "\"status\": 500, \"body_base64\": \"abc\"",
              "\"code\": null, \"class\": \"transient\""),
     "not base64"},
    {CLASSIFY("", "\"status\": 500, \"body_base64\": \"ab!d\"",
              "\"code\": null, \"class\": \"transient\""),
     "not base64"},
    {CLASSIFY("", "\"status\": 500, \"body\": \"\", \"body_base64\": \"\"",
              "\"code\": null, \"class\": \"transient\""),
     "exclude each other"},
    {CLASSIFY("", "\"status\": 500", "\"code\": 3, \"class\": \"transient\""), "string or null"},
};

START_TEST(problems_are_told)
{
    struct result r = run_text(broken[_i].text);
    ck_assert_int_eq(r.status, 2);
    ck_assert_msg(strstr(r.err, broken[_i].says) != NULL, "said: %s", r.err);
    ck_assert_ptr_null(strstr(r.out, "ok "));
    result_fini(&r);
}
END_TEST

/* --- every member of a good file, replaced by everything else --- */

static unsigned mutants;

static void run_document(json_t *document)
{
    char *text = json_dumps(document, 0);
    struct result r = run_text(text);
    ck_assert_int_ge(r.status, 0);
    ck_assert_int_le(r.status, 2);
    ck_assert_int_eq(r.status == 2, r.err[0] != '\0');
    mutants++;
    result_fini(&r);
    free(text);
}

static void mutate(json_t *document, json_t *node)
{
    static const char *const others[] = {"null", "true", "-1",        "1e300",
                                         "\"\"", "[[]]", "{\"x\": 0}"};
    const char *key;
    json_t *child, *copy = json_is_object(node) ? json_copy(node) : NULL;
    json_object_foreach(copy, key, child)
    {
        json_incref(child);
        json_object_del(node, key);
        run_document(document);
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
            json_object_set_new(node, key, json_loads(others[i], JSON_DECODE_ANY, NULL));
            run_document(document);
        }
        json_object_set_new(node, key, child);
        mutate(document, child);
    }
    json_decref(copy);
    size_t index;
    json_array_foreach(node, index, child)
    {
        mutate(document, child);
    }
}

START_TEST(no_member_is_trusted)
{
    static const char *const seeds[] = {
        STANDARD(", \"service\": \"sqs\", \"operation\": \"ReceiveMessage\", \"max_attempts\": 3, "
                 "\"max_backoff_ms\": 100, \"quota_capacity\": 500, \"quota_initial\": 500",
                 STEP("\"status\": 200, \"code\": \"SlowDown\", \"s3_error_in_200\": false, "
                      "\"checksum_mismatch\": false, \"headers\": {\"x-amz-retry-after\": \"1\"}",
                      RETRY_50) ", " STEP("\"transport_error\": \"reset\"", RETRY_50)),
        CLASSIFY(
            ", \"headers\": {\"x-amz-target\": \"A.B\"}, \"body\": \"Action=X\"",
            "\"status\": 400, \"headers\": {\"content-type\": \"text/xml\"}, \"body\": \"<a/>\"",
            "\"code\": null, \"class\": \"none\""),
    };
    json_t *document = json_loads(seeds[_i], 0, NULL);
    ck_assert_ptr_nonnull(document);
    mutate(document, document);
    ck_assert_uint_gt(mutants, 100);
    json_decref(document);
}
END_TEST

static TCase *vectors(void)
{
    TCase *tc = tcase_create("vectors");
    tcase_add_test(tc, shipped_vectors_pass);
    tcase_add_test(tc, level_core_leaves_out_extended);
    tcase_add_loop_test(tc, failures_name_the_field, 0, ARRAY_LEN(failing));
    tcase_add_loop_test(tc, details_of_the_formats, 0, ARRAY_LEN(passing));
    tcase_add_loop_test(tc, options_by_level, 0, ARRAY_LEN(by_level));
    return tc;
}

static TCase *trouble(void)
{
    TCase *tc = tcase_create("trouble");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, command_lines);
    tcase_add_loop_test(tc, problems_are_told, 0, ARRAY_LEN(broken));
    tcase_add_loop_test(tc, no_member_is_trusted, 0, 2);
    return tc;
}

UNIT_MAIN("simulate", vectors, trouble)
