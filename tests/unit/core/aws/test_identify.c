/* Requests to targets: whose scope, which service, which operation (retry-semantics §3.6, §4, §8).
 */
#include "core/aws/aws.h"
#include "core/aws/plain.h"
#include "core/base/attr.h"
#include "unit.h"

#include <stdio.h>

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

struct header {
    const char *name, *value;
};

#define SCOPE(region, service)                                                                     \
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260601/" region "/" service                         \
    "/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"

static struct http_req request(enum http_method method, const struct header *h)
{
    struct http_req req = {.method_id = method};
    for (; h && h->name; h++)
        header_add(&req.fields, &arena, slice_str(h->name), slice_str(h->value));
    return req;
}

static struct aws_target identify(enum http_method method, const char *host, const char *path,
                                  const struct header *h)
{
    struct aws_target t;
    struct http_req req = request(method, h);
    aws_identify(&req, slice_str(host), slice_str(path), SLICE_NONE, &arena, &t);
    return t;
}

static struct aws_target with_auth(const char *host, const char *authorization)
{
    const struct header h[] = {{"Authorization", authorization}, {NULL, NULL}};
    return identify(HTTP_POST, host, "/", h);
}

static void is(struct slice have, const char *want)
{
    ck_assert_msg(slice_eq(have, slice_str(want)), "'%.*s' is not '%s'", SLICE_FMT(have), want);
}

START_TEST(scope_beats_host)
{
    struct aws_target t = with_auth("localhost", SCOPE("eu-west-1", "dynamodb"));
    ck_assert(t.is_aws && !t.is_service_endpoint && t.service);
    is(t.service_name, "dynamodb");
    is(t.signing_name, "dynamodb");
    is(t.region, "eu-west-1");
    is(t.access_key, "AKIDEXAMPLE");
    ck_assert(!t.presigned);
    t = with_auth("sqs.us-east-1.amazonaws.com", SCOPE("eu-west-1", "swf"));
    is(t.service_name, "swf");
    is(t.region, "eu-west-1");
    t = with_auth("streams.dynamodb.us-east-1.amazonaws.com", SCOPE("us-east-1", "dynamodb"));
    is(t.service_name, "dynamodb-streams");
}
END_TEST

START_TEST(authorization_forms)
{
    static const char *const good[] = {
        SCOPE("us-east-1", "sqs"),
        "AWS4-HMAC-SHA256 Signature=0,Credential=AKIDEXAMPLE/20260601/us-east-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256   Credential=AKIDEXAMPLE/20260601/us-east-1/sqs/aws4_request,Signature=0",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct aws_target t = with_auth("example.com", good[i]);
        is(t.access_key, "AKIDEXAMPLE");
        is(t.region, "us-east-1");
        is(t.service_name, "sqs");
    }
    struct aws_target t = with_auth(
        "m.accesspoint.s3-global.amazonaws.com",
        "AWS4-ECDSA-P256-SHA256 Credential=AKIDEXAMPLE/20260601/s3/aws4_request, Signature=00");
    is(t.access_key, "AKIDEXAMPLE");
    is(t.signing_name, "s3");
    is(t.region, "");
    t = with_auth("b.s3.eu-west-1.amazonaws.com", "AWS AKIDEXAMPLE:c2ln");
    is(t.access_key, "AKIDEXAMPLE");
    is(t.signing_name, "");
    is(t.service_name, "s3");
    is(t.region, "eu-west-1");
    t = with_auth("example.com", SCOPE("us-east-1", "somethingnew"));
    ck_assert(t.is_aws && !t.service);
    is(t.service_name, "somethingnew");
}
END_TEST

START_TEST(no_signature)
{
    static const char *const bad[] = {
        "",
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 ",
        "AWS4-HMAC-SHA256 Credential=",
        "AWS4-HMAC-SHA256 Credential=aws4_request",
        "AWS4-HMAC-SHA256 Credential=////aws4_request",
        "AWS4-HMAC-SHA256 Credential=AKID/20260601/us-east-1/sqs/aws5_request",
        "AWS4-HMAC-SHA256 Credential=AK ID/20260601/us-east-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256 Credential=AKID/20260601/us\x01-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256 Credential=AKID/20260601/us-east-1/sq\ns/aws4_request",
        "AWS4-HMAC-SHA256 Credential=AKID/20260601/us-east-1/\"sqs\"/aws4_request",
        "AWS4-HMAC-SHA1 Credential=AKID/20260601/us-east-1/sqs/aws4_request",
        "Basic QUtJRDpzZWNyZXQ=",
        "Bearer AWS",
        "AWS :sig",
        "AWS",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct aws_target t = with_auth("example.com", bad[i]);
        ck_assert_msg(!t.is_aws && t.access_key.n == 0 && t.region.n == 0, "%s", bad[i]);
        is(t.service_name, "-");
    }
    static char huge[4096];
    memset(huge, 'A', sizeof huge - 1);
    huge[1] = 'W';
    huge[2] = 'S';
    huge[3] = ' ';
    ck_assert(!with_auth("example.com", huge).is_aws);
    static const char head[] = "AWS4-HMAC-SHA256 Credential=";
    static const char tail[] = "/20260601/us-east-1/sqs/aws4_request";
    memcpy(huge, head, sizeof head - 1);
    memcpy(huge + sizeof huge - sizeof tail, tail, sizeof tail);
    ck_assert(!with_auth("example.com", huge).is_aws);
}
END_TEST

START_TEST(presigned)
{
    struct aws_target t = identify(
        HTTP_GET, "b.s3.amazonaws.com",
        "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260601%2Feu-west-1%"
        "2fs3%2Faws4_request&X-Amz-Signature=00",
        NULL);
    ck_assert(t.presigned);
    is(t.access_key, "AKIDEXAMPLE");
    is(t.region, "eu-west-1");
    is(t.operation, "GetObject");
    t = identify(HTTP_GET, "b.s3.amazonaws.com",
                 "/k?AWSAccessKeyId=AKIDEXAMPLE&Signature=x%3D&Expires=1", NULL);
    ck_assert(t.presigned);
    is(t.access_key, "AKIDEXAMPLE");
    static const char *const bad[] = {
        "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F2026%2Fr%2Fs3%2Faws4_request%",
        "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%0A%2F1%2Fr%2Fs3%2Faws4_request",
        "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%zz%2F1%2Fr%2Fs3%2Faws4_request",
        "/k?X-Amz-Credential=AKID%2F20260601%2Fr%2Fs3%2Faws4_request",
        "/k?AWSAccessKeyId=AKIDEXAMPLE",
        "/k?AWSAccessKeyId=&Signature=x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        t = identify(HTTP_GET, "example.com", bad[i], NULL);
        ck_assert_msg(!t.is_aws && !t.presigned && t.access_key.n == 0, "%s", bad[i]);
    }
}
END_TEST

START_TEST(unsigned_hosts)
{
    struct aws_target t = identify(HTTP_POST, "lb-1.us-east-1.elb.amazonaws.com", "/", NULL);
    ck_assert(t.is_aws && !t.is_service_endpoint && !t.service);
    is(t.service_name, "lb-1");
    is(t.access_key, "");
    t = identify(HTTP_POST, "169.254.169.254", "/", NULL);
    ck_assert(!t.is_aws);
    is(t.service_name, "-");
}
END_TEST

static struct aws_target with_target(const char *service, const char *target)
{
    char auth[256];
    snprintf(auth, sizeof auth, "AWS4-HMAC-SHA256 Credential=AKID/1/us-east-1/%s/aws4_request",
             service);
    const struct header h[] = {{"authorization", auth}, {"X-Amz-Target", target}, {NULL, NULL}};
    return identify(HTTP_POST, "localhost", "/", h);
}

START_TEST(amz_target)
{
    struct aws_target t = with_target("dynamodb", "DynamoDB_20120810.PutItem");
    is(t.service_name, "dynamodb");
    is(t.operation, "PutItem");
    t = with_target("dynamodb", "DynamoDBStreams_20120810.GetRecords");
    is(t.service_name, "dynamodb-streams");
    is(t.operation, "GetRecords");
    t = with_target("sqs", "DynamoDBStreams_20120810.GetRecords");
    is(t.service_name, "sqs");
    t = with_target("cloudtrail",
                    "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents");
    is(t.operation, "LookupEvents");
    static const char *const bad[] = {"", "NoDot", "Dot.", "A.Two words", "A.x\x7fy", "A.x\"y"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        is(with_target("sqs", bad[i]).operation, "");
    char longest[2 + PLAIN_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[1] = '.';
    longest[2 + PLAIN_MAX] = '\0';
    ck_assert_uint_eq(with_target("sqs", longest).operation.n, PLAIN_MAX);
    longest[2 + PLAIN_MAX] = 'a';
    longest[2 + PLAIN_MAX + 1] = '\0';
    ck_assert_uint_eq(with_target("sqs", longest).operation.n, 0);
}
END_TEST

START_TEST(long_polling)
{
    static const struct {
        const char *service, *target;
        bool polls;
    } cases[] = {
        {"sqs", "AmazonSQS.ReceiveMessage", true},
        {"sqs", "AmazonSQS.SendMessage", false},
        {"states", "AWSStepFunctions.GetActivityTask", true},
        {"swf", "SimpleWorkflowService.PollForActivityTask", true},
        {"swf", "SimpleWorkflowService.PollForDecisionTask", true},
        {"sns", "X.ReceiveMessage", false},
        {"sqs", "AmazonSQS.receivemessage", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_msg(with_target(cases[i].service, cases[i].target).long_poll == cases[i].polls,
                      "%s", cases[i].target);
}
END_TEST

static struct aws_target post_form(const char *target, const char *type, const char *body,
                                   uint64_t content_length)
{
    const struct header h[] = {{"Content-Type", type}, {NULL, NULL}};
    struct http_req req = request(HTTP_POST, h);
    req.framing = HTTP_BODY_LENGTH;
    req.content_length = content_length;
    struct aws_target t;
    aws_identify(&req, SLICE("sqs.us-east-1.amazonaws.com"), slice_str(target), slice_str(body),
                 &arena, &t);
    return t;
}

START_TEST(query_protocol)
{
    const char *form = "application/x-www-form-urlencoded; charset=utf-8";
    const char *body = "Action=ReceiveMessage";
    struct aws_target t = post_form("/", form, body, strlen(body));
    is(t.operation, "ReceiveMessage");
    ck_assert(t.long_poll);
    is(post_form("/", form, "Version=1&Action=ReceiveMessage&X=y", 4096).operation,
       "ReceiveMessage");
    /* A name cut by the end of the prefix is no name. */
    is(post_form("/", form, "Action=Receive", 4096).operation, "");
    is(post_form("/", "text/plain", body, strlen(body)).operation, "");
    is(post_form("/?Action=ListQueues", form, body, strlen(body)).operation, "ListQueues");
    is(post_form("/?Action=%0aListQueues", form, "", 0).operation, "");
    is(post_form("/?Action=List%51ueues", form, "", 0).operation, "ListQueues");
    is(post_form("/", form, "", 0).operation, "");
}
END_TEST

START_TEST(rpc_v2_and_rest_paths)
{
    const char *cw = "monitoring.us-east-1.amazonaws.com";
    is(identify(HTTP_POST, cw, "/service/GraniteServiceVersion20100801/operation/PutMetricData",
                NULL)
           .operation,
       "PutMetricData");
    is(identify(HTTP_POST, cw, "/base/service/S/operation/Op", NULL).operation, "Op");
    is(identify(HTTP_POST, cw, "/service/S/operation/", NULL).operation, "");
    is(identify(HTTP_POST, cw, "/service/S/operation", NULL).operation, "");
    is(identify(HTTP_POST, cw, "/service/S/operation/Op/more", NULL).operation, "");
    const char *fn = "lambda.us-east-1.amazonaws.com";
    is(identify(HTTP_POST, fn, "/2015-03-31/functions/f/invocations", NULL).operation, "Invoke");
    is(identify(HTTP_POST, fn, "/2015-03-31/functions/f/invocations?Qualifier=1", NULL).operation,
       "Invoke");
    is(identify(HTTP_POST, fn, "/2014-11-13/functions/f/invoke-async/", NULL).operation,
       "InvokeAsync");
    is(identify(HTTP_POST, fn, "/2015-03-31/functions//invocations", NULL).operation, "");
    is(identify(HTTP_GET, fn, "/2015-03-31/functions/f/invocations", NULL).operation, "");
    is(identify(HTTP_POST, fn, "/2015-03-31/functions/f", NULL).operation, "");
    is(identify(HTTP_POST, fn, "", NULL).operation, "");
    is(identify(HTTP_OPTIONS, fn, "*", NULL).operation, "");
}
END_TEST

static const struct {
    enum http_method method;
    const char *host, *path, *operation;
    bool error_in_200, copy;
} s3_cases[] = {
    {HTTP_PUT, "b.s3.amazonaws.com", "/k", "CopyObject", true, true},
    {HTTP_PUT, "s3.amazonaws.com", "/b/k", "CopyObject", true, true},
    {HTTP_PUT, "b.s3.amazonaws.com", "/k?partNumber=1&uploadId=u", "UploadPartCopy", true, true},
    {HTTP_PUT, "b.s3.amazonaws.com", "/k?partNumber=1&uploadId=u", "UploadPart", false, false},
    {HTTP_POST, "b.s3.amazonaws.com", "/k?uploadId=u", "CompleteMultipartUpload", true, false},
    {HTTP_POST, "b.s3express-use1-az4.us-east-1.amazonaws.com", "/k?uploadId=u",
     "CompleteMultipartUpload", true, false},
    {HTTP_POST, "b.s3.amazonaws.com", "/k?uploads", "CreateMultipartUpload", false, false},
    {HTTP_POST, "b.s3.amazonaws.com", "/k?uploads=", "CreateMultipartUpload", false, false},
    {HTTP_POST, "b.s3.amazonaws.com", "/k?select&select-type=2", "SelectObjectContent", false,
     false},
    {HTTP_DELETE, "b.s3.amazonaws.com", "/k?uploadId=u", "AbortMultipartUpload", false, false},
    {HTTP_DELETE, "b.s3.amazonaws.com", "/k", "DeleteObject", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/k?uploadId=u", "ListParts", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/k", "GetObject", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/k?versionId=1", "GetObject", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "//", "GetObject", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/?list-type=2&prefix=a", "ListObjectsV2", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/?list-type=1", "ListObjects", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/", "ListObjects", false, false},
    {HTTP_GET, "s3.amazonaws.com", "/b?versions", "ListObjectVersions", false, false},
    {HTTP_GET, "s3.amazonaws.com", "/b/?policy", "GetBucketPolicy", false, false},
    {HTTP_GET, "s3.amazonaws.com", "/b/k?policy", "GetObject", false, false},
    {HTTP_GET, "s3.amazonaws.com", "/", "ListBuckets", false, false},
    {HTTP_HEAD, "s3.amazonaws.com", "/b", "HeadBucket", false, false},
    {HTTP_HEAD, "s3.amazonaws.com", "/b/k/", "HeadObject", false, false},
    {HTTP_PUT, "s3.amazonaws.com", "/b/", "CreateBucket", false, false},
    {HTTP_DELETE, "b.s3.amazonaws.com", "/", "DeleteBucket", false, false},
    {HTTP_POST, "b.s3.amazonaws.com", "/?delete", "DeleteObjects", false, false},
    {HTTP_GET, "b.s3express-use1-az4.us-east-1.amazonaws.com", "/?session", "CreateSession", false,
     false},
    {HTTP_GET, "b.bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", "/k", "GetObject", false, false},
    {HTTP_GET, "bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", "/b", "ListObjects", false, false},
    {HTTP_PATCH, "b.s3.amazonaws.com", "/k", "", false, false},
    {HTTP_GET, "1.s3-control.us-east-1.amazonaws.com", "/v20180820/bucket", "", false, false},
    {HTTP_POST, "sqs.us-east-1.amazonaws.com", "/k?uploadId=u", "", false, false},
    {HTTP_GET, "b.s3.amazonaws.com", "/?Action=ReceiveMessage", "ListObjects", false, false},
};

START_TEST(s3_operations)
{
    static const struct header copy[] = {{"x-amz-copy-source", "/b/k"}, {NULL, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(s3_cases); i++) {
        struct aws_target t = identify(s3_cases[i].method, s3_cases[i].host, s3_cases[i].path,
                                       s3_cases[i].copy ? copy : NULL);
        ck_assert_msg(slice_eq(t.operation, slice_str(s3_cases[i].operation)), "%s%s: %.*s",
                      s3_cases[i].host, s3_cases[i].path, SLICE_FMT(t.operation));
        ck_assert_msg(t.error_in_200 == s3_cases[i].error_in_200, "%s", s3_cases[i].path);
    }
}
END_TEST

/* Operations that answer in XML, and those that hand out what the caller has stored. */
START_TEST(s3_answers)
{
    static const struct {
        enum http_method method;
        const char *host, *path, *operation;
        bool xml_in_200;
    } cases[] = {
        {HTTP_GET, "b.s3.amazonaws.com", "/?list-type=2", "ListObjectsV2", true},
        {HTTP_GET, "b.s3.amazonaws.com", "/", "ListObjects", true},
        {HTTP_GET, "s3.amazonaws.com", "/", "ListBuckets", true},
        {HTTP_GET, "b.s3.amazonaws.com", "/?acl", "GetBucketAcl", true},
        {HTTP_GET, "b.s3.amazonaws.com", "/k?acl", "GetObjectAcl", true},
        {HTTP_GET, "b.s3.amazonaws.com", "/k?uploadId=u", "ListParts", true},
        {HTTP_POST, "b.s3.amazonaws.com", "/k?uploads", "CreateMultipartUpload", true},
        {HTTP_POST, "b.s3.amazonaws.com", "/?delete", "DeleteObjects", true},
        {HTTP_GET, "b.s3.amazonaws.com", "/k", "GetObject", false},
        {HTTP_GET, "b.s3.amazonaws.com", "/k?policy", "GetObject", false},
        {HTTP_GET, "b.s3.amazonaws.com", "/?policy", "GetBucketPolicy", false},
        {HTTP_GET, "b.s3.amazonaws.com", "/k?torrent", "GetObjectTorrent", false},
        {HTTP_GET, "b.s3.amazonaws.com", "/k?annotation=a", "GetObjectAnnotation", false},
        {HTTP_POST, "b.s3.amazonaws.com", "/k?select&select-type=2", "SelectObjectContent", false},
        {HTTP_PUT, "b.s3.amazonaws.com", "/k", "PutObject", false},
        {HTTP_GET, "1.s3-control.us-east-1.amazonaws.com", "/", "", false},
        /* Custom endpoints: a key where we see a bucket. */
        {HTTP_GET, "minio.internal", "/k", "ListObjects", false},
        {HTTP_GET, "minio.internal", "/k?list-type=2", "ListObjectsV2", true},
        {HTTP_GET, "minio.internal", "/b/k?tagging", "GetObjectTagging", true},
        {HTTP_GET, "minio.internal", "/", "ListBuckets", true},
    };
    const struct header h[] = {{"authorization", SCOPE("us-east-1", "s3")}, {NULL, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct aws_target t = identify(cases[i].method, cases[i].host, cases[i].path,
                                       strchr(cases[i].host, 'w') ? NULL : h);
        is(t.operation, cases[i].operation);
        ck_assert_msg(t.xml_in_200 == cases[i].xml_in_200, "%s%s", cases[i].host, cases[i].path);
        ck_assert(!t.error_in_200);
    }
}
END_TEST

START_TEST(s3_at_a_custom_endpoint)
{
    const struct header h[] = {{"authorization", SCOPE("us-east-1", "s3")}, {NULL, NULL}};
    struct aws_target t = identify(HTTP_POST, "minio.internal", "/b/k?uploadId=u", h);
    is(t.operation, "CompleteMultipartUpload");
    ck_assert(t.error_in_200 && t.is_aws && !t.is_service_endpoint);
}
END_TEST

START_TEST(decoding)
{
    char buf[4];
    is(plain_decode(SLICE("a%2Fb"), buf, sizeof buf), "a/b");
    is(plain_decode(SLICE("a+b"), buf, sizeof buf), "a+b");
    is(plain_decode(SLICE("abcd"), buf, sizeof buf), "abcd");
    is(plain_decode(SLICE("abcde"), buf, sizeof buf), "");
    is(plain_decode(SLICE("a%2"), buf, sizeof buf), "");
    is(plain_decode(SLICE("a%"), buf, sizeof buf), "");
    is(plain_decode(SLICE("%+1"), buf, sizeof buf), "");
    is(plain_decode(SLICE_NONE, buf, sizeof buf), "");
}
END_TEST

static TCase *who(void)
{
    TCase *tc = tcase_create("who");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, scope_beats_host);
    tcase_add_test(tc, authorization_forms);
    tcase_add_test(tc, no_signature);
    tcase_add_test(tc, presigned);
    tcase_add_test(tc, unsigned_hosts);
    tcase_add_test(tc, decoding);
    return tc;
}

static TCase *what(void)
{
    TCase *tc = tcase_create("what");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, amz_target);
    tcase_add_test(tc, long_polling);
    tcase_add_test(tc, query_protocol);
    tcase_add_test(tc, rpc_v2_and_rest_paths);
    tcase_add_test(tc, s3_operations);
    tcase_add_test(tc, s3_answers);
    tcase_add_test(tc, s3_at_a_custom_endpoint);
    return tc;
}

UNIT_MAIN("identify", who, what)
