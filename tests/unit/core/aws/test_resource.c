/* Requests to the resources that they work on (resources.def). */
#include "core/aws/resource.h"
#include "core/base/attr.h"
#include "unit.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

#define FORM "application/x-www-form-urlencoded; charset=utf-8"

static const struct {
    const char *host, *type, *path, *body, *want;
} cases[] = {
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "{\"TableName\":\"orders\",\"Key\":{}}",
     "orders"},
    {"dynamodb.us-east-1.amazonaws.com", "", "/",
     " { \"Key\" : {\"TableName\":\"inner\"}, \"TableName\" : \"or\\u0064ers\" }", "orders"},
    {"dynamodb.us-east-1.amazonaws.com", "", "/",
     "{\"TableName\":\"arn:aws:dynamodb:us-east-1:1:table/orders/index/x\"", "orders"},
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "{\"TableName\":\"ord", ""},
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "{\"RequestItems\":{}}", ""},
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "{\"TableName\":\"a b\"}", ""},
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "{\"TableName\":7}", ""},
    {"dynamodb.us-east-1.amazonaws.com", "", "/", "", ""},
    {"kinesis.us-east-1.amazonaws.com", "", "/", "{\"StreamName\":\"clicks\"}", "clicks"},
    {"kinesis.us-east-1.amazonaws.com", "", "/",
     "{\"StreamARN\":\"arn:aws:kinesis:us-east-1:1:stream/clicks\"}", "clicks"},
    {"firehose.us-east-1.amazonaws.com", "", "/", "{\"DeliveryStreamName\":\"logs\"}", "logs"},
    {"sqs.us-east-1.amazonaws.com", "", "/",
     "{\"QueueUrl\":\"https://sqs.us-east-1.amazonaws.com/1/jobs\"}", "jobs"},
    {"sqs.us-east-1.amazonaws.com", FORM, "/",
     "Action=SendMessage&QueueUrl=https%3A%2F%2Fsqs%2F1%2Fjobs&x=1", "jobs"},
    {"sqs.us-east-1.amazonaws.com", FORM, "/",
     "Action=SendMessage&QueueUrl=https%3A%2F%2Fsqs%2F1%2Fjo", ""},
    {"sqs.us-east-1.amazonaws.com", "", "/1/jobs?Action=ReceiveMessage", "", "jobs"},
    {"sqs.us-east-1.amazonaws.com", "", "/1/jobs/x", "", ""},
    {"sns.us-east-1.amazonaws.com", FORM, "/",
     "TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A1%3Anews&Action=Publish", "news"},
    {"lambda.us-east-1.amazonaws.com", "", "/2015-03-31/functions/resize:live/invocations", "",
     "resize"},
    {"lambda.us-east-1.amazonaws.com", "",
     "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A1%3Afunction%3Aresize/invocations", "",
     "resize"},
    {"lambda.us-east-1.amazonaws.com", "", "/2015-03-31/functions", "", ""},
    {"bkt.s3.us-east-1.amazonaws.com", "", "/key", "", "bkt"},
    {"my.bkt.s3.amazonaws.com", "", "/key", "", "my.bkt"},
    {"s3.us-east-1.amazonaws.com", "", "/bkt/key?x", "", "bkt"},
    {"s3.us-east-1.amazonaws.com", "", "/", "", ""},
    {"ec2.us-east-1.amazonaws.com", FORM, "/", "Action=RunInstances&InstanceId=i", ""},
    {"example.com", "", "/a/b", "{\"TableName\":\"x\"}", ""},
};

START_TEST(reads)
{
    struct http_req req = {
        .method_id = HTTP_POST, .framing = HTTP_BODY_LENGTH, .content_length = 4096};
    struct slice host = slice_str(cases[_i].host), path = slice_str(cases[_i].path);
    struct aws_target t;
    header_add(&req.fields, &arena, SLICE("Content-Type"), slice_str(cases[_i].type));
    aws_identify(&req, host, path, SLICE_NONE, &arena, &t);
    struct slice have = resource_read(&req, &t, host, path, slice_str(cases[_i].body), &arena);
    ck_assert_msg(slice_eq(have, slice_str(cases[_i].want)), "%s %s: '%.*s' is not '%s'",
                  cases[_i].host, cases[_i].body, SLICE_FMT(have), cases[_i].want);
}
END_TEST

/* Only these have to wait for a body. */
START_TEST(in_body)
{
    static const struct {
        const char *host;
        bool want;
    } hosts[] = {
        {"dynamodb.us-east-1.amazonaws.com", true}, {"sqs.us-east-1.amazonaws.com", true},
        {"sns.us-east-1.amazonaws.com", true},      {"s3.us-east-1.amazonaws.com", false},
        {"lambda.us-east-1.amazonaws.com", false},  {"example.com", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct http_req req = {.method_id = HTTP_POST};
        struct aws_target t;
        aws_identify(&req, slice_str(hosts[i].host), SLICE("/"), SLICE_NONE, &arena, &t);
        ck_assert_msg(resource_in_body(&t) == hosts[i].want, "%s", hosts[i].host);
    }
}
END_TEST

static TCase *tcase_all(void)
{
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, reads, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(t, in_body);
    return t;
}

UNIT_MAIN("resource", tcase_all)
