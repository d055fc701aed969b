/* The generator: its published sequence, and the range of its port. */
#include "unit.h"

#include "core/base/rng.h"

START_TEST(sequence_of_the_published_algorithm)
{
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){1, 2, 3, 4});
    ck_assert_uint_eq(rng_u64(&rng), 11520);
    ck_assert_uint_eq(rng_u64(&rng), 0);
    ck_assert_uint_eq(rng_u64(&rng), 1509978240);
    ck_assert_uint_eq(rng_u64(&rng), UINT64_C(1215971899390074240));
}
END_TEST

START_TEST(zero_seed_does_not_stick)
{
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){0, 0, 0, 0});
    uint64_t any = 0;
    for (int i = 0; i < 16; i++)
        any |= rng_u64(&rng);
    ck_assert_uint_ne(any, 0);
}
END_TEST

START_TEST(unit_is_uniform_in_0_to_1_exclusive)
{
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){11, 22, 33, 44});
    struct rng_source source = rng_as_source(&rng);
    unsigned bins[10] = {0};
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double u = source.unit(source.state);
        ck_assert(u >= 0 && u < 1);
        bins[(int)(u * 10)]++;
        sum += u;
    }
    ck_assert(sum > 49500 && sum < 50500);
    for (int i = 0; i < 10; i++)
        ck_assert(bins[i] > 9500 && bins[i] < 10500);
}
END_TEST

static TCase *rngs(void)
{
    TCase *tc = tcase_create("rng");
    tcase_add_test(tc, sequence_of_the_published_algorithm);
    tcase_add_test(tc, zero_seed_does_not_stick);
    tcase_add_test(tc, unit_is_uniform_in_0_to_1_exclusive);
    return tc;
}

UNIT_MAIN("rng", rngs)
