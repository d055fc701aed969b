/* explain says what the engine says: the vectors of `simulate`, given by options and as raw files.
 * What its verdict, its waits and its tokens are under settings; what it refuses; and that no
 * secret comes out, whatever goes in. */
#include "unit.h"

#include "cmd/explain.h"
#include "core/base/attr.h"
#include "core/base/strbuf.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <unistd.h>

#define NOW_S INT64_C(1780272000) /* 2026-06-01T00:00:00Z */
#define DYNAMODB "dynamodb.us-east-1.amazonaws.com"
#define SECRET_KEY "AKIDSECRETEXAMPLE"
#define SIGNED                                                                                     \
    "Authorization: AWS4-HMAC-SHA256 Credential=" SECRET_KEY                                       \
    "/20260601/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=5ec2e7"

enum { ARGS_MAX = 64 };

struct result {
    int status;
    char *out, *err;
};

static void setup(void)
{
    static char *none[] = {NULL};
    environ = none;
}

static struct result run_on(const char *input, size_t n, const char *const *args)
{
    char *argv[ARGS_MAX + 1] = {(char *)"explain"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)args[argc - 1];
    struct result r;
    size_t n_out, n_err;
    FILE *in = fmemopen((void *)(n ? input : "\n"), n ? n : 1, "r");
    FILE *out = open_memstream(&r.out, &n_out), *err = open_memstream(&r.err, &n_err);
    if (n == 0)
        fgetc(in);
    r.status = explain_main(argc, argv, &(struct explain_world){in, out, err, NOW_S});
    fclose(in);
    fclose(out);
    fclose(err);
    return r;
}

static void result_fini(struct result *r)
{
    free(r->out);
    free(r->err);
}

#define RUN(input, ...) run_on(input, strlen(input), (const char *const[]){__VA_ARGS__, NULL})

/* The member at the path "answer.class" as text of its own: "null", "5", "true". */
static char *member(const struct result *r, const char *path)
{
    json_t *all = json_loads(r->out, 0, NULL);
    ck_assert_msg(all != NULL, "%s%s", r->out, r->err);
    const json_t *at = all;
    for (const char *rest = path; *rest;) {
        size_t n = strcspn(rest, ".");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, rest);
        at = json_is_array(at) ? json_array_get(at, (size_t)(name[0] - '0'))
                               : json_object_get(at, name);
        ck_assert_msg(at != NULL, "no %s in %s", path, r->out);
        rest += n + (rest[n] == '.');
    }
    char *text = json_is_string(at) ? strdup(json_string_value(at))
                                    : json_dumps(at, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(all);
    return text;
}

static void expect_member(const struct result *r, const char *path, const char *wanted)
{
    char *got = member(r, path);
    ck_assert_msg(strcmp(got, wanted) == 0, "%s: %s, not %s", path, got, wanted);
    free(got);
}

/* --- the vectors --- */

struct vector {
    json_t *request, *response, *expected;
    struct slice body;
    bool extended;
};

static void put_headers(json_t *headers, struct strbuf *out)
{
    const char *name;
    json_t *value, *line;
    size_t i;
    json_object_foreach(headers, name, value)
    {
        if (json_is_string(value))
            strbuf_printf(out, "%s: %s\r\n", name, json_string_value(value));
        json_array_foreach(value, i, line)
        {
            strbuf_printf(out, "%s: %s\r\n", name, json_string_value(line));
        }
    }
}

static const char *string_of(json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int status_of(const struct vector *v)
{
    return (int)json_integer_value(json_object_get(v->response, "status"));
}

static bool has_length(const struct vector *v)
{
    return strcmp(string_of(v->request, "method"), "HEAD") != 0 && status_of(v) != 304;
}

static void write_raw(const struct vector *v, struct strbuf *out)
{
    strbuf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", string_of(v->request, "method"),
                  string_of(v->request, "path"), string_of(v->request, "host"));
    put_headers(json_object_get(v->request, "headers"), out);
    strbuf_printf(out, "\r\nHTTP/1.1 %d \r\n", status_of(v));
    put_headers(json_object_get(v->response, "headers"), out);
    if (has_length(v))
        strbuf_printf(out, "Content-Length: %zu\r\n", v->body.n);
    strbuf_put(out, SLICE("\r\n"));
    strbuf_put(out, v->body);
}

/* Options of the configuration that stand for a level. */
static size_t put_level(const struct vector *v, const char **args)
{
    static const char *const extended[] = {"--set=retry.modeled_errors=true",
                                           "--set=retry.dynamodb_crc32=true",
                                           "--set=retry.s3_errors=all"};
    static const char *const core[] = {"--set=retry.modeled_errors=false",
                                       "--set=retry.dynamodb_crc32=false",
                                       "--set=retry.s3_errors=core"};
    _Static_assert(ARRAY_LEN(extended) == ARRAY_LEN(core), "one each");
    for (size_t i = 0; i < ARRAY_LEN(core); i++)
        args[i] = v->extended ? extended[i] : core[i];
    return ARRAY_LEN(core);
}

static size_t put_options(json_t *headers, const char *option, struct arena *a, const char **args)
{
    struct strbuf text;
    struct slice rest, line;
    bool done = false;
    size_t n = 0;
    strbuf_init(&text, 1 << 16);
    put_headers(headers, &text);
    rest = strbuf_slice(&text);
    while (slice_next(&rest, '\n', &line, &done) && line.n > 0) {
        args[n++] = option;
        args[n++] = arena_strdup(a, slice_of(line.p, line.n - 1));
    }
    strbuf_fini(&text);
    return n;
}

static struct result explain_by_options(const struct vector *v, struct arena *a)
{
    const char *args[ARGS_MAX] = {"--json", "--host", string_of(v->request, "host"), "--method",
                                  string_of(v->request, "method")};
    char status[16];
    size_t n = 5;
    snprintf(status, sizeof status, "--status=%d", status_of(v));
    args[n++] = "--path";
    args[n++] = string_of(v->request, "path");
    args[n++] = status;
    n += put_options(json_object_get(v->request, "headers"), "--header", a, args + n);
    n += put_options(json_object_get(v->response, "headers"), "--response-header", a, args + n);
    if (v->body.n > 0)
        args[n++] = "--body=-";
    put_level(v, args + n);
    return run_on(v->body.p, v->body.n, args);
}

static struct result explain_raw(const struct vector *v)
{
    const char *args[ARGS_MAX] = {"--json", "--raw", "-"};
    struct strbuf raw;
    put_level(v, args + 3);
    strbuf_init(&raw, 1 << 20);
    write_raw(v, &raw);
    struct result r = run_on(raw.p, raw.n, args);
    strbuf_fini(&raw);
    return r;
}

static void expect_vector(const struct vector *v, const char *name, struct result r)
{
    const char *code = string_of(v->expected, "code");
    char *got_code = member(&r, "answer.code"), *got_class = member(&r, "answer.class");
    ck_assert_msg(strcmp(got_code, code ? code : "null") == 0, "%s: code %s", name, got_code);
    ck_assert_msg(strcmp(got_class, string_of(v->expected, "class")) == 0, "%s: class %s", name,
                  got_class);
    ck_assert_int_eq(r.status, 0);
    free(got_code);
    free(got_class);
    result_fini(&r);
}

static struct slice body_of(json_t *response, struct arena *a)
{
    const char *encoded = string_of(response, "body_base64");
    if (!encoded)
        return slice_str(string_of(response, "body"));
    size_t n = strlen(encoded), pad = 0;
    unsigned char *p = arena_alloc(a, n + 1);
    int decoded = EVP_DecodeBlock(p, (const unsigned char *)encoded, (int)n);
    ck_assert_int_ge(decoded, 0);
    while (pad < 2 && pad < n && encoded[n - 1 - pad] == '=')
        pad++;
    return slice_of((char *)p, (size_t)decoded - pad);
}

START_TEST(agrees_with_the_vectors)
{
    json_t *file = json_load_file(TEST_DATA_DIR "/vectors/classify.json", 0, NULL), *vector;
    size_t i;
    ck_assert_uint_gt(json_array_size(json_object_get(file, "vectors")), 80);
    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        struct arena a;
        arena_init(&a);
        const char *level = string_of(vector, "level"), *name = string_of(vector, "name");
        struct vector v = {.request = json_object_get(vector, "request"),
                           .response = json_object_get(vector, "response"),
                           .expected = json_object_get(vector, "expected"),
                           .extended = level && strcmp(level, "extended") == 0};
        v.body = body_of(v.response, &a);
        expect_vector(&v, name, explain_raw(&v));
        expect_vector(&v, name, explain_by_options(&v, &a));
        arena_fini(&a);
    }
    json_decref(file);
}
END_TEST

/* --- verdicts --- */

static const struct {
    const char *args[14];
    const char *first_line;
} verdicts[] = {
    {{"--host", "sqs.us-east-1.amazonaws.com", "--status", "429"},
     "would be retried: throttling, wait 0..1000 ms, costs 5 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "500"},
     "would be retried: transient, wait 0..25 ms, costs 14 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "500", "--attempt", "2"},
     "would be retried: transient, wait 0..50 ms, costs 14 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "500", "--attempt=4"},
     "would not be retried: transient, but attempt 4 ends it (max_attempts 4)\n"},
    {{"--host", DYNAMODB, "--status", "200"}, "would be delivered: success\n"},
    {{"--host", DYNAMODB, "--status", "404"},
     "would not be retried: status 404 is final: no rule knows it\n"},
    {{"--host", DYNAMODB, "--status", "500", "--set", "retry.mode=off"},
     "would not be retried: transient, but retries are off\n"},
    {{"--host", "example.com", "--status", "500"},
     "would not be retried: retryd passes its tunnel on unread\n"},
    {{"--host", DYNAMODB ":8443", "--status", "500"},
     "would not be retried: retryd refuses its port\n"},
    {{"--host", "h", "--path", "http://example.com/", "--status", "500"},
     "would not be retried: transient, but neither a host of AWS, nor signed for it, nor one of "
     "intercept.hosts\n"},
    {{"--host", DYNAMODB, "--failure", "reset"},
     "would be retried: transient, wait 0..25 ms, costs 14 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--failure", "certificate"},
     "would not be retried: certificate is final: the list of transport failures says so\n"},
    {{"--host", DYNAMODB, "--failure", "policy"},
     "would not be retried: policy is final: retryd itself refused to connect, which is final\n"},
    {{"--host", DYNAMODB, "--failure", "truncated_body", "--status", "200", "--response-header",
      "Content-Length: 99999999"},
     "would not be retried: truncated_body, but its answer was already on its way to the "
     "client\n"},
    {{"--host", DYNAMODB, "--failure", "truncated_body", "--status", "200", "--response-header",
      "Content-Length: 99"},
     "would be retried: transient, wait 0..25 ms, costs 14 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "500", "--header", "Content-Length: 999999999999"},
     "would not be retried: transient, but its body is larger than limits.replay_memory and "
     "limits.replay_disk keep\n"},
    /* Signed 4 minutes 30 ago, and half an hour ago by an answer that has a Date. */
    {{"--host", DYNAMODB, "--status", "500", "--header", "X-Amz-Date: 20260531T235530Z"},
     "would not be retried: transient, but too late for its signature\n"},
    {{"--host", DYNAMODB, "--status", "500", "--header", "X-Amz-Date: 20260531T233000Z",
      "--response-header", "Date: Sun, 31 May 2026 23:30:01 GMT"},
     "would be retried: transient, wait 0..25 ms, costs 14 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "429", "--set", "retry.max_total_wait=500ms"},
     "would be retried if it waits shortly enough: throttling, wait 0..1000 ms, costs 5 of 500 "
     "tokens; retry.max_total_wait allows for less\n"},
    {{"--host", DYNAMODB, "--status", "429", "--response-header", "x-amz-retry-after: 2500"},
     "would be retried: throttling, wait 2500..2500 ms, costs 5 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "429", "--response-header", "x-amz-retry-after: 60000"},
     "would be retried: throttling, wait 5000..6000 ms, costs 5 of 500 tokens\n"},
    {{"--host", DYNAMODB, "--status", "500", "--set", "retry.mode=legacy", "--set",
      "retry.flavour=ruby"},
     "would be retried: transient, wait 0..0 ms\n"},
};

START_TEST(first_line_is_the_verdict)
{
    struct result r = run_on("", 0, verdicts[_i].args);
    size_t n = strcspn(r.out, "\n") + 1;
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.status, 0);
    r.out[n < strlen(r.out) ? n : strlen(r.out)] = '\0';
    ck_assert_str_eq(r.out, verdicts[_i].first_line);
    result_fini(&r);
}
END_TEST

START_TEST(retries_cost_and_give_back)
{
    struct result r = RUN("", "--json", "--host", DYNAMODB, "--status", "429", "--attempt", "2");
    expect_member(&r, "verdict", "retry");
    expect_member(&r, "retries.0.attempt", "3");
    expect_member(&r, "retries.0.wait_max_ms", "2000");
    expect_member(&r, "retries.0.tokens_left", "495");
    expect_member(&r, "retries.1.attempt", "4");
    expect_member(&r, "retries.1.wait_min_ms", "0");
    expect_member(&r, "retries.1.wait_max_ms", "4000");
    expect_member(&r, "retries.1.tokens_left", "490");
    expect_member(&r, "retries.1.gain_of_success", "5");
    result_fini(&r);
}
END_TEST

START_TEST(says_who_and_until_when)
{
    struct result r = RUN("", "--json", "--method=POST", "--host", DYNAMODB, "--status", "500",
                          "--header", SIGNED, "--header", "X-Amz-Target: DynamoDB_20120810.PutItem",
                          "--header", "X-Amz-Date: 20260531T235900Z");
    expect_member(&r, "request.service", "dynamodb");
    expect_member(&r, "request.found_by", "credential scope");
    expect_member(&r, "request.region", "us-east-1");
    expect_member(&r, "request.operation", "PutItem");
    expect_member(&r, "request.caller", "MPLE");
    expect_member(&r, "request.presigned", "false");
    expect_member(&r, "signature.good_until", "2026-06-01T00:03:00Z");
    expect_member(&r, "signature.clock", "machine");
    expect_member(&r, "signature.seconds_left", "180");
    expect_member(&r, "signature.in_time", "yes");
    expect_member(&r, "settings.0.name", "rule");
    result_fini(&r);
}
END_TEST

/* The query protocol names its operation in the body; the interim response is passed over; lines
 * may end as an editor ends them. */
START_TEST(raw_files)
{
    static const char *const raws[] = {
        "POST / HTTP/1.1\r\nHost: sqs.us-east-1.amazonaws.com\r\nContent-Type: "
        "application/x-www-form-urlencoded\r\nContent-Length: 21\r\n\r\nAction=ReceiveMessage"
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n"
        "\r\n13\r\n<Error><Code>Slow</\r\n12\r\nCode></Error>     \r\n0\r\n\r\n",
        "\nPOST / HTTP/1.1\nHost: sqs.us-east-1.amazonaws.com\nContent-Type: "
        "application/x-www-form-urlencoded\nContent-Length: 21\n\nAction=ReceiveMessage\n\n"
        "HTTP/1.1 403\n\n<Error><Code>Slow</Code></Error>\n",
    };
    struct result r = RUN(raws[_i], "--json", "--raw", "-");
    ck_assert_str_eq(r.err, "");
    expect_member(&r, "request.operation", "ReceiveMessage");
    expect_member(&r, "request.long_poll", "true");
    expect_member(&r, "answer.status", "403");
    expect_member(&r, "answer.code", "Slow");
    result_fini(&r);
}
END_TEST

START_TEST(raw_without_an_end)
{
    struct result r = RUN("GET / HTTP/1.1\r\nHost: " DYNAMODB "\r\n\r\n"
                          "HTTP/1.1 400 B\r\nContent-Length: 50\r\n\r\n{\"__type\":\"Thr",
                          "--json", "--raw=-");
    expect_member(&r, "answer.failure", "truncated_body");
    expect_member(&r, "answer.class", "transient");
    result_fini(&r);
    r = RUN("GET / HTTP/1.1\r\nHost: " DYNAMODB "\r\n\r\n", "--json", "--raw=-", "--failure=reset");
    expect_member(&r, "answer.status", "null");
    expect_member(&r, "answer.failure", "reset");
    result_fini(&r);
}
END_TEST

/* --- what cannot be used --- */

#define GET "GET / HTTP/1.1\r\nHost: " DYNAMODB "\r\n\r\n"

static const struct {
    const char *input, *args[6], *line;
} unusable[] = {
    {"", {"--status=500"}, "give --host"},
    {"", {"--host=a b", "--status=500"}, "--host: "},
    {"", {"--host=" DYNAMODB}, "no response"},
    {"", {"--host=" DYNAMODB, "--status=99"}, "--status: 200 to 599"},
    {"", {"--host=" DYNAMODB, "--status=6000"}, "--status: 200 to 599"},
    {"", {"--host=" DYNAMODB, "--status=-1"}, "--status: 200 to 599"},
    {"", {"--host=" DYNAMODB, "--status=500", "--attempt=0"}, "--attempt: 1 to 100"},
    {"", {"--host=" DYNAMODB, "--status=500", "--attempt=101"}, "--attempt: 1 to 100"},
    {"", {"--host=" DYNAMODB, "--failure=fire"}, "one of dns_failure, "},
    {"", {"--host=" DYNAMODB, "--failure=reset", "--status=500"}, "there is no response"},
    {"", {"--host=" DYNAMODB, "--method=GET /"}, "--method"},
    {"", {"--host=" DYNAMODB, "--path=/ HTTP/1.1\r\nX: y", "--status=500"}, "--path"},
    {"", {"--host=" DYNAMODB, "--status=500", "--header=X: y\r\nZ: z"}, "on one line"},
    {"", {"--host=" DYNAMODB, "--status=500", "--header=Authorization"}, "'Name: value'"},
    {"", {"--host=" DYNAMODB, "--status=500", "--response-header=a b: c"}, "response: "},
    {"", {"--host=" DYNAMODB, "--status=500", "--header=Host: other"}, "Host more than once"},
    {"x", {"--host=" DYNAMODB, "--status=204", "--body=-"}, "has none"},
    {"x", {"--host=" DYNAMODB, "--body=-"}, "needs its --status"},
    {"", {"--host=" DYNAMODB, "--status=500", "--body=/nonexistent/b"}, "No such file"},
    {"", {"--host=" DYNAMODB, "--status=500", "--status=501"}, "given twice"},
    {"", {"--status"}, "needs a value"},
    {"", {"--json=yes"}, "takes no value"},
    {GET, {"--raw=-", "--host=" DYNAMODB}, "--raw: "},
    {"", {"--raw=-"}, "request: "},
    {"\r\n\r\n", {"--raw=-"}, "request: "},
    {"GET", {"--raw=-"}, "the head is incomplete"},
    {GET, {"--raw=-"}, "no response"},
    {GET "HTTP/2 500\r\n\r\n", {"--raw=-"}, "bad status line, at byte"},
    {GET "HTTP/1.1 500 \r\n", {"--raw=-"}, "the head is incomplete"},
    {GET "HTTP/1.1 500 \r\nA\tb: c\r\n\r\n", {"--raw=-"}, "response: "},
    {GET "HTTP/1.1 101 \r\n\r\n", {"--raw=-"}, "101"},
    {GET "HTTP/1.1 500 \r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     {"--raw=-"},
     "both Content-Length"},
    {GET "HTTP/1.1 500 \r\nContent-Length: 1\r\n\r\nabc", {"--raw=-"}, "2 bytes follow"},
    {GET "HTTP/1.1 500 \r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
     {"--raw=-"},
     "response body: "},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", {"--raw=-"}, "cut short"},
    {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\nHTTP/1.1 500 \r\n\r\n", {"--raw=-"}, "CONNECT"},
    {"GET * HTTP/1.0\r\n\r\nHTTP/1.1 500 \r\n\r\n", {"--raw=-"}, "Host missing"},
    {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\nHTTP/1.1 500 \r\n\r\n", {"--raw=-"}, "target"},
};

START_TEST(refuses_in_one_line)
{
    const char *input = unusable[_i].input;
    struct result r = run_on(input, strlen(input), unusable[_i].args);
    ck_assert_str_eq(r.out, "");
    ck_assert_msg(strstr(r.err, unusable[_i].line) != NULL, "%s", r.err);
    ck_assert_uint_eq(strcspn(r.err, "\n") + 1, strlen(r.err));
    ck_assert_int_eq(r.status, 2);
    result_fini(&r);
}
END_TEST

START_TEST(usage_repeats_no_operand)
{
    struct result r = RUN("", "--host=" DYNAMODB, SIGNED);
    ck_assert_int_eq(r.status, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "usage: retryd explain"));
    ck_assert_ptr_null(strstr(r.err, "Credential"));
    result_fini(&r);
}
END_TEST

START_TEST(input_is_bounded)
{
    size_t n = (1 << 20) + 1;
    char *large = malloc(n);
    memset(large, 'a', n);
    struct result r = run_on(large, n, (const char *const[]){"--raw=-", NULL});
    ck_assert_int_eq(r.status, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "larger than 1048576 bytes"));
    result_fini(&r);
    /* Heads have the bounds of the proxy: one line of 300 KiB, with either end of line. */
    for (size_t i = 0; i < 2; i++) {
        static const char *const starts[] = {GET "HTTP/1.1 500 \r\nA: ",
                                             "GET / HTTP/1.1\nHost: a\n\nHTTP/1.1 500\nA: "};
        memset(large, 'a', n);
        memcpy(large, starts[i], strlen(starts[i]));
        r = run_on(large, 300 * 1024, (const char *const[]){"--raw=-", NULL});
        ck_assert_int_eq(r.status, 2);
        ck_assert_msg(strstr(r.err, "head too large") != NULL, "%s", r.err);
        result_fini(&r);
    }
    memset(large, 'a', n);
    memcpy(large, "X: ", 3);
    large[n - 1] = '\0';
    r = run_on("", 0,
               (const char *const[]){"--host=" DYNAMODB, "--status=500", "--header", large, NULL});
    ck_assert_ptr_nonnull(strstr(r.err, "--header: too much"));
    ck_assert_int_eq(r.status, 2);
    result_fini(&r);
    free(large);
}
END_TEST

/* --- secrets --- */

static void expect_no_secret(const char *text)
{
    static const char *const secrets[] = {SECRET_KEY, "AKIDSECRET", "5ec2e7", "t0ken", "pr1vate"};
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        ck_assert_msg(strstr(text, secrets[i]) == NULL, "%s in %s", secrets[i], text);
}

START_TEST(no_secret_comes_out)
{
    static const char *const layouts[] = {"--attempt=1", "--json"};
    static const char *const statuses[] = {"--status=500", "--status=400", "--status=wrong"};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct result r =
            RUN("{\"__type\":\"AccessDeniedException\",\"message\":\"pr1vate\"}", layouts[_i],
                statuses[i], "--host=" DYNAMODB, "--header", SIGNED, "--header",
                "X-Amz-Security-Token: t0ken", "--header", "X-Amz-Date: 20260601T000000Z",
                "--response-header", "Set-Cookie: pr1vate", "--body=-",
                "--path=/pr1vate?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" SECRET_KEY
                "%2F20260601%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=5ec2e7&"
                "X-Amz-Security-Token=t0ken");
        ck_assert_int_eq(r.status, i < 2 ? 0 : 2);
        expect_no_secret(r.out);
        expect_no_secret(r.err);
        result_fini(&r);
    }
}
END_TEST

static TCase *engine(void)
{
    TCase *tc = tcase_create("engine");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, agrees_with_the_vectors);
    tcase_add_loop_test(tc, first_line_is_the_verdict, 0, ARRAY_LEN(verdicts));
    tcase_add_test(tc, retries_cost_and_give_back);
    tcase_add_test(tc, says_who_and_until_when);
    return tc;
}

static TCase *input(void)
{
    TCase *tc = tcase_create("input");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, raw_files, 0, 2);
    tcase_add_test(tc, raw_without_an_end);
    tcase_add_loop_test(tc, refuses_in_one_line, 0, ARRAY_LEN(unusable));
    tcase_add_test(tc, usage_repeats_no_operand);
    tcase_add_test(tc, input_is_bounded);
    tcase_add_loop_test(tc, no_secret_comes_out, 0, 2);
    return tc;
}

UNIT_MAIN("explain", engine, input)
