/* The properties of properties.h for the legacy strategies: every flavour, for services with and
 * without rules of their own, under settings and overrides. Here because it needs two rooms. */
#include "core/exchange/properties.h"

#include "core/aws/legacy.h"

enum { POLICIES = 600, STEPS = 300 };

START_TEST(every_flavour)
{
    static const char *const services[] = {"",    "dynamodb", "dynamodb-streams", "s3", "kinesis",
                                           "sqs", "sts",      "organizations",    "ec2"};
    size_t n;
    const char *const *names = legacy_flavour_names(&n);
    struct property_world w = {.retries = 0};
    rng_seed(&w.rng, (const uint64_t[4]){11, 2, 3, (uint64_t)_i});
    for (int i = 0; i < POLICIES; i++) {
        struct retry_policy p;
        const char *service = services[property_pick(&w.rng, ARRAY_LEN(services))];
        struct aws_target target = {.service = aws_service_by_name(slice_str(service))};
        unsigned setting = property_pick(&w.rng, 101);
        ck_assert(legacy_policy(slice_str(names[property_pick(&w.rng, (unsigned)n)]), &target,
                                setting, &p));
        if (_i)
            property_settings(&w.rng, &p);
        properties_hold(&w, &p, STEPS);
    }
    ck_assert_uint_gt(w.retries, POLICIES);
    ck_assert_uint_gt(w.refusals, 10);
}
END_TEST

static TCase *flavours(void)
{
    TCase *tc = tcase_create("flavours");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_flavour, 0, 2);
    return tc;
}

UNIT_MAIN("flavours", flavours)
