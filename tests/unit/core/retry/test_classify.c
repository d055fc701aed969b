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
        bool final =
            f == RETRY_FAIL_CERTIFICATE || f == RETRY_FAIL_POLICY || f == RETRY_FAIL_OVERLOAD;
        enum retry_rule rule;
        ck_assert_int_eq(classify(&p, &o, &rule), final ? RETRY_FINAL : RETRY_TRANSIENT);
        bool refused = f == RETRY_FAIL_POLICY || f == RETRY_FAIL_OVERLOAD;
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

static TCase *classes(void)
{
    TCase *tc = tcase_create("classify");
    tcase_add_loop_test(tc, precedence, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, transport_failures);
    tcase_add_test(tc, option_retry_429);
    return tc;
}

UNIT_MAIN("classify", classes)
