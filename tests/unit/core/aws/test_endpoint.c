/* Hosts: label boundaries of the suffixes, the forms of service endpoints, and names that customers
 * choose, which are none (security requirements F1, I3). */
#include "core/aws/endpoint.h"
#include "core/base/attr.h"
#include "unit.h"

static const struct {
    const char *host, *service, *region;
    bool bucket_in_host;
} endpoints[] = {
    {"dynamodb.us-east-1.amazonaws.com", "dynamodb", "us-east-1", false},
    {"DynamoDB.US-East-1.AmazonAWS.com", "dynamodb", "US-East-1", false},
    {"dynamodb-fips.us-gov-west-1.amazonaws.com", "dynamodb", "us-gov-west-1", false},
    {"dynamodb.cn-north-1.amazonaws.com.cn", "dynamodb", "cn-north-1", false},
    {"dynamodb.us-iso-east-1.c2s.ic.gov", "dynamodb", "us-iso-east-1", false},
    {"dynamodb.us-isob-east-1.sc2s.sgov.gov", "dynamodb", "us-isob-east-1", false},
    {"dynamodb.us-isof-south-1.csp.hci.ic.gov", "dynamodb", "us-isof-south-1", false},
    {"dynamodb.eu-isoe-west-1.cloud.adc-e.uk", "dynamodb", "eu-isoe-west-1", false},
    {"dynamodb.eusc-de-east-1.amazonaws.eu", "dynamodb", "eusc-de-east-1", false},
    {"dynamodb.us-east-1.api.aws", "dynamodb", "us-east-1", false},
    {"dynamodb-fips.us-east-1.api.aws", "dynamodb", "us-east-1", false},
    {"search-dynamodb.us-east-1.api.aws", "dynamodb", "us-east-1", false},
    {"123456789012.ddb.us-east-1.amazonaws.com", "dynamodb", "us-east-1", true},
    {"123456789012.search-ddb.us-east-1.amazonaws.com", "dynamodb", "us-east-1", true},
    {"streams.dynamodb.us-east-1.amazonaws.com", "dynamodb-streams", "us-east-1", false},
    {"streams.dynamodb-fips.us-east-1.amazonaws.com", "dynamodb-streams", "us-east-1", false},
    {"streams-dynamodb.us-east-1.api.aws", "dynamodb-streams", "us-east-1", false},
    {"streams-dynamodb-fips.us-east-1.api.aws", "dynamodb-streams", "us-east-1", false},
    {"sqs.us-west-2.amazonaws.com", "sqs", "us-west-2", false},
    {"sqs-fips.us-west-2.amazonaws.com", "sqs", "us-west-2", false},
    {"us-west-2.queue.amazonaws.com", "sqs", "us-west-2", false},
    {"queue.amazonaws.com", "sqs", "", false},
    {"cn-north-1.queue.amazonaws.com.cn", "sqs", "cn-north-1", false},
    {"states.ap-southeast-5.amazonaws.com", "states", "ap-southeast-5", false},
    {"states-fips.us-east-1.amazonaws.com", "states", "us-east-1", false},
    {"swf.us-east-1.amazonaws.com", "swf", "us-east-1", false},
    {"sts.amazonaws.com", "sts", "", false},
    {"sts-fips.us-east-1.amazonaws.com", "sts", "us-east-1", false},
    {"s3.amazonaws.com", "s3", "", false},
    {"s3.us-east-1.amazonaws.com", "s3", "us-east-1", false},
    {"s3.dualstack.us-east-1.amazonaws.com", "s3", "us-east-1", false},
    {"s3-fips.dualstack.us-east-1.amazonaws.com", "s3", "us-east-1", false},
    {"s3-us-west-2.amazonaws.com", "s3", "us-west-2", false},
    {"b.s3-us-west-2.amazonaws.com", "s3", "us-west-2", true},
    {"b.s3.amazonaws.com", "s3", "", true},
    {"b.with.dots.s3.eu-central-1.amazonaws.com", "s3", "eu-central-1", true},
    {"b.s3.dualstack.us-east-1.amazonaws.com", "s3", "us-east-1", true},
    {"b.s3-fips.us-east-1.amazonaws.com", "s3", "us-east-1", true},
    {"b.s3-accelerate.amazonaws.com", "s3", "", true},
    {"b.s3-accelerate.dualstack.amazonaws.com", "s3", "", true},
    {"b.s3-external-1.amazonaws.com", "s3", "", true},
    {"ap-123456789012.s3-accesspoint.us-east-1.amazonaws.com", "s3", "us-east-1", true},
    {"ap-123456789012.s3-accesspoint-fips.dualstack.us-east-1.amazonaws.com", "s3", "us-east-1",
     true},
    {"alias.mrap.accesspoint.s3-global.amazonaws.com", "s3", "", true},
    {"123456789012.s3-control.us-east-1.amazonaws.com", "s3-control", "us-east-1", true},
    {"s3-control-fips.us-east-1.amazonaws.com", "s3-control", "us-east-1", false},
    {"b--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com", "s3express", "us-east-1",
     true},
    {"b.s3express-fips-use1-az4.dualstack.us-east-1.amazonaws.com", "s3express", "us-east-1", true},
    {"s3express-control.us-east-1.amazonaws.com", "s3express", "us-east-1", false},
    {"ap-1.s3-object-lambda.us-east-1.amazonaws.com", "s3-object-lambda", "us-east-1", true},
    {"vpce-0a1b-xyz.sqs.us-east-1.vpce.amazonaws.com", "sqs", "us-east-1", false},
    {"vpce-0a1b-xyz-us-east-1a.sqs.us-east-1.vpce.amazonaws.com", "sqs", "us-east-1", false},
    {"vpce-0a1b.streams.dynamodb.us-east-1.vpce.amazonaws.com", "dynamodb-streams", "us-east-1",
     false},
    {"vpce-0a1b.api.ecr.us-east-1.vpce.amazonaws.com", "ecr", "us-east-1", false},
    {"bucket.vpce-0a1b.s3.us-east-1.vpce.amazonaws.com", "s3", "us-east-1", false},
    {"b.bucket.vpce-0a1b.s3.us-east-1.vpce.amazonaws.com", "s3", "us-east-1", true},
    {"ap-1.accesspoint.vpce-0a1b.s3.us-east-1.vpce.amazonaws.com", "s3", "us-east-1", true},
    {"1.control.vpce-0a1b.s3.us-east-1.vpce.amazonaws.com", "s3-control", "us-east-1", true},
    {"api.ecr.us-east-1.amazonaws.com", "ecr", "us-east-1", false},
    {"123456789012.dkr.ecr.us-east-1.amazonaws.com", "ecr", "us-east-1", true},
    {"api-fips.sagemaker.us-east-1.amazonaws.com", "sagemaker", "us-east-1", false},
    {"data.jobs.iot.us-east-1.amazonaws.com", "iot-jobs-data", "us-east-1", false},
    {"a1b2-ats.iot.us-east-1.amazonaws.com", "iotdata", "us-east-1", true},
    {"email.eu-west-1.amazonaws.com", "ses", "eu-west-1", false},
    {"iam.amazonaws.com", "iam", "", false},
    {"iam.us-gov.amazonaws.com", "iam", "", false},
    {"fips.batch.us-east-1.amazonaws.com", "batch", "us-east-1", false},
    {"abc123.execute-api.us-east-1.amazonaws.com", "execute-api", "us-east-1", true},
    {"us-east-1.elasticmapreduce.amazonaws.com", "elasticmapreduce", "us-east-1", false},
    {"abc.lambda-url.us-east-1.on.aws", "lambda", "us-east-1", true},
};

START_TEST(service_endpoints)
{
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        struct endpoint e;
        struct slice host = slice_str(endpoints[i].host);
        endpoint_read(host, &e);
        ck_assert_msg(e.is_aws && e.row, "%s", endpoints[i].host);
        ck_assert_msg(slice_eq(e.row->service.name, slice_str(endpoints[i].service)), "%s: %.*s",
                      endpoints[i].host, SLICE_FMT(e.row->service.name));
        ck_assert_msg(slice_eq(e.region, slice_str(endpoints[i].region)), "%s: region %.*s",
                      endpoints[i].host, SLICE_FMT(e.region));
        ck_assert_msg(e.resource_in_host == endpoints[i].bucket_in_host, "%s", endpoints[i].host);
        ck_assert(aws_host(host) && aws_service_endpoint(host));
    }
}
END_TEST

/* Under an AWS suffix, but anyone's. */
static const char *const customers[] = {
    "my-lb-1234567890.us-east-1.elb.amazonaws.com",
    "internal-lb-1.us-east-1.elb.amazonaws.com",
    "my-nlb-0a1b.elb.us-east-1.amazonaws.com",
    "ec2-203-0-113-25.compute-1.amazonaws.com",
    "ec2-203-0-113-25.us-west-2.compute.amazonaws.com",
    "ip-10-0-0-1.us-west-2.compute.amazonaws.com",
    "db.abc.us-east-1.rds.amazonaws.com",
    "cluster.abc.0001.use1.cache.amazonaws.com",
    "b-1.kafka1.abc.c2.kafka.us-east-1.amazonaws.com",
    "fs-0123.efs.us-east-1.amazonaws.com",
    "vpc-domain-abc.us-east-1.es.amazonaws.com",
    "abc.gr7.us-east-1.eks.amazonaws.com",
    "b-abc.mq.us-east-1.amazonaws.com",
    "abc.c2.airflow.us-east-1.amazonaws.com",
    "svc-1.7d67968.vpc-lattice-svcs.us-east-1.on.aws",
    "vpce-0a1b.vpce-svc-0c2d.us-east-1.vpce.amazonaws.com",
    "vpce-0a1b.us-east-1.vpce.amazonaws.com",
    "x.sqs.us-east-1.amazonaws.com",
    "x.sts.amazonaws.com",
    "dynamodb.elb.amazonaws.com",
    "sqs-fips-fips.us-east-1.amazonaws.com",
    "s3-website-us-east-1.amazonaws.com",
    "queue.x.us-east-1.amazonaws.com",
    "us-east-1.amazonaws.com",
    "example.us-east-1.amazonaws.com",
    ".amazonaws.com.amazonaws.com",
};

START_TEST(names_of_customers)
{
    for (size_t i = 0; i < ARRAY_LEN(customers); i++) {
        struct slice host = slice_str(customers[i]);
        ck_assert_msg(aws_host(host), "%s", customers[i]);
        ck_assert_msg(!aws_service_endpoint(host), "%s", customers[i]);
    }
}
END_TEST

static const char *const foreign[] = {
    "",
    "amazonaws.com",
    ".amazonaws.com",
    "evilamazonaws.com",
    "s3.evilamazonaws.com",
    "s3.amazonaws.com.evil.example",
    "amazonaws.com.evil.example",
    "sqs.us-east-1.amazonaws.co",
    "sqs.us-east-1.amazonaws.com.cn.example",
    "xapi.aws",
    "ec2.us-east-1.aws",
    "localhost",
    "127.0.0.1",
    "::1",
};

START_TEST(foreign_names)
{
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        struct slice host = slice_str(foreign[i]);
        ck_assert_msg(!aws_service_endpoint(host), "%s", foreign[i]);
        ck_assert_msg(!aws_host(host), "%s", foreign[i]);
    }
}
END_TEST

/* No suffix hides another one: cut_suffix() takes the first that fits. */
START_TEST(suffixes_are_disjoint)
{
    size_t n;
    const struct slice *s = aws_suffixes(&n);
    ck_assert_uint_ge(n, 12);
    for (size_t i = 0; i < n; i++) {
        ck_assert(s[i].n > 0 && s[i].p[0] != '.');
        for (size_t j = 0; j < n; j++)
            ck_assert(i == j || !slice_ends_nocase(s[i], s[j]));
    }
}
END_TEST

START_TEST(long_and_odd_hosts)
{
    static char labels[4096];
    memset(labels, '.', sizeof labels);
    static const char tail[] = ".s3.us-east-1.amazonaws.com";
    memcpy(labels + sizeof labels - (sizeof tail - 1), tail, sizeof tail - 1);
    ck_assert(aws_service_endpoint(slice_of(labels, sizeof labels)));
    memset(labels, '-', sizeof labels - (sizeof tail - 1));
    ck_assert(aws_service_endpoint(slice_of(labels, sizeof labels)));
    ck_assert(!aws_host(slice_of("a\0.amazonaws.com\0", 17)));
}
END_TEST

static TCase *hosts(void)
{
    TCase *tc = tcase_create("hosts");
    tcase_add_test(tc, service_endpoints);
    tcase_add_test(tc, names_of_customers);
    tcase_add_test(tc, foreign_names);
    tcase_add_test(tc, suffixes_are_disjoint);
    tcase_add_test(tc, long_and_odd_hosts);
    return tc;
}

UNIT_MAIN("endpoint", hosts)
