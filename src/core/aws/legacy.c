/* The seven legacy strategies as constant data (legacy-modes 2-8): a policy for a service without
 * rules of its own, and rows that say what differs for a service. legacy_policy() lays the row over
 * the policy; there is no other logic.
 *
 * Services are rows of services.def, so DynamoDB Streams, which signs as "dynamodb", keeps to the
 * general figures as in the SDKs. Retries that need the request signed again are off (clock skew)
 * or left out (expired credentials, other endpoints): a proxy would only repeat the refused
 * signature. */
#include "core/aws/legacy.h"

#include "core/aws/services.h"
#include "core/base/units.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define ALL(table)                                                                                 \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }
#define NO_CAP INT64_MAX

#define TABLE(name) static const struct retry_code name##_codes[] = {
#define CODE(code, class) {TEXT(code), RETRY_##class, 0},
#define PAIR(status, code, class) {TEXT(code), RETRY_##class, (status)},
#define END                                                                                        \
    }                                                                                              \
    ;
#include "core/aws/legacy.def"
#undef TABLE
#undef CODE
#undef PAIR
#undef END

/* --- what strategies are made of --- */

/* Attempts and waits, where a service has its own. */
struct ladder {
    unsigned max_attempts;
    int64_t base_transient_ns, base_throttling_ns;
    enum retry_jitter jitter_transient, jitter_throttling;
    int64_t max_backoff_ns;
    unsigned no_wait_first;
};

/* What differs for a service; absent members mean: as in general. */
struct service_rules {
    const char *service;
    struct retry_codes codes;
    enum retry_crc32 crc32;
    const struct ladder *ladder;
    const struct retry_statuses *statuses;
    const enum retry_rule *order;
    uint32_t failures;
    const char *unless_operation; /* for which failures are as in general */
};

/* Who listens to the setting of max_attempts. */
enum attempts_setting {
    HONOURED,
    IGNORED,
    NOT_FOR_OWN_LADDER, /* a service with a ladder of its own has its attempts from there */
};

struct strategy {
    struct retry_policy general;
    enum attempts_setting setting;
    const struct service_rules *rules;
    size_t n_rules;
    struct retry_codes other_services;                   /* codes of services without a row */
    bool modeled;                                        /* retries what the models mark */
    void (*for_wire)(bool json, struct retry_policy *p); /* NULL: the protocol does not matter */
};

#define FAILURE(kind) RETRY_FAILURE(RETRY_FAIL_##kind)

/* legacy-modes 1, "Transport failures". That a checksum counts at all is up to crc32. */
#define ANY_FAILURE ((RETRY_FAILURE(RETRY_FAIL_COUNT) - 1) & ~(FAILURE(NONE) | OWN_REFUSALS))
#define OWN_REFUSALS (FAILURE(POLICY) | FAILURE(OVERLOAD))
#define PHP_FAILURES                                                                               \
    (FAILURE(DNS) | FAILURE(CONNECT_REFUSED) | FAILURE(CONNECT_TIMEOUT) | FAILURE(PARENT) |        \
     FAILURE(TLS) | FAILURE(TLS_TIMEOUT) | FAILURE(READ_TIMEOUT) | FAILURE(RESET) |                \
     FAILURE(CLOSED) | FAILURE(BODY_RESET) | FAILURE(CHECKSUM))

/* 500, 502, 503, 504, where no more is listed: php, java, java-v1. */
static const struct retry_status common_statuses[] = {
    {500, 500, RETRY_TRANSIENT},
    {502, 504, RETRY_TRANSIENT},
};

/* --- python, cli-v1 (legacy-modes 2, 3) --- */

static const enum retry_rule python_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_CODE, RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_STATUS,    RETRY_RULE_NONE,
};

static const struct retry_status python_statuses[] = {
    {429, 429, RETRY_THROTTLING},
    {500, 500, RETRY_TRANSIENT},
    {502, 504, RETRY_TRANSIENT},
    {509, 509, RETRY_TRANSIENT},
};
/* Its own rule stands in the place of the one for 429, which leads the table. */
static const struct retry_statuses python_organizations_statuses = {python_statuses + 1,
                                                                    ARRAY_LEN(python_statuses) - 1};

static const struct ladder python_dynamodb_ladder = {
    .max_attempts = 10,
    .base_transient_ns = 50 * NS_PER_MS,
    .base_throttling_ns = 50 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_NONE,
    .jitter_throttling = RETRY_JITTER_NONE,
    .max_backoff_ns = NO_CAP,
};

static const struct service_rules python_rules[] = {
    {"cloudsearch", ALL(python_cloudsearch_codes)},
    {"dynamodb", ALL(python_dynamodb_codes), RETRY_CRC32_ANY, &python_dynamodb_ladder},
    {"ec2", ALL(python_ec2_codes)},
    {"glacier", ALL(python_glacier_codes)},
    {"kinesis", ALL(python_kinesis_codes)},
    {"organizations", ALL(python_organizations_codes), .statuses = &python_organizations_statuses},
    {"route53", ALL(python_route53_codes)},
    {"s3", ALL(python_s3_codes)},
    {"s3express", ALL(python_s3_codes)},
    {"sqs", ALL(python_sqs_codes)},
    {"sts", ALL(python_sts_codes)},
};

static const struct strategy python = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 5,
            .base_transient_ns = NS_PER_S,
            .base_throttling_ns = NS_PER_S,
            .jitter_transient = RETRY_JITTER_RANDOM_BASE,
            .jitter_throttling = RETRY_JITTER_RANDOM_BASE,
            .max_backoff_ns = NO_CAP,
            .order = python_order,
            .codes = ALL(python_codes),
            .statuses = ALL(python_statuses),
            .failures = ANY_FAILURE,
        },
    .setting = HONOURED,
    .rules = python_rules,
    .n_rules = ARRAY_LEN(python_rules),
};

/* --- ruby (legacy-modes 4) --- */

static const enum retry_rule ruby_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_CODE,    RETRY_RULE_THROTTLING_WORD,
    RETRY_RULE_STATUS,    RETRY_RULE_MODELED, RETRY_RULE_CLOCK_SKEW,
    RETRY_RULE_NONE,
};

static const struct retry_status ruby_statuses[] = {
    {429, 429, RETRY_THROTTLING},
    {500, 599, RETRY_TRANSIENT},
};

/* "more than five minutes" */
static const struct retry_skew ruby_skew = {.possible = ALL(skew_codes),
                                            .min_ns = 300 * NS_PER_S + 1};

/* 50 ms * 2^(k - 1) after two retries at once, k being the index: half of that base. */
static const struct ladder ruby_dynamodb_ladder = {
    .max_attempts = 11,
    .base_transient_ns = 25 * NS_PER_MS,
    .base_throttling_ns = 25 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_NONE,
    .jitter_throttling = RETRY_JITTER_NONE,
    .max_backoff_ns = NO_CAP,
    .no_wait_first = 2,
};

static const struct service_rules ruby_rules[] = {
    {"dynamodb", .crc32 = RETRY_CRC32_SUCCESS, .ladder = &ruby_dynamodb_ladder},
};

static const struct strategy ruby = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 4,
            .base_transient_ns = 300 * NS_PER_MS,
            .base_throttling_ns = 300 * NS_PER_MS,
            .jitter_transient = RETRY_JITTER_NONE,
            .jitter_throttling = RETRY_JITTER_NONE,
            .max_backoff_ns = NO_CAP,
            .order = ruby_order,
            .codes = ALL(ruby_codes),
            .statuses = ALL(ruby_statuses),
            .failures = ANY_FAILURE,
            .skew = &ruby_skew,
        },
    .setting = IGNORED,
    .rules = ruby_rules,
    .n_rules = ARRAY_LEN(ruby_rules),
    .modeled = true,
};

/* --- php (legacy-modes 5) --- */

static const enum retry_rule php_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_CODE, RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_STATUS,    RETRY_RULE_NONE,
};

static const enum retry_rule php_s3_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_CODE,           RETRY_RULE_SERVICE_CODE,
    RETRY_RULE_STATUS,    RETRY_RULE_SOCKET_MESSAGE, RETRY_RULE_NONE,
};

/* Half of the general draw, the first at once. */
static const struct ladder php_dynamodb_ladder = {
    .max_attempts = 11,
    .base_transient_ns = 50 * NS_PER_MS,
    .base_throttling_ns = 50 * NS_PER_MS,
    .jitter_transient = RETRY_JITTER_FULL,
    .jitter_throttling = RETRY_JITTER_FULL,
    .max_backoff_ns = 10 * NS_PER_S,
    .no_wait_first = 1,
};

#define PHP_S3_RULES(name)                                                                         \
    {                                                                                              \
        .service = (name), .order = php_s3_order, .failures = ANY_FAILURE,                         \
        .unless_operation = "CompleteMultipartUpload"                                              \
    }

static const struct service_rules php_rules[] = {
    {"dynamodb", ALL(php_dynamodb_codes), RETRY_CRC32_SUCCESS, &php_dynamodb_ladder},
    PHP_S3_RULES("s3"),
    PHP_S3_RULES("s3express"),
};

static const struct strategy php = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 3,
            .base_transient_ns = 100 * NS_PER_MS,
            .base_throttling_ns = 100 * NS_PER_MS,
            .jitter_transient = RETRY_JITTER_FULL,
            .jitter_throttling = RETRY_JITTER_FULL,
            .max_backoff_ns = 20 * NS_PER_S,
            .order = php_order,
            .codes = ALL(php_codes),
            .statuses = ALL(common_statuses),
            .failures = PHP_FAILURES,
        },
    .setting = NOT_FOR_OWN_LADDER,
    .rules = php_rules,
    .n_rules = ARRAY_LEN(php_rules),
};

/* --- cpp (legacy-modes 6) --- */

/* The clock is looked at whatever the error was. A code alone decides, once there is one. */
static const enum retry_rule cpp_order[] = {
    RETRY_RULE_TRANSPORT,  RETRY_RULE_CLOCK_SKEW,  RETRY_RULE_SERVICE_CODE, RETRY_RULE_CODE,
    RETRY_RULE_OTHER_CODE, RETRY_RULE_BODY_STATUS, RETRY_RULE_STATUS,       RETRY_RULE_NONE,
};

static const struct retry_status cpp_statuses[] = {
    {408, 408, RETRY_TRANSIENT},  {419, 419, RETRY_TRANSIENT}, {429, 429, RETRY_THROTTLING},
    {440, 440, RETRY_TRANSIENT},  {500, 500, RETRY_TRANSIENT}, {502, 504, RETRY_TRANSIENT},
    {509, 509, RETRY_THROTTLING}, {598, 599, RETRY_TRANSIENT},
};

static const struct retry_status cpp_body_statuses[] = {
    {408, 408, RETRY_TRANSIENT}, {419, 419, RETRY_TRANSIENT}, {429, 429, RETRY_THROTTLING},
    {440, 440, RETRY_TRANSIENT}, {500, 599, RETRY_TRANSIENT},
};

static const struct retry_status any_error_status[] = {{300, 599, RETRY_TRANSIENT}};

static const struct retry_skew cpp_skew = {
    .statuses = ALL(any_error_status), .min_ns = 240 * NS_PER_S, .at_once = true};

static const struct service_rules cpp_rules[] = {
    {"apigateway", ALL(cpp_other_codes)},
    {"cognito-idp", ALL(cpp_other_codes)},
    {"dynamodb", ALL(cpp_dynamodb_codes)},
    {"kinesis", ALL(cpp_kinesis_codes)},
    {"lambda", ALL(cpp_lambda_codes)},
    {"lookoutmetrics", ALL(cpp_other_codes)},
    {"route53", ALL(cpp_route53_codes)},
    {"servicequotas", ALL(cpp_other_codes)},
    {"ses", ALL(cpp_other_codes)}, /* endpoint prefix "email" */
    {"sqs"},
    {"synthetics", ALL(cpp_other_codes)},
};

/* Which bodies without a code are read by the wider list of statuses: any in the protocols that
 * speak XML, a JSON object in the others. */
static void cpp_for_wire(bool json, struct retry_policy *p)
{
    p->bodies = 1u << RETRY_BODY_JSON | (json ? 0 : 1u << RETRY_BODY_OTHER);
}

static const struct strategy cpp = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 11,
            .base_transient_ns = 25 * NS_PER_MS,
            .base_throttling_ns = 25 * NS_PER_MS,
            .jitter_transient = RETRY_JITTER_NONE,
            .jitter_throttling = RETRY_JITTER_NONE,
            .max_backoff_ns = NO_CAP,
            .no_wait_first = 1,
            .order = cpp_order,
            .codes = ALL(cpp_codes),
            .statuses = ALL(cpp_statuses),
            .body_statuses = ALL(cpp_body_statuses),
            .failures = ANY_FAILURE,
            .skew = &cpp_skew,
        },
    .setting = IGNORED,
    .rules = cpp_rules,
    .n_rules = ARRAY_LEN(cpp_rules),
    .other_services = ALL(cpp_other_codes),
    .for_wire = cpp_for_wire,
};

/* --- java (legacy-modes 7) --- */

static const enum retry_rule java_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_THROTTLING_CODE, RETRY_RULE_STATUS_429, RETRY_RULE_CODE,
    RETRY_RULE_MODELED,   RETRY_RULE_STATUS,          RETRY_RULE_CLOCK_SKEW, RETRY_RULE_NONE,
};

static const struct retry_status java_skew_statuses[] = {
    {401, 401, RETRY_TRANSIENT},
    {403, 403, RETRY_TRANSIENT},
};

static const struct retry_skew java_skew = {
    .certain = ALL(skew_certain_codes),
    .possible = ALL(skew_possible_codes),
    .statuses = ALL(java_skew_statuses),
    .min_ns = 240 * NS_PER_S,
};

#define JAVA_DYNAMODB_LADDER(attempts)                                                             \
    {                                                                                              \
        .max_attempts = (attempts), .base_transient_ns = 25 * NS_PER_MS,                           \
        .base_throttling_ns = 500 * NS_PER_MS, .jitter_transient = RETRY_JITTER_FULL,              \
        .jitter_throttling = RETRY_JITTER_EQUAL, .max_backoff_ns = 20 * NS_PER_S                   \
    }

static const struct ladder java_dynamodb_ladder = JAVA_DYNAMODB_LADDER(9);

static const struct service_rules java_rules[] = {
    {"dynamodb", .ladder = &java_dynamodb_ladder},
};

/* The checksum is looked at in the JSON protocols; a mismatch is final. */
static void java_for_wire(bool json, struct retry_policy *p)
{
    p->crc32 = json ? RETRY_CRC32_SUCCESS : RETRY_CRC32_NONE;
}

static const struct strategy java = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 4,
            .base_transient_ns = 100 * NS_PER_MS,
            .base_throttling_ns = 500 * NS_PER_MS,
            .jitter_transient = RETRY_JITTER_FULL,
            .jitter_throttling = RETRY_JITTER_EQUAL,
            .max_backoff_ns = 20 * NS_PER_S,
            .retry_after = RETRY_AFTER_HTTP_SECONDS,
            .quota = RETRY_QUOTA_JAVA,
            .quota_capacity = 500,
            .cost_transient = 5,
            .cost_timeout = 5,
            .cost_throttling = 0,
            .gain_first = 1,
            .order = java_order,
            .codes = ALL(java_codes),
            .statuses = ALL(common_statuses),
            .failures = ANY_FAILURE & ~FAILURE(CHECKSUM),
            .retry_429 = true,
            .skew = &java_skew,
        },
    .setting = NOT_FOR_OWN_LADDER,
    .rules = java_rules,
    .n_rules = ARRAY_LEN(java_rules),
    .modeled = true,
    .for_wire = java_for_wire,
};

/* --- java-v1 (legacy-modes 8) --- */

static const enum retry_rule java_v1_order[] = {
    RETRY_RULE_TRANSPORT, RETRY_RULE_THROTTLING_CODE, RETRY_RULE_STATUS_429, RETRY_RULE_CODE,
    RETRY_RULE_STATUS,    RETRY_RULE_CLOCK_SKEW,      RETRY_RULE_NONE,
};

static const struct retry_skew java_v1_skew = {.certain = ALL(skew_codes)};

static const struct ladder java_v1_dynamodb_ladder = JAVA_DYNAMODB_LADDER(11);

static const struct service_rules java_v1_rules[] = {
    {"dynamodb", .crc32 = RETRY_CRC32_SUCCESS, .ladder = &java_v1_dynamodb_ladder},
};

static const struct strategy java_v1 = {
    .general =
        {
            .mode = RETRY_MODE_LEGACY,
            .max_attempts = 4,
            .base_transient_ns = 100 * NS_PER_MS,
            .base_throttling_ns = 500 * NS_PER_MS,
            .jitter_transient = RETRY_JITTER_FULL,
            .jitter_throttling = RETRY_JITTER_EQUAL,
            .max_backoff_ns = 20 * NS_PER_S,
            .quota = RETRY_QUOTA_JAVA_V1,
            .quota_capacity = 500,
            .cost_transient = 5,
            .cost_timeout = 5,
            .cost_throttling = 0,
            .gain_first = 1,
            .order = java_v1_order,
            .codes = ALL(java_v1_codes),
            .statuses = ALL(common_statuses),
            .failures = ANY_FAILURE,
            .retry_429 = true,
            .skew = &java_v1_skew,
        },
    .setting = HONOURED,
    .rules = java_v1_rules,
    .n_rules = ARRAY_LEN(java_v1_rules),
};

/* --- names --- */

/* The CLI's first generation is botocore with the same data. */
static const char *const names[] = {"cli-v1", "cpp", "java", "java-v1", "php", "python", "ruby"};
static const struct strategy *const strategies[] = {
    &python, &cpp, &java, &java_v1, &php, &python, &ruby,
};

const char *const *legacy_flavour_names(size_t *n)
{
    *n = ARRAY_LEN(names);
    return names;
}

static const struct strategy *strategy_named(struct slice flavour)
{
    if (slice_eq(flavour, SLICE("cli")))
        flavour = SLICE("cli-v1");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq(slice_str(names[i]), flavour))
            return strategies[i];
    return NULL;
}

bool legacy_flavour_known(struct slice flavour, struct err *why)
{
    if (strategy_named(flavour))
        return true;
    if (slice_eq(flavour, SLICE("cli-v2")))
        return err_set(why,
                       "flavour \"cli-v2\": version 2 of the AWS CLI has no legacy retry mode; "
                       "use \"cli-v1\", or mode standard or adaptive");
    return err_set(why, "flavour \"%.*s\" is not one of cli-v1|cpp|java|java-v1|php|python|ruby",
                   SLICE_FMT(flavour));
}

/* --- putting it together --- */

static void use_ladder(struct retry_policy *p, const struct ladder *l)
{
    p->max_attempts = l->max_attempts;
    p->base_transient_ns = l->base_transient_ns;
    p->base_throttling_ns = l->base_throttling_ns;
    p->jitter_transient = l->jitter_transient;
    p->jitter_throttling = l->jitter_throttling;
    p->max_backoff_ns = l->max_backoff_ns;
    p->no_wait_first = l->no_wait_first;
}

static void use_rules(struct retry_policy *p, const struct service_rules *r, struct slice operation)
{
    p->service_codes = r->codes;
    if (r->crc32)
        p->crc32 = r->crc32;
    if (r->ladder)
        use_ladder(p, r->ladder);
    if (r->statuses)
        p->statuses = *r->statuses;
    if (r->order)
        p->order = r->order;
    if (r->failures && !slice_eq(slice_str(r->unless_operation), operation))
        p->failures = r->failures;
}

static const struct service_rules *rules_of(const struct strategy *s, struct slice service)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (slice_eq(slice_str(s->rules[i].service), service))
            return &s->rules[i];
    return NULL;
}

static bool speaks_json(const struct aws_service *service)
{
    return service && services_row_of(service)->wire == AWS_WIRE_JSON;
}

bool legacy_policy(struct slice flavour, const struct aws_target *t, unsigned max_attempts_setting,
                   struct retry_policy *out)
{
    const struct strategy *s = strategy_named(flavour);
    if (!s)
        return false;
    struct slice service = t->service ? t->service->name : SLICE_NONE;
    const struct service_rules *r = rules_of(s, service);

    *out = s->general;
    out->service_codes = s->other_services;
    if (s->for_wire)
        s->for_wire(speaks_json(t->service), out);
    if (s->modeled) /* by endpoint prefix, too */
        out->modeled_codes = aws_modeled_codes(&(struct aws_target){.signing_name = service});
    if (r)
        use_rules(out, r, t->operation);
    bool fixed = s->setting == IGNORED || (s->setting == NOT_FOR_OWN_LADDER && r && r->ladder);
    if (max_attempts_setting > 0 && !fixed)
        out->max_attempts = max_attempts_setting;
    return true;
}
