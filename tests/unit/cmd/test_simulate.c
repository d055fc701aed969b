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
    static const char *const files[] = {
        TEST_DATA_DIR "/vectors/standard-2.1.json", TEST_DATA_DIR "/vectors/standard-2.0.json",
        TEST_DATA_DIR "/vectors/classify.json", TEST_DATA_DIR "/vectors/legacy.json"};
    struct result r = run(2, (const char *[]){"simulate", files[_i], NULL});
    ck_assert_str_eq(r.err, "");
    ck_assert_ptr_null(strstr(r.out, "FAIL"));
    ck_assert_int_eq(r.status, 0);
    ck_assert(ends_with(r.out, " passed, 0 failed, 0 skipped\n"));
    result_fini(&r);
}
END_TEST

START_TEST(level_core_leaves_out_extended)
{
    const char *file = TEST_DATA_DIR "/vectors/standard-2.1.json";
    struct result core = run(4, (const char *[]){"simulate", "--level", "core", file, NULL});
    struct result all = run(4, (const char *[]){"simulate", "--level", "extended", file, NULL});
    ck_assert(ends_with(core.out, "\n74 passed, 0 failed, 3 skipped\n"));
    ck_assert_ptr_null(strstr(core.out, "dns-failure-is-transient"));
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
#define STANDARD_20(given, steps)                                                                  \
    "{\"format\": \"retryd-standard-vectors/1\", \"spec\": \"2.0\", \"vectors\": [{\"name\": "     \
    "\"v\", \"given\": {\"mode\": \"standard\", \"jitter\": 1" given "}, \"steps\": [" steps       \
    "]}]}"
#define LEGACY(flavour, service, more, steps, expect)                                              \
    "{\"format\": \"retryd-legacy-vectors/1\", \"vectors\": [{\"name\": \"v\", \"flavour\": "      \
    "\"" flavour "\", \"service\": \"" service "\", \"jitter\": 1" more ", \"steps\": [" steps     \
    "], "                                                                                          \
    "\"expect\": {" expect "}}]}"
#define ENDS(attempts, delays, outcome)                                                            \
    "\"attempts\": " attempts ", \"delays_ms\": [" delays "], \"outcome\": \"" outcome "\""
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
    {STANDARD_20("", STEP("\"status\": 500", RETRY_50)),
     "FAIL v: step 1, quota_after, expected 486, got 495\n"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500}", ENDS("3", "300, 600", "error")),
     "FAIL v: step 4, attempts, expected 3, got 4\n"},
    {LEGACY("ruby", "kms", "", "{\"status\": 403}", ENDS("1", "", "success")),
     "FAIL v: step 1, outcome, expected success, got error\n"},
    {LEGACY("ruby", "kms", "", "{\"status\": 403}", ENDS("1", "0", "error")),
     "FAIL v: step 1, delays_ms, expected 1 of them, got 0\n"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500}, {\"status\": 200}", ENDS("2", "298", "success")),
     "FAIL v: step 1, delays_ms, expected 298, got 300\n"},
    {LEGACY("ruby", "kms", "", "{\"status\": 403}",
            ENDS("1", "", "error") ", \"final_status\": 404"),
     "FAIL v: step 1, final_status, expected 404, got 403\n"},
    {LEGACY("php", "kms", "", "{\"error\": \"send_error\"}",
            ENDS("1", "", "error") ", \"final_error\": \"reset\""),
     "FAIL v: step 1, final_error, expected reset, got send\n"},
    {LEGACY("php", "kms", "", "{\"status\": 403}",
            ENDS("1", "", "error") ", \"final_error\": \"reset\""),
     "FAIL v: step 1, final_error, expected reset, got none\n"},
    {LEGACY("java", "kms", "", "{\"status\": 403}", ENDS("1", "", "error") ", \"quota_after\": 7"),
     "FAIL v: step 1, quota_after, expected 7, got 500\n"},
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
    STANDARD_20("", STEP("\"status\": 500, \"headers\": {\"x-amz-retry-after\": \"1500\"}",
                         "\"outcome\": \"retry\", \"class\": \"transient\", \"quota_after\": 495, "
                         "\"delay_ms\": 1000")),
    /* An endpoint prefix that nobody knows has the general figures. */
    LEGACY("python", "tomorrow", "", "{\"status\": 500}, {\"status\": 200}",
           ENDS("2", "1000", "success")),
    LEGACY("php", "dynamodb-streams", "", "{\"status\": 500}, {\"status\": 200}",
           ENDS("2", "100", "success")),
    LEGACY("java", "kms", "",
           "{\"status\": 503, \"headers\": {\"Retry-After\": \"30\"}}, "
           "{\"status\": 200}",
           ENDS("2", "30000", "success")),
    LEGACY("java", "kms", "",
           "{\"status\": 503, \"headers\": {\"Retry-After\": \"Fri, 31 Dec 2100 23:59:59 GMT\"}}, "
           "{\"status\": 200}",
           ENDS("2", "100", "success")),
    LEGACY("java", "kms", "", "{\"status\": 200, \"checksum_mismatch\": true}",
           ENDS("1", "", "error") ", \"final_status\": 200"),
    LEGACY("cpp", "kms", "", "{\"status\": 501, \"body\": \"json_no_type\"}, {\"status\": 200}",
           ENDS("2", "0", "success")),
    /* The tag turns on what needs a signature, and a wrong Date is one of them. */
    LEGACY("ruby", "s3", ", \"tags\": [\"clock_skew\"]",
           "{\"status\": 403, \"code\": \"SignatureDoesNotMatch\", \"headers\": {\"Date\": "
           "\"Fri, 31 Dec 1999 23:59:59 GMT\"}}, {\"status\": 200}",
           ENDS("2", "300", "success")),
    LEGACY("ruby", "s3", ", \"tags\": [\"other\"]",
           "{\"status\": 403, \"code\": \"SignatureDoesNotMatch\", \"headers\": {\"Date\": "
           "\"Fri, 31 Dec 1999 23:59:59 GMT\"}}",
           ENDS("1", "", "error")),
    LEGACY("python", "kms", ", \"max_attempts\": 100", "{\"status\": 403}", ENDS("1", "", "error")),
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
    {"{\"format\": \"retryd-standard-vectors/1\", \"spec\": \"3.0\", \"vectors\": []}",
     "spec \"3.0\" cannot be run; \"2.1\" and \"2.0\" can"},
    {LEGACY("cli-v2", "kms", "", "{\"status\": 500}", ENDS("1", "", "error")),
     "has no legacy retry mode"},
    {LEGACY("perl", "kms", "", "{\"status\": 500}", ENDS("1", "", "error")),
     "\"perl\" is not one of cli-v1|cpp|"},
    {LEGACY("ruby", "kms", ", \"max_attempts\": 0", "{\"status\": 500}", ENDS("1", "", "error")),
     "max_attempts: must be a whole number from 1 to 100"},
    {LEGACY("ruby", "kms", ", \"quota_initial\": 5", "{\"status\": 500}", ENDS("1", "", "error")),
     "flavour \"ruby\" has no quota"},
    {LEGACY("java", "kms", ", \"quota_initial\": 501", "{\"status\": 500}", ENDS("1", "", "error")),
     "quota_initial: must be a whole number from 0 to 500"},
    {LEGACY("ruby", "kms", "", "", ENDS("1", "", "error")), "v: steps: "},
    {LEGACY("ruby", "kms", "", "{\"code\": \"A\"}", ENDS("1", "", "error")),
     "step 1: needs status or error"},
    {LEGACY("ruby", "kms", "", "{\"error\": \"gremlins\"}", ENDS("1", "", "error")),
     "step 1: error: \"gremlins\" is not known"},
    {LEGACY("ruby", "kms", "", "{\"error\": \"reset\", \"status\": 500}", ENDS("1", "", "error")),
     "step 1: error stands alone"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500, \"body\": \"xml\"}", ENDS("1", "", "error")),
     "body: \"xml\" is not one of empty|json_no_type|html"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500, \"s3_error_in_200\": true}",
            ENDS("1", "", "error")),
     "goes with status 200"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500}", ENDS("1", "\"a\"", "error")),
     "delays_ms: must be an array of numbers"},
    {LEGACY("ruby", "kms", "", "{\"status\": 500}",
            ENDS("1", "", "error") ", \"final_error\": \"gremlins\""),
     "\"gremlins\" is not known"},
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
        LEGACY("java", "dynamodb",
               ", \"operation\": \"PutItem\", \"max_attempts\": 3, \"quota_initial\": 9, "
               "\"tags\": [\"clock_skew\"]",
               "{\"status\": 200, \"code\": \"A\", \"body\": \"html\", \"message\": \"m\", "
               "\"headers\": {\"Retry-After\": \"1\"}, \"checksum_mismatch\": false, "
               "\"s3_error_in_200\": true}, {\"error\": \"reset\"}",
               ENDS("2", "1000", "error") ", \"final_status\": 200, \"quota_after\": 4"),
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
    tcase_add_loop_test(tc, shipped_vectors_pass, 0, 4);
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
    tcase_add_loop_test(tc, no_member_is_trusted, 0, 3);
    return tc;
}

UNIT_MAIN("simulate", vectors, trouble)
