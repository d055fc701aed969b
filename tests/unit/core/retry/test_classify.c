/* The precedence of retry-semantics 2.1, row by row. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/retry/classify.h"

static const struct retry_code general[] = {
    {{"RequestTimeout", 14}, RETRY_TRANSIENT},
    {{"SlowDown", 8}, RETRY_THROTTLING},
};
static const struct retry_code service[] = {
    {{"InternalError", 13}, RETRY_TRANSIENT},
    {{"SlowDown", 8}, RETRY_TRANSIENT}, /* loses against the general list */
};

static struct retry_policy with_tables(void)
{
    struct retry_policy p = retry_policy_standard_21;
    p.codes = (struct retry_codes){general, ARRAY_LEN(general)};
    p.service_codes = (struct retry_codes){service, ARRAY_LEN(service)};
    p.crc32 = RETRY_CRC32_ANY;
    return p;
}

static const struct {
    enum retry_failure failure;
    unsigned status;
    const char *code;
    bool error_in_200;
    enum retry_class class;
    enum retry_rule rule;
} rows[] = {
    {0, 200, "", false, RETRY_SUCCESS, RETRY_RULE_SUCCESS},
    {0, 204, "", false, RETRY_SUCCESS, RETRY_RULE_SUCCESS},
    {0, 299, "", false, RETRY_SUCCESS, RETRY_RULE_SUCCESS},
    {0, 200, "SlowDown", false, RETRY_SUCCESS, RETRY_RULE_SUCCESS},
    {0, 200, "SlowDown", true, RETRY_THROTTLING, RETRY_RULE_THROTTLING_CODE},
    {0, 200, "Whatever", true, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 200, "", true, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 503, "SlowDown", false, RETRY_THROTTLING, RETRY_RULE_THROTTLING_CODE},
    {0, 400, "SlowDown", false, RETRY_THROTTLING, RETRY_RULE_THROTTLING_CODE},
    {0, 302, "SlowDown", false, RETRY_THROTTLING, RETRY_RULE_THROTTLING_CODE},
    {0, 400, "slowdown", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 429, "", false, RETRY_THROTTLING, RETRY_RULE_STATUS_429},
    {0, 429, "RequestTimeout", false, RETRY_THROTTLING, RETRY_RULE_STATUS_429},
    {0, 400, "RequestTimeout", false, RETRY_TRANSIENT, RETRY_RULE_CODE},
    {0, 500, "RequestTimeout", false, RETRY_TRANSIENT, RETRY_RULE_CODE},
    {0, 404, "InternalError", false, RETRY_TRANSIENT, RETRY_RULE_SERVICE_CODE},
    {0, 500, "ValidationException", false, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 500, "", false, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 502, "", false, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 503, "", false, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 504, "", false, RETRY_TRANSIENT, RETRY_RULE_STATUS},
    {0, 501, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 505, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 507, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 509, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 301, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 304, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 403, "AccessDenied", false, RETRY_FINAL, RETRY_RULE_NONE},
    {0, 408, "", false, RETRY_FINAL, RETRY_RULE_NONE},
    {RETRY_FAIL_TRUNCATED, 200, "", false, RETRY_TRANSIENT, RETRY_RULE_TRANSPORT},
    {RETRY_FAIL_CHECKSUM, 200, "", false, RETRY_TRANSIENT, RETRY_RULE_TRANSPORT},
    {RETRY_FAIL_TRUNCATED, 403, "", false, RETRY_TRANSIENT, RETRY_RULE_TRANSPORT},
    {RETRY_FAIL_TRUNCATED, 503, "SlowDown", false, RETRY_THROTTLING, RETRY_RULE_THROTTLING_CODE},
    {RETRY_FAIL_READ_TIMEOUT, 429, "", false, RETRY_THROTTLING, RETRY_RULE_STATUS_429},
};

START_TEST(precedence)
{
    struct retry_policy p = with_tables();
    struct retry_outcome o = {
        .failure = rows[_i].failure,
        .status = rows[_i].status,
        .code = slice_str(rows[_i].code),
        .error_in_200 = rows[_i].error_in_200,
    };
    enum retry_rule rule;
    ck_assert_str_eq(retry_class_name(classify(&p, &o, &rule)), retry_class_name(rows[_i].class));
    ck_assert_str_eq(retry_rule_name(rule), retry_rule_name(rows[_i].rule));
}
END_TEST

/* Security requirement E11: what we refused ourselves, and certificates, are final. */
START_TEST(transport_failures)
{
    struct retry_policy p = with_tables();
    for (int f = RETRY_FAIL_NONE + 1; f < RETRY_FAIL_COUNT; f++) {
        struct retry_outcome o = {.failure = (enum retry_failure)f};
        bool final = f == RETRY_FAIL_CERTIFICATE || f == RETRY_FAIL_POLICY ||
                     f == RETRY_FAIL_OVERLOAD || f == RETRY_FAIL_RATE_LIMIT ||
                     f == RETRY_FAIL_PARENT_REFUSED;
        enum retry_rule rule;
        ck_assert_int_eq(classify(&p, &o, &rule), final ? RETRY_FINAL : RETRY_TRANSIENT);
        bool refused = f == RETRY_FAIL_POLICY || f == RETRY_FAIL_OVERLOAD ||
                       f == RETRY_FAIL_RATE_LIMIT || f == RETRY_FAIL_PARENT_REFUSED;
        ck_assert_int_eq(rule, refused ? RETRY_RULE_REFUSED : RETRY_RULE_TRANSPORT);
    }
}
END_TEST

START_TEST(option_retry_429)
{
    struct retry_policy p = with_tables();
    p.retry_429 = false;
    enum retry_rule rule;
    struct retry_outcome o = {.status = 429};
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_FINAL);
    o.code = SLICE("SlowDown");
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_THROTTLING);
}
END_TEST

/* A row may hold with one status only (python's pairs). */
START_TEST(code_and_status)
{
    static const struct retry_code pair[] = {{{"Throttling", 10}, RETRY_THROTTLING, 400}};
    struct retry_policy p = with_tables();
    p.codes = (struct retry_codes){pair, 1};
    enum retry_rule rule;
    struct retry_outcome o = {.status = 400, .code = SLICE("Throttling")};
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_THROTTLING);
    o.status = 403;
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_FINAL);
}
END_TEST

START_TEST(modeled_errors)
{
    static const struct retry_code rows_[] = {{{"ConflictException", 17}, RETRY_TRANSIENT}};
    struct retry_policy p = with_tables();
    enum retry_rule rule;
    struct retry_outcome o = {.status = 409, .code = SLICE("ConflictException")};
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_FINAL);
    p.modeled_codes = (struct retry_codes){rows_, 1};
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_TRANSIENT);
    ck_assert_int_eq(rule, RETRY_RULE_MODELED);
}
END_TEST

static const struct {
    unsigned status;
    const char *code;
    enum retry_failure failure;
    enum retry_class class;
    bool by_override;
} words[] = {
    {503, "NeverThis", 0, RETRY_FINAL, true},
    {400, "SlowMe", 0, RETRY_THROTTLING, true},
    {400, "AgainPlease", 0, RETRY_TRANSIENT, true},
    {501, "", 0, RETRY_TRANSIENT, true},
    {599, "", 0, RETRY_TRANSIENT, true},
    {504, "", 0, RETRY_FINAL, true},
    {504, "SlowMe", 0, RETRY_FINAL, true},      /* never beats retried */
    {501, "NeverThis", 0, RETRY_FINAL, true},   /* in both orders */
    {501, "SlowMe", 0, RETRY_THROTTLING, true}, /* the code before the status */
    {504, "SlowDown", 0, RETRY_FINAL, true},    /* and all of it before the rules */
    {503, "SlowDown", 0, RETRY_THROTTLING, false},
    {502, "", 0, RETRY_TRANSIENT, false},
    {200, "NeverThis", 0, RETRY_SUCCESS, false}, /* only of failed attempts */
    {0, "", RETRY_FAIL_RESET, RETRY_TRANSIENT, false},
    {0, "", RETRY_FAIL_POLICY, RETRY_FINAL, false},
    {501, "SlowMe", RETRY_FAIL_OVERLOAD, RETRY_FINAL, false},
};

START_TEST(the_users_word)
{
    static const struct retry_code codes[] = {
        {{"AgainPlease", 11}, RETRY_TRANSIENT},
        {{"NeverThis", 9}, RETRY_FINAL},
        {{"SlowMe", 6}, RETRY_THROTTLING},
    };
    static const struct retry_status statuses[] = {
        {501, 501, RETRY_TRANSIENT}, {504, 504, RETRY_FINAL}, {590, 599, RETRY_TRANSIENT}};
    static const struct retry_override user = {{codes, 3}, {statuses, 3}};
    struct retry_policy p = with_tables();
    p.override = &user;
    struct retry_outcome o = {.status = words[_i].status,
                              .code = slice_str(words[_i].code),
                              .failure = words[_i].failure};
    enum retry_rule rule;
    ck_assert_str_eq(retry_class_name(classify(&p, &o, &rule)), retry_class_name(words[_i].class));
    ck_assert_int_eq(rule == RETRY_RULE_OVERRIDE, words[_i].by_override);
}
END_TEST

/* The order of rules is the policy's: the same two, both ways. */
START_TEST(order_is_data)
{
    static const enum retry_rule code_first[] = {RETRY_RULE_OTHER_CODE, RETRY_RULE_STATUS,
                                                 RETRY_RULE_NONE};
    static const enum retry_rule status_first[] = {RETRY_RULE_STATUS, RETRY_RULE_OTHER_CODE,
                                                   RETRY_RULE_NONE};
    struct retry_policy p = with_tables();
    struct retry_outcome o = {.status = 500, .code = SLICE("SomethingBroke")};
    enum retry_rule rule;
    p.order = code_first;
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_FINAL);
    ck_assert_int_eq(rule, RETRY_RULE_OTHER_CODE);
    p.order = status_first;
    ck_assert_int_eq(classify(&p, &o, &rule), RETRY_TRANSIENT);
    ck_assert_int_eq(rule, RETRY_RULE_STATUS);
}
END_TEST

START_TEST(checksum_counts_where_the_policy_says)
{
    static const enum retry_class classes_200[] = {RETRY_SUCCESS, RETRY_TRANSIENT, RETRY_TRANSIENT};
    static const enum retry_class classes_403[] = {RETRY_FINAL, RETRY_FINAL, RETRY_TRANSIENT};
    struct retry_policy p = with_tables();
    enum retry_rule rule;
    for (int kind = RETRY_CRC32_NONE; kind <= RETRY_CRC32_ANY; kind++) {
        p.crc32 = (enum retry_crc32)kind;
        struct retry_outcome o = {.failure = RETRY_FAIL_CHECKSUM, .status = 200};
        ck_assert_int_eq(classify(&p, &o, &rule), classes_200[kind]);
        o.status = 403;
        ck_assert_int_eq(classify(&p, &o, &rule), classes_403[kind]);
    }
}
END_TEST

static const struct {
    enum retry_failure failure;
    unsigned status;
    const char *code;
    enum retry_class class;
} outside[] = {
    {0, 429, "", RETRY_THROTTLING},
    {0, 502, "", RETRY_TRANSIENT},
    {0, 503, "SlowDown", RETRY_TRANSIENT},
    {0, 504, "", RETRY_TRANSIENT},
    {0, 500, "", RETRY_FINAL},
    {0, 408, "", RETRY_FINAL},
    {0, 400, "ThrottlingException", RETRY_FINAL},
    {0, 200, "", RETRY_SUCCESS},
    {RETRY_FAIL_DNS, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_CONNECT_REFUSED, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_CONNECT_TIMEOUT, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_TLS, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_CLOSED, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_READ_TIMEOUT, 0, "", RETRY_TRANSIENT},
    {RETRY_FAIL_CERTIFICATE, 0, "", RETRY_FINAL},
};

START_TEST(generic_profile)
{
    struct retry_outcome o = {.failure = outside[_i].failure,
                              .status = outside[_i].status,
                              .code = slice_str(outside[_i].code)};
    enum retry_rule rule;
    ck_assert_str_eq(retry_class_name(classify(&retry_policy_generic, &o, &rule)),
                     retry_class_name(outside[_i].class));
}
END_TEST

static TCase *classes(void)
{
    TCase *tc = tcase_create("classify");
    tcase_add_loop_test(tc, precedence, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, transport_failures);
    tcase_add_test(tc, option_retry_429);
    tcase_add_test(tc, code_and_status);
    tcase_add_test(tc, modeled_errors);
    tcase_add_loop_test(tc, the_users_word, 0, ARRAY_LEN(words));
    tcase_add_test(tc, order_is_data);
    tcase_add_test(tc, checksum_counts_where_the_policy_says);
    tcase_add_loop_test(tc, generic_profile, 0, ARRAY_LEN(outside));
    return tc;
}

UNIT_MAIN("classify", classes)
