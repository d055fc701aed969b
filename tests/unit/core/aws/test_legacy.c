/* The legacy strategies: sorted tables, names, attempts, ladders, and the rules that the vectors of
 * tests/vectors/legacy.json leave out (legacy-modes 1-9). */
#include "core/aws/legacy.h"

#include "core/aws/services.h"
#include "core/base/units.h"
#include "core/retry/backoff.h"
#include "core/retry/classify.h"
#include "unit.h"

/* --- tables --- */

struct row {
    const char *table, *code; /* a table's first row has no code */
};

#define TABLE(name) {#name, NULL},
#define CODE(code, class) {NULL, code},
#define PAIR(status, code, class) {NULL, code},
#define END
static const struct row rows[] = {
#include "core/aws/legacy.def"
};

START_TEST(tables_are_sorted)
{
    unsigned tables = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        tables += rows[i].table != NULL;
        if (i > 0 && rows[i].code && rows[i - 1].code)
            ck_assert_msg(strcmp(rows[i - 1].code, rows[i].code) < 0, "%s", rows[i].code);
    }
    ck_assert_uint_gt(tables, 20);
}
END_TEST

/* --- names --- */

START_TEST(names)
{
    size_t n;
    const char *const *v = legacy_flavour_names(&n);
    struct aws_target t = {.service = NULL};
    struct retry_policy p, q;
    ck_assert_uint_eq(n, 7);
    for (size_t i = 0; i < n; i++) {
        ck_assert(legacy_flavour_known(slice_str(v[i]), NULL));
        ck_assert(legacy_policy(slice_str(v[i]), &t, 0, &p));
        ck_assert_int_eq(p.mode, RETRY_MODE_LEGACY);
        ck_assert(!p.clock_skew && !p.long_poll && !p.fresh_after_transient);
        if (i > 0)
            ck_assert_int_lt(strcmp(v[i - 1], v[i]), 0);
    }
    ck_assert(legacy_flavour_known(SLICE("cli"), NULL));
    ck_assert(legacy_policy(SLICE("cli"), &t, 0, &p));
    ck_assert(legacy_policy(SLICE("python"), &t, 0, &q));
    ck_assert(p.order == q.order && p.codes.v == q.codes.v && p.max_attempts == q.max_attempts);
}
END_TEST

START_TEST(refused_names)
{
    struct aws_target t = {.service = NULL};
    struct retry_policy p;
    struct err why;
    ck_assert(!legacy_flavour_known(SLICE("cli-v2"), &why));
    ck_assert_ptr_nonnull(strstr(why.text, "version 2 of the AWS CLI has no legacy retry mode"));
    ck_assert(!legacy_flavour_known(SLICE("Python"), &why));
    size_t n;
    const char *const *v = legacy_flavour_names(&n);
    for (size_t i = 0; i < n; i++)
        ck_assert_ptr_nonnull(strstr(why.text, v[i]));
    ck_assert(!legacy_policy(SLICE("cli-v2"), &t, 0, &p));
    ck_assert(!legacy_policy(SLICE_NONE, &t, 0, &p));
}
END_TEST

/* --- attempts --- */

static struct retry_policy policy_for(const char *flavour, const char *service,
                                      const char *operation, unsigned setting)
{
    struct aws_target t = {.service = aws_service_by_name(slice_str(service)),
                           .operation = slice_str(operation)};
    struct retry_policy p;
    ck_assert(legacy_policy(slice_str(flavour), &t, setting, &p));
    return p;
}

static const struct {
    const char *flavour;
    unsigned general, dynamodb; /* unset */
    bool general_set, dynamodb_set;
} attempts[] = {
    {"python", 5, 10, true, true},  {"cli-v1", 5, 10, true, true}, {"ruby", 4, 11, false, false},
    {"php", 3, 11, true, false},    {"cpp", 11, 11, false, false}, {"java", 4, 9, true, false},
    {"java-v1", 4, 11, true, true},
};

START_TEST(who_listens_to_max_attempts)
{
    const char *f = attempts[_i].flavour;
    ck_assert_uint_eq(policy_for(f, "kms", "", 0).max_attempts, attempts[_i].general);
    ck_assert_uint_eq(policy_for(f, "", "", 0).max_attempts, attempts[_i].general);
    ck_assert_uint_eq(policy_for(f, "dynamodb", "", 0).max_attempts, attempts[_i].dynamodb);
    ck_assert_uint_eq(policy_for(f, "dynamodb-streams", "", 0).max_attempts, attempts[_i].general);
    for (unsigned setting = 1; setting <= 100; setting += 33) {
        ck_assert_uint_eq(policy_for(f, "kms", "", setting).max_attempts,
                          attempts[_i].general_set ? setting : attempts[_i].general);
        ck_assert_uint_eq(policy_for(f, "dynamodb", "", setting).max_attempts,
                          attempts[_i].dynamodb_set ? setting : attempts[_i].dynamodb);
    }
}
END_TEST

/* --- waits: transient and throttling, without luck and with all of it --- */

static const struct {
    const char *flavour, *service;
    enum retry_class class;
    double r;
    int64_t ms[6];
} ladders[] = {
    {"python", "kms", RETRY_TRANSIENT, 1, {1000, 2000, 4000, 8000, 16000, 32000}},
    {"python", "kms", RETRY_THROTTLING, 0.25, {250, 500, 1000, 2000, 4000, 8000}},
    {"python", "dynamodb", RETRY_THROTTLING, 0, {50, 100, 200, 400, 800, 1600}},
    {"ruby", "kms", RETRY_THROTTLING, 0, {300, 600, 1200, 2400, 4800, 9600}},
    {"ruby", "dynamodb", RETRY_TRANSIENT, 0, {0, 0, 100, 200, 400, 800}},
    {"php", "kms", RETRY_TRANSIENT, 0.5, {50, 100, 200, 400, 800, 1600}},
    {"php", "dynamodb", RETRY_TRANSIENT, 1, {0, 100, 200, 400, 800, 1600}},
    {"cpp", "dynamodb", RETRY_TRANSIENT, 0, {0, 50, 100, 200, 400, 800}},
    {"java", "kms", RETRY_TRANSIENT, 1, {100, 200, 400, 800, 1600, 3200}},
    {"java", "kms", RETRY_THROTTLING, 0, {250, 500, 1000, 2000, 4000, 8000}},
    {"java", "dynamodb", RETRY_TRANSIENT, 1, {25, 50, 100, 200, 400, 800}},
    {"java", "dynamodb", RETRY_THROTTLING, 1, {500, 1000, 2000, 4000, 8000, 16000}},
    {"java-v1", "dynamodb", RETRY_TRANSIENT, 0.5, {12, 25, 50, 100, 200, 400}},
    {"java-v1", "dynamodb-streams", RETRY_TRANSIENT, 1, {100, 200, 400, 800, 1600, 3200}},
};

START_TEST(waits)
{
    struct retry_policy p = policy_for(ladders[_i].flavour, ladders[_i].service, "", 0);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(backoff_ns(&p, ladders[_i].class, i, ladders[_i].r) / NS_PER_MS,
                         ladders[_i].ms[i]);
}
END_TEST

START_TEST(caps)
{
    struct retry_policy p = policy_for("python", "kms", "", 0);
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 20, 1.0), (INT64_C(1) << 20) * NS_PER_S);
    p = policy_for("php", "dynamodb", "", 0);
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 9, 1.0), 10 * NS_PER_S);
    p = policy_for("php", "kms", "", 0);
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 9, 1.0), 20 * NS_PER_S);
    p = policy_for("java", "dynamodb", "", 0);
    ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, 6, 0.0), 10 * NS_PER_S);
    ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, 7, 1.0), 20 * NS_PER_S);
}
END_TEST

/* --- what is retried --- */

static const struct {
    const char *flavour, *service;
    unsigned status;
    const char *code;
    enum retry_body body;
    enum retry_class class;
} answers[] = {
    /* python: pairs, and the service whose pair stands for the general 429 */
    {"python", "organizations", 429, "", RETRY_BODY_EMPTY, RETRY_FINAL},
    {"python", "organizations", 400, "TooManyRequestsException", 0, RETRY_THROTTLING},
    {"python", "organizations", 503, "", 0, RETRY_TRANSIENT},
    {"python", "dynamodb", 400, "ReplicatedWriteConflictException", 0, RETRY_FINAL},
    {"python", "dynamodb-streams", 400, "TransactionInProgressException", 0, RETRY_FINAL},
    {"python", "glacier", 400, "RequestTimeoutException", 0, RETRY_FINAL},
    {"python", "sqs", 400, "RequestThrottled", 0, RETRY_FINAL},
    {"python", "s3express", 400, "BadDigest", 0, RETRY_TRANSIENT},
    {"python", "kms", 400, "BadDigest", 0, RETRY_FINAL},
    {"python", "kms", 505, "", 0, RETRY_FINAL},
    /* ruby: any 5xx, a word, models */
    {"ruby", "kms", 403, "UnTHROTTLedIndeed", 0, RETRY_THROTTLING},
    {"ruby", "kms", 409, "ConflictException", 0, RETRY_FINAL},
    {"ruby", "mediaconnect", 409, "ConflictException", 0, RETRY_TRANSIENT},
    {"ruby", "dynamodb", 400, "ReplicatedWriteConflictException", 0, RETRY_TRANSIENT},
    {"ruby", "dynamodb-streams", 400, "ReplicatedWriteConflictException", 0, RETRY_FINAL},
    {"ruby", "kms", 400, "InvalidClientTokenId", 0, RETRY_FINAL},
    {"ruby", "kms", 421, "InvalidEndpointException", 0, RETRY_FINAL},
    /* php: a list */
    {"php", "dynamodb", 400, "TransactionInProgressException", 0, RETRY_THROTTLING},
    {"php", "kms", 400, "TransactionInProgressException", 0, RETRY_FINAL},
    {"php", "kms", 400, "LimitExceededException", 0, RETRY_FINAL},
    {"php", "kms", 509, "", 0, RETRY_FINAL},
    /* cpp: a code decides alone, else body and protocol */
    {"cpp", "kms", 500, "ValidationError", 0, RETRY_FINAL},
    {"cpp", "kms", 429, "SomethingElse", 0, RETRY_FINAL},
    {"cpp", "kms", 501, "", RETRY_BODY_EMPTY, RETRY_FINAL},
    {"cpp", "kms", 501, "", RETRY_BODY_OTHER, RETRY_FINAL},
    {"cpp", "kms", 501, "", RETRY_BODY_JSON, RETRY_TRANSIENT},
    {"cpp", "kms", 403, "", RETRY_BODY_JSON, RETRY_FINAL},
    {"cpp", "kms", 440, "", RETRY_BODY_JSON, RETRY_TRANSIENT},
    {"cpp", "s3", 501, "", RETRY_BODY_OTHER, RETRY_TRANSIENT},
    {"cpp", "s3", 501, "", RETRY_BODY_EMPTY, RETRY_FINAL},
    {"cpp", "s3", 404, "", RETRY_BODY_OTHER, RETRY_FINAL},
    {"cpp", "kms", 599, "", RETRY_BODY_EMPTY, RETRY_TRANSIENT},
    {"cpp", "kms", 400, "TooManyRequestsException", 0, RETRY_THROTTLING},
    {"cpp", "sqs", 403, "OverLimit", 0, RETRY_FINAL},
    {"cpp", "sqs", 400, "TooManyRequestsException", 0, RETRY_FINAL},
    {"cpp", "lambda", 500, "ServiceException", 0, RETRY_TRANSIENT},
    {"cpp", "kinesis", 400, "ResourceInUseException", 0, RETRY_FINAL},
    {"cpp", "route53", 400, "PriorRequestNotComplete", 0, RETRY_THROTTLING},
    /* java and java-v1: two lists that differ in two rows */
    {"java", "kms", 429, "ValidationException", 0, RETRY_THROTTLING},
    {"java", "kms", 429, "RequestTimeout", 0, RETRY_THROTTLING},
    {"java", "route53", 400, "PriorRequestNotComplete", 0, RETRY_TRANSIENT},
    {"java", "dynamodb", 400, "TransactionInProgressException", 0, RETRY_THROTTLING},
    {"java", "sts", 400, "IDPCommunicationError", 0, RETRY_FINAL},
    {"java", "omics", 416, "RangeNotSatisfiableException", 0, RETRY_TRANSIENT},
    {"java", "kms", 408, "", 0, RETRY_FINAL},
    {"java-v1", "kms", 400, "InternalError", 0, RETRY_FINAL},
    {"java-v1", "omics", 416, "RangeNotSatisfiableException", 0, RETRY_FINAL},
    {"java-v1", "kms", 503, "SlowDown", 0, RETRY_THROTTLING},
};

static enum retry_class class_of(const struct retry_policy *p, struct retry_outcome o)
{
    enum retry_rule rule;
    return classify(p, &o, &rule);
}

START_TEST(what_is_retried)
{
    struct retry_policy p = policy_for(answers[_i].flavour, answers[_i].service, "", 0);
    struct retry_outcome o = {.status = answers[_i].status,
                              .code = slice_str(answers[_i].code),
                              .body = answers[_i].body};
    ck_assert_str_eq(retry_class_name(class_of(&p, o)), retry_class_name(answers[_i].class));
}
END_TEST

/* --- transport failures (legacy-modes 1) --- */

START_TEST(transport_failures)
{
    static const char *const flavours[] = {"python", "cli-v1", "ruby",   "php",
                                           "cpp",    "java",   "java-v1"};
    static const enum retry_failure not_in_php[] = {RETRY_FAIL_CERTIFICATE, RETRY_FAIL_SEND,
                                                    RETRY_FAIL_MALFORMED, RETRY_FAIL_TRUNCATED};
    for (size_t f = 0; f < ARRAY_LEN(flavours); f++)
        for (int kind = 1; kind < RETRY_FAIL_COUNT; kind++) {
            struct retry_policy p = policy_for(flavours[f], "kms", "", 0);
            struct retry_outcome o = {.failure = (enum retry_failure)kind};
            bool final = kind == RETRY_FAIL_POLICY || kind == RETRY_FAIL_OVERLOAD ||
                         kind == RETRY_FAIL_RATE_LIMIT || kind == RETRY_FAIL_PARENT_REFUSED;
            for (size_t i = 0; i < ARRAY_LEN(not_in_php); i++)
                final = final || (strcmp(flavours[f], "php") == 0 && kind == (int)not_in_php[i]);
            if (kind == RETRY_FAIL_CHECKSUM)
                continue; /* comes with a status */
            ck_assert_int_eq(class_of(&p, o), final ? RETRY_FINAL : RETRY_TRANSIENT);
        }
}
END_TEST

START_TEST(php_and_s3)
{
    struct retry_outcome cut = {.failure = RETRY_FAIL_TRUNCATED};
    struct retry_outcome slow = {
        .status = 400, .code = SLICE("RequestTimeout"), .socket_message = true};
    struct retry_policy p = policy_for("php", "s3", "GetObject", 0);
    ck_assert_int_eq(class_of(&p, cut), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of(&p, slow), RETRY_TRANSIENT);
    p = policy_for("php", "s3", "CompleteMultipartUpload", 0);
    ck_assert_int_eq(class_of(&p, cut), RETRY_FINAL);
    ck_assert_int_eq(class_of(&p, slow), RETRY_TRANSIENT);
    ck_assert_int_eq(class_of(&p, (struct retry_outcome){.failure = RETRY_FAIL_RESET}),
                     RETRY_TRANSIENT);
    p = policy_for("php", "kms", "", 0);
    ck_assert_int_eq(class_of(&p, slow), RETRY_FINAL);
}
END_TEST

/* Status of a mismatch that is retried, or is final, or counts for nothing. */
static const struct {
    const char *flavour, *service;
    enum retry_class ok, denied; /* under 200, under 403 */
} checksums[] = {
    {"python", "dynamodb", RETRY_TRANSIENT, RETRY_TRANSIENT},
    {"python", "kms", RETRY_SUCCESS, RETRY_FINAL},
    {"python", "dynamodb-streams", RETRY_SUCCESS, RETRY_FINAL},
    {"ruby", "dynamodb", RETRY_TRANSIENT, RETRY_FINAL},
    {"php", "dynamodb", RETRY_TRANSIENT, RETRY_FINAL},
    {"php", "s3", RETRY_SUCCESS, RETRY_FINAL},
    {"cpp", "dynamodb", RETRY_SUCCESS, RETRY_FINAL},
    {"java", "dynamodb", RETRY_FINAL, RETRY_FINAL},
    {"java", "s3", RETRY_SUCCESS, RETRY_FINAL},
    {"java-v1", "dynamodb", RETRY_TRANSIENT, RETRY_FINAL},
};

START_TEST(crc32)
{
    struct retry_policy p = policy_for(checksums[_i].flavour, checksums[_i].service, "", 0);
    struct retry_outcome o = {.failure = RETRY_FAIL_CHECKSUM, .status = 200};
    ck_assert_int_eq(class_of(&p, o), checksums[_i].ok);
    o.status = 403;
    ck_assert_int_eq(class_of(&p, o), checksums[_i].denied);
}
END_TEST

/* --- clock skew (legacy-modes 9): off, and what it would be --- */

static const struct {
    const char *flavour, *code;
    unsigned status;
    int64_t skew_s;
    enum retry_class class; /* with the switch on */
} skews[] = {
    {"ruby", "SignatureDoesNotMatch", 403, 300, RETRY_FINAL},
    {"ruby", "SignatureDoesNotMatch", 403, 301, RETRY_TRANSIENT},
    {"ruby", "RequestExpired", 400, 0, RETRY_FINAL},
    {"java", "RequestExpired", 400, 0, RETRY_TRANSIENT},
    {"java", "AuthFailure", 400, 239, RETRY_FINAL},
    {"java", "AuthFailure", 400, 240, RETRY_TRANSIENT},
    {"java", "AnyOther", 401, 240, RETRY_TRANSIENT},
    {"java", "AnyOther", 404, 240, RETRY_FINAL},
    {"java-v1", "SignatureDoesNotMatch", 403, 0, RETRY_TRANSIENT},
    {"java-v1", "AnyOther", 403, 999, RETRY_FINAL},
    {"cpp", "AnyOther", 400, 240, RETRY_TRANSIENT},
    {"cpp", "AnyOther", 400, 239, RETRY_FINAL},
    {"python", "RequestTimeTooSkewed", 403, 999, RETRY_FINAL},
    {"php", "RequestTimeTooSkewed", 403, 999, RETRY_FINAL},
};

START_TEST(clock_skew)
{
    struct retry_policy p = policy_for(skews[_i].flavour, "kms", "", 0);
    struct retry_outcome o = {.status = skews[_i].status,
                              .code = slice_str(skews[_i].code),
                              .date_skew_ns = skews[_i].skew_s * NS_PER_S};
    p.clock_skew = true;
    ck_assert_int_eq(class_of(&p, o), skews[_i].class);
    p.clock_skew = false;
    ck_assert_int_eq(class_of(&p, o), RETRY_FINAL);
}
END_TEST

/* --- quota and Retry-After --- */

START_TEST(who_has_a_quota)
{
    size_t n;
    const char *const *v = legacy_flavour_names(&n);
    for (size_t i = 0; i < n; i++) {
        struct retry_policy p = policy_for(v[i], "kms", "", 0);
        bool java = strncmp(v[i], "java", 4) == 0;
        ck_assert_int_eq(p.quota != RETRY_QUOTA_NONE, java);
        ck_assert_uint_eq(p.quota_capacity, java ? 500 : 0);
        ck_assert_uint_eq(p.cost_transient, java ? 5 : 0);
        ck_assert_uint_eq(p.cost_timeout, p.cost_transient);
        ck_assert_uint_eq(p.cost_throttling, 0);
        ck_assert_int_eq(p.retry_after,
                         strcmp(v[i], "java") == 0 ? RETRY_AFTER_HTTP_SECONDS : RETRY_AFTER_NONE);
    }
}
END_TEST

static TCase *tables(void)
{
    TCase *tc = tcase_create("tables");
    tcase_add_test(tc, tables_are_sorted);
    tcase_add_test(tc, names);
    tcase_add_test(tc, refused_names);
    tcase_add_loop_test(tc, who_listens_to_max_attempts, 0, ARRAY_LEN(attempts));
    tcase_add_test(tc, who_has_a_quota);
    return tc;
}

static TCase *strategies(void)
{
    TCase *tc = tcase_create("strategies");
    tcase_add_loop_test(tc, waits, 0, ARRAY_LEN(ladders));
    tcase_add_test(tc, caps);
    tcase_add_loop_test(tc, what_is_retried, 0, ARRAY_LEN(answers));
    tcase_add_test(tc, transport_failures);
    tcase_add_test(tc, php_and_s3);
    tcase_add_loop_test(tc, crc32, 0, ARRAY_LEN(checksums));
    tcase_add_loop_test(tc, clock_skew, 0, ARRAY_LEN(skews));
    return tc;
}

UNIT_MAIN("legacy", tables, strategies)
