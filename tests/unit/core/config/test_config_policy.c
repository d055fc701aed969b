/* Settings over the policy of a target. */
#include "unit.h"

#include "core/aws/aws.h"
#include "core/base/units.h"
#include "lines.h"

static const struct aws_service dynamodb = {
    .name = {"dynamodb", 8}, .signing_name = {"dynamodb", 8}, .quirks = AWS_QUIRK_DYNAMODB};
static const struct aws_service sqs = {.name = {"sqs", 3}, .signing_name = {"sqs", 3}};

static struct retry_policy policy(const char *lines, const struct aws_service *service)
{
    struct problems problems = {0};
    struct config *c = lines_build(lines, &problems);
    ck_assert_ptr_nonnull(c);
    struct aws_target t = {.is_aws = true, .service = service, .service_name = service->name};
    struct retry_policy p = config_policy(c, &t);
    config_free(c);
    problems_fini(&problems);
    return p;
}

START_TEST(unset_leaves_the_service_its_default)
{
    ck_assert_uint_eq(policy("", &sqs).max_attempts, 3);
    ck_assert_uint_eq(policy("", &dynamodb).max_attempts, 4);
    ck_assert_uint_eq(policy("retry.max_attempts=", &dynamodb).max_attempts, 4);
    ck_assert_uint_eq(policy("retry.services.sqs.max_attempts=9", &dynamodb).max_attempts, 4);
    ck_assert_int_eq(policy("", &dynamodb).mode, RETRY_MODE_STANDARD);
    ck_assert(policy("", &dynamodb).retry_429);
    ck_assert_int_eq(policy("", &dynamodb).max_backoff_ns, 20 * NS_PER_S);
}
END_TEST

START_TEST(general_setting_beats_the_service_default)
{
    ck_assert_uint_eq(policy("retry.max_attempts=3", &dynamodb).max_attempts, 3);
    ck_assert_uint_eq(policy("retry.max_attempts=100", &dynamodb).max_attempts, 100);
}
END_TEST

START_TEST(service_setting_beats_the_general_one)
{
    const char *lines = "retry.max_attempts=2\nretry.services.dynamodb.max_attempts=7\n"
                        "retry.services.sqs.mode=off";
    ck_assert_uint_eq(policy(lines, &dynamodb).max_attempts, 7);
    ck_assert_int_eq(policy(lines, &dynamodb).mode, RETRY_MODE_STANDARD);
    ck_assert_uint_eq(policy(lines, &sqs).max_attempts, 2);
    ck_assert_int_eq(policy(lines, &sqs).mode, RETRY_MODE_OFF);
    lines = "retry.mode=off\nretry.services.sqs.mode=standard";
    ck_assert_int_eq(policy(lines, &sqs).mode, RETRY_MODE_STANDARD);
    ck_assert_int_eq(policy(lines, &dynamodb).mode, RETRY_MODE_OFF);
}
END_TEST

START_TEST(the_rest_is_for_all)
{
    struct retry_policy p = policy("retry.retry_429=false\nretry.max_backoff=3s", &sqs);
    ck_assert(!p.retry_429);
    ck_assert_int_eq(p.max_backoff_ns, 3 * NS_PER_S);
}
END_TEST

static TCase *tcase_policy(void)
{
    TCase *t = tcase_create("policy");
    tcase_add_test(t, unset_leaves_the_service_its_default);
    tcase_add_test(t, general_setting_beats_the_service_default);
    tcase_add_test(t, service_setting_beats_the_general_one);
    tcase_add_test(t, the_rest_is_for_all);
    return t;
}

UNIT_MAIN("config_policy", tcase_policy)
