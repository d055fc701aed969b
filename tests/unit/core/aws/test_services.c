/* The tables: sorted, consistent, and what they make of the standard policy (retry-semantics §2.2,
 * §2.3, §5, §8). */
#include "core/aws/services.h"
#include "core/base/attr.h"
#include "core/base/units.h"
#include "core/retry/classify.h"
#include "unit.h"

static struct retry_policy policy_of(const char *service, bool long_poll)
{
    struct aws_target t = {.service = aws_service_by_name(slice_str(service)),
                           .long_poll = long_poll};
    return aws_policy(&t);
}

static enum retry_class class_of(const char *service, unsigned status, const char *code)
{
    struct retry_policy p = policy_of(service, false);
    struct retry_outcome o = {.status = status, .code = slice_str(code)};
    enum retry_rule rule;
    return classify(&p, &o, &rule);
}

START_TEST(code_tables_are_sorted)
{
    size_t n;
    const struct service_row *rows = services_rows(&n);
    struct retry_codes general = policy_of("", false).codes;
    ck_assert_uint_eq(general.n, 16);
    for (size_t i = 1; i < general.n; i++)
        ck_assert_int_lt(slice_cmp(general.v[i - 1].code, general.v[i].code), 0);
    for (size_t r = 0; r < n; r++) {
        struct retry_codes own = rows[r].service.codes;
        for (size_t i = 1; i < own.n; i++)
            ck_assert_int_lt(slice_cmp(own.v[i - 1].code, own.v[i].code), 0);
    }
}
END_TEST

static const char *const throttling[] = {
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "TransactionInProgressException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "RequestThrottled",
    "SlowDown",
    "PriorRequestNotComplete",
    "EC2ThrottledException",
};

START_TEST(general_codes)
{
    for (size_t i = 0; i < ARRAY_LEN(throttling); i++)
        ck_assert_int_eq(class_of("", 400, throttling[i]), RETRY_THROTTLING);
    ck_assert_int_eq(class_of("", 400, "RequestTimeout"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("", 400, "RequestTimeoutException"), RETRY_TRANSIENT);
    static const char *const final[] = {
        "",           "slowdown",       "SlowDownX",    "BadDigest",
        "throttling", "RequestExpired", "ExpiredToken", "RequestTimeTooSkewed",
    };
    for (size_t i = 0; i < ARRAY_LEN(final); i++)
        ck_assert_int_eq(class_of("", 400, final[i]), RETRY_FINAL);
}
END_TEST

START_TEST(codes_of_services)
{
    ck_assert_int_eq(class_of("sts", 400, "IDPCommunicationError"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("sts", 400, "IDPCommunicationErrorException"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("sts", 400, "IdpCommunicationErrorException"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("s3", 400, "IDPCommunicationError"), RETRY_FINAL);
    ck_assert_int_eq(class_of("", 400, "IDPCommunicationError"), RETRY_FINAL);
    ck_assert_int_eq(class_of("s3", 400, "InternalError"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("s3express", 400, "InternalError"), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of("sts", 400, "InternalError"), RETRY_FINAL);
}
END_TEST

START_TEST(numbers_of_services)
{
    static const char *const dynamo[] = {"dynamodb", "dynamodb-streams"};
    for (size_t i = 0; i < ARRAY_LEN(dynamo); i++) {
        struct retry_policy p = policy_of(dynamo[i], false);
        ck_assert_int_eq(p.base_transient_ns, 25 * NS_PER_MS);
        ck_assert_int_eq(p.base_throttling_ns, 1000 * NS_PER_MS);
        ck_assert_uint_eq(p.max_attempts, 4);
    }
    struct retry_policy p = policy_of("sqs", true);
    ck_assert_int_eq(p.base_transient_ns, 50 * NS_PER_MS);
    ck_assert_uint_eq(p.max_attempts, 3);
    ck_assert(p.long_poll && !policy_of("sqs", false).long_poll);
    ck_assert_uint_eq(policy_of("no such service", false).max_attempts, 3);
}
END_TEST

START_TEST(rows_are_consistent)
{
    size_t n;
    const struct service_row *rows = services_rows(&n);
    ck_assert_uint_ge(n, 300);
    for (size_t i = 0; i < n; i++) {
        const struct aws_service *s = &rows[i].service;
        ck_assert_msg(s->name.n && s->signing_name.n && rows[i].hosts[0], "%.*s",
                      SLICE_FMT(s->name));
        ck_assert_msg(aws_service_by_name(s->name) == s, "twice: %.*s", SLICE_FMT(s->name));
        ck_assert(services_row_of(s) == &rows[i]);
    }
    ck_assert(aws_service_by_name(SLICE("")) == NULL);
    ck_assert(aws_service_by_name(SLICE("DynamoDB")) == NULL);
}
END_TEST

/* One exact pattern belongs to one service: the order of rows decides among wild ones only. */
START_TEST(host_patterns_are_unique)
{
    size_t n;
    const struct service_row *rows = services_rows(&n);
    for (size_t i = 0; i < n; i++) {
        for (const char *const *a = rows[i].hosts; *a; a++) {
            ck_assert_msg(strpbrk(*a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL, "%s", *a);
            for (size_t j = i; j < n; j++) {
                for (const char *const *b = rows[j].hosts; *b; b++)
                    ck_assert_msg(a == b || strcmp(*a, *b) != 0, "%s", *a);
            }
        }
    }
}
END_TEST

START_TEST(signing_names)
{
    const struct aws_service *s = services_by_signing_name(SLICE("dynamodb"));
    ck_assert(s && slice_eq(s->name, SLICE("dynamodb")));
    s = services_by_signing_name(SLICE("s3"));
    ck_assert(s && slice_eq(s->name, SLICE("s3")) && (s->quirks & AWS_QUIRK_S3));
    ck_assert(services_by_signing_name(SLICE("unheard-of")) == NULL);
    ck_assert(services_by_signing_name(SLICE("")) == NULL);
}
END_TEST

static TCase *tables(void)
{
    TCase *tc = tcase_create("tables");
    tcase_add_test(tc, code_tables_are_sorted);
    tcase_add_test(tc, general_codes);
    tcase_add_test(tc, codes_of_services);
    tcase_add_test(tc, numbers_of_services);
    tcase_add_test(tc, rows_are_consistent);
    tcase_add_test(tc, host_patterns_are_unique);
    tcase_add_test(tc, signing_names);
    return tc;
}

UNIT_MAIN("services", tables)
