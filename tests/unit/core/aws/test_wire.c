/* Requests as 40 clients really sent them (tests/vectors/wire): each must be identified as its
 * index says. */
#include "unit.h"

#include <stdio.h>

#include "core/aws/aws.h"
#include "core/aws/errcode.h"
#include "core/base/attr.h"
#include "core/http/h1_head.h"

enum { FILE_MAX = 64 * 1024, COLUMNS = 5 };

static struct slice read_file(const char *name, char buf[FILE_MAX])
{
    char path[1024];
    snprintf(path, sizeof path, TEST_DATA_DIR "/vectors/wire/%s", name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    size_t n = fread(buf, 1, FILE_MAX, f);
    fclose(f);
    ck_assert_uint_lt(n, FILE_MAX);
    return slice_of(buf, n);
}

static void check(struct slice file, const char *what, struct slice have, struct slice want)
{
    if (slice_eq(want, SLICE("-")))
        want = SLICE_NONE;
    ck_assert_msg(slice_eq(have, want), "%.*s: %s is '%.*s', not '%.*s'", SLICE_FMT(file), what,
                  SLICE_FMT(have), SLICE_FMT(want));
}

static void identify_file(const struct slice column[COLUMNS])
{
    static char buf[FILE_MAX];
    char name[256];
    const char *why = NULL;
    snprintf(name, sizeof name, "%.*s", SLICE_FMT(column[0]));
    struct slice bytes = read_file(name, buf);

    struct arena a;
    struct h1_head head = {0};
    struct http_req req;
    struct target target;
    struct authority host;
    struct aws_target t;
    arena_init(&a);
    ck_assert_msg(h1_parse_request(&head, bytes.p, bytes.n, &h1_request_limits, &a, &req) ==
                      PARSE_OK,
                  "%s: %s", name, head.problem ? head.problem : "cut");
    ck_assert_msg(target_parse(req.target, false, &target, &why) != TARGET_BAD, "%s: %s", name,
                  why);
    ck_assert(authority_parse(header_get(&req.fields, SLICE("host")), 443, &host, &why));
    struct slice body = slice_of(bytes.p + head.consumed, bytes.n - head.consumed);
    aws_identify(&req, slice_str(host.host), target.path_query, body, &a, &t);

    ck_assert_msg(t.is_aws && t.is_service_endpoint && t.service, "%s", name);
    check(column[0], "service", t.service_name, column[1]);
    check(column[0], "region", t.region, column[2]);
    check(column[0], "operation", t.operation, column[3]);
    check(column[0], "access key", t.access_key, column[4]);
    bool polls = slice_eq(t.operation, SLICE("ReceiveMessage")) ||
                 slice_eq(t.operation, SLICE("GetActivityTask")) ||
                 slice_eq(t.operation, SLICE("PollForDecisionTask"));
    ck_assert_msg(t.long_poll == polls, "%s", name);
    ck_assert_msg(t.error_in_200 == slice_eq(t.operation, SLICE("CompleteMultipartUpload")), "%s",
                  name);
    ck_assert_msg(t.presigned == slice_has_nocase(req.target, SLICE("X-Amz-Credential")), "%s",
                  name);
    arena_fini(&a);
}

START_TEST(every_recorded_request)
{
    static char buf[FILE_MAX];
    struct slice rest = read_file("identify.tsv", buf), line;
    bool done = false;
    size_t lines = 0;
    while (slice_next(&rest, '\n', &line, &done)) {
        if (line.n == 0)
            continue;
        struct slice column[COLUMNS];
        bool line_done = false;
        for (size_t i = 0; i < COLUMNS; i++)
            ck_assert(slice_next(&line, '\t', &column[i], &line_done));
        ck_assert(line_done);
        identify_file(column);
        lines++;
    }
    ck_assert_uint_ge(lines, 190);
}
END_TEST

START_TEST(protocol_of_answers)
{
    static const struct {
        const char *service, *content_type, *amz_target;
        enum aws_wire wire;
    } cases[] = {
        {"dynamodb", "application/x-amz-json-1.0", "DynamoDB_20120810.PutItem", AWS_WIRE_JSON},
        {"sqs", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", AWS_WIRE_JSON},
        {"sqs", "application/x-www-form-urlencoded", NULL, AWS_WIRE_QUERY},
        {"sqs", NULL, NULL, AWS_WIRE_QUERY},
        {"ec2", "application/x-www-form-urlencoded; charset=utf-8", NULL, AWS_WIRE_EC2},
        {"ec2", NULL, NULL, AWS_WIRE_EC2},
        {"monitoring", "application/cbor", NULL, AWS_WIRE_JSON},
        {"lambda", NULL, NULL, AWS_WIRE_JSON},
        {"s3", "application/json", NULL, AWS_WIRE_REST_XML},
        {"s3", NULL, NULL, AWS_WIRE_REST_XML},
        {"route53", "application/xml", NULL, AWS_WIRE_REST_XML},
        {"", "application/x-www-form-urlencoded", NULL, AWS_WIRE_QUERY},
        {"", "application/xml", NULL, AWS_WIRE_JSON},
        {"", NULL, NULL, AWS_WIRE_JSON},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a;
        arena_init(&a);
        struct http_req req = {.method_id = HTTP_POST};
        struct aws_target t = {.service = aws_service_by_name(slice_str(cases[i].service))};
        if (cases[i].content_type)
            header_add(&req.fields, &a, SLICE("content-type"), slice_str(cases[i].content_type));
        if (cases[i].amz_target)
            header_add(&req.fields, &a, SLICE("x-amz-target"), slice_str(cases[i].amz_target));
        ck_assert_msg(aws_wire_of(&req, &t) == cases[i].wire, "%s", cases[i].service);
        arena_fini(&a);
    }
}
END_TEST

static TCase *wire(void)
{
    TCase *tc = tcase_create("wire");
    tcase_add_test(tc, every_recorded_request);
    tcase_add_test(tc, protocol_of_answers);
    return tc;
}

UNIT_MAIN("wire", wire)
