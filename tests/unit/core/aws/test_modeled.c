/* The modeled errors: the table sorted, each row found under its signing name and only there, and
 * what the rows make of a policy (retry-semantics §2.1, §2.5). */
#include "core/aws/aws.h"
#include "core/base/attr.h"
#include "core/retry/classify.h"
#include "unit.h"

#define MODELED(name, code, class) {name, code, RETRY_##class},
static const struct {
    const char *name, *code;
    enum retry_class class;
} rows[] = {
#include "core/aws/modeled_errors.def"
};

static struct retry_codes codes_of(const char *signing_name)
{
    struct aws_target t = {.signing_name = slice_str(signing_name)};
    return aws_modeled_codes(&t);
}

START_TEST(table_is_sorted)
{
    ck_assert_uint_eq(ARRAY_LEN(rows), 24);
    for (size_t i = 1; i < ARRAY_LEN(rows); i++) {
        int names = slice_cmp(slice_str(rows[i - 1].name), slice_str(rows[i].name));
        int codes = slice_cmp(slice_str(rows[i - 1].code), slice_str(rows[i].code));
        ck_assert_msg(names < 0 || (names == 0 && codes < 0), "%s %s", rows[i].name, rows[i].code);
    }
}
END_TEST

START_TEST(each_row_is_found)
{
    size_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct retry_codes t = codes_of(rows[i].name);
        const struct retry_code *found = retry_codes_find(t, slice_str(rows[i].code));
        ck_assert_msg(found && found->class == rows[i].class, "%s %s", rows[i].name, rows[i].code);
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
            sum += t.n;
    }
    ck_assert_uint_eq(sum, ARRAY_LEN(rows));
}
END_TEST

START_TEST(other_services_have_none)
{
    static const char *const names[] = {"", "a", "bedroc", "bedrock-", "sqs", "zzz", "DYNAMODB"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_uint_eq(codes_of(names[i]).n, 0);
    /* Unsigned requests are placed by their host. */
    struct aws_target t = {.service = aws_service_by_name(SLICE("dynamodb-streams"))};
    ck_assert_uint_eq(aws_modeled_codes(&t).n, 1);
    t.signing_name = SLICE("mediaconnect");
    ck_assert(retry_codes_find(aws_modeled_codes(&t), SLICE("ConflictException")) != NULL);
}
END_TEST

START_TEST(precedence)
{
    struct aws_target t = {.signing_name = SLICE("elemental-inference")};
    struct retry_policy p = aws_policy(&t);
    struct retry_outcome conflict = {.status = 409, .code = SLICE("ConflictException")};
    struct retry_outcome many = {.status = 429, .code = SLICE("TooManyRequestException")};
    enum retry_rule rule;
    ck_assert_int_eq(classify(&p, &conflict, &rule), RETRY_FINAL);
    p.modeled_codes = aws_modeled_codes(&t);
    ck_assert_int_eq(classify(&p, &conflict, &rule), RETRY_TRANSIENT);
    ck_assert_int_eq(rule, RETRY_RULE_MODELED);
    ck_assert_int_eq(classify(&p, &many, &rule), RETRY_THROTTLING);
    ck_assert_int_eq(rule, RETRY_RULE_STATUS_429);
    p.retry_429 = false;
    ck_assert_int_eq(classify(&p, &many, &rule), RETRY_THROTTLING);
    ck_assert_int_eq(rule, RETRY_RULE_MODELED);
}
END_TEST

static TCase *modeled(void)
{
    TCase *tc = tcase_create("modeled");
    tcase_add_test(tc, table_is_sorted);
    tcase_add_test(tc, each_row_is_found);
    tcase_add_test(tc, other_services_have_none);
    tcase_add_test(tc, precedence);
    return tc;
}

UNIT_MAIN("modeled", modeled)
