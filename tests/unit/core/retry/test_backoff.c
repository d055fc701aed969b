/* The tables of retry-semantics 5.2 and 6, hostile header values, and properties over the whole
 * range. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/retry/backoff.h"
#include <stdio.h>

static struct retry_policy standard(void)
{
    return retry_policy_standard_21;
}

START_TEST(ceilings_double_to_twenty_seconds)
{
    static const int64_t transient_ms[] = {50,   100,  200,   400,   800,  1600,
                                           3200, 6400, 12800, 20000, 20000};
    static const int64_t throttling_ms[] = {1000, 2000, 4000, 8000, 16000, 20000, 20000};
    static const int64_t dynamodb_ms[] = {25,   50,   100,  200,   400,  800,
                                          1600, 3200, 6400, 12800, 20000};
    struct retry_policy p = standard();
    for (unsigned i = 0; i < ARRAY_LEN(transient_ms); i++)
        ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, i, 1.0), transient_ms[i] * NS_PER_MS);
    for (unsigned i = 0; i < ARRAY_LEN(throttling_ms); i++)
        ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, i, 1.0), throttling_ms[i] * NS_PER_MS);
    p.base_transient_ns = 25 * NS_PER_MS;
    for (unsigned i = 0; i < ARRAY_LEN(dynamodb_ms); i++)
        ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, i, 1.0), dynamodb_ms[i] * NS_PER_MS);
}
END_TEST

START_TEST(jitter_applies_after_the_ceiling)
{
    struct retry_policy p = standard();
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 0, 0.5), 25 * NS_PER_MS);
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 40, 0.5), 10 * NS_PER_S);
    ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, 3, 0.0), 0);
    p.max_backoff_ns = 200 * NS_PER_MS;
    ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, 0, 1.0), 200 * NS_PER_MS);
}
END_TEST

START_TEST(no_index_and_no_ceiling_overflows)
{
    struct retry_policy p = standard();
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, UINT32_MAX, 1.0), 20 * NS_PER_S);
    p.max_backoff_ns = INT64_MAX;
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, UINT32_MAX, 1.0), INT64_MAX);
    ck_assert_int_gt(backoff_ns(&p, RETRY_TRANSIENT, 200, 0.999), INT64_MAX / 2);
    p.base_transient_ns = 0;
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 5, 1.0), 0);
}
END_TEST

/* 0 <= t <= ceiling, and t grows with r, for every class and index. */
START_TEST(delays_stay_below_their_ceiling)
{
    struct retry_policy p = standard();
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){11, 12, 13, 14});
    for (int n = 0; n < 200000; n++) {
        enum retry_class c = rng_u64(&rng) & 1 ? RETRY_TRANSIENT : RETRY_THROTTLING;
        unsigned i = (unsigned)(rng_u64(&rng) % 120);
        double r = rng_unit(&rng);
        int64_t ceiling = backoff_ns(&p, c, i, 1.0);
        int64_t t = backoff_ns(&p, c, i, r);
        ck_assert_int_ge(t, 0);
        ck_assert_int_lt(t, ceiling);
        ck_assert_int_le(ceiling, p.max_backoff_ns);
        ck_assert_int_le(backoff_ns(&p, c, i, r / 2), t);
    }
}
END_TEST

/* Mean of the first transient delay is 25 ms, its spread that of a uniform draw. */
START_TEST(jitter_is_full_and_uniform)
{
    struct retry_policy p = standard();
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){5, 6, 7, 8});
    enum { DRAWS = 100000, BINS = 10 };
    unsigned bins[BINS] = {0};
    double sum_ms = 0;
    for (int n = 0; n < DRAWS; n++) {
        double ms = ns_to_ms(backoff_ns(&p, RETRY_TRANSIENT, 0, rng_unit(&rng)));
        sum_ms += ms;
        bins[(int)(ms / 5.0)]++;
    }
    ck_assert_double_eq_tol(sum_ms / DRAWS, 25.0, 0.25);
    for (int i = 0; i < BINS; i++)
        ck_assert_double_eq_tol(bins[i], DRAWS / (double)BINS, 400);
}
END_TEST

static int64_t directed_ms(struct retry_policy p, int64_t header_ms, int64_t t_ms)
{
    struct retry_outcome o = {.has_retry_after = true, .retry_after_ns = header_ms * NS_PER_MS};
    return backoff_directed_ns(&p, &o, t_ms * NS_PER_MS) / NS_PER_MS;
}

START_TEST(the_server_is_clamped)
{
    struct retry_policy p = standard();
    ck_assert_int_eq(directed_ms(p, 1500, 50), 1500);
    ck_assert_int_eq(directed_ms(p, 0, 50), 50);
    ck_assert_int_eq(directed_ms(p, 10000, 50), 5050);
    ck_assert_int_eq(directed_ms(p, 30000, 20000), 25000);
    ck_assert_int_eq(directed_ms(p, 1500, 0), 1500);
    p.retry_after = RETRY_AFTER_NONE;
    ck_assert_int_eq(directed_ms(p, 1500, 50), 50);

    p = standard();
    struct retry_outcome none = {.retry_after_ns = 1500 * NS_PER_MS};
    ck_assert_int_eq(backoff_directed_ns(&p, &none, 7), 7);
    struct retry_outcome huge = {.has_retry_after = true, .retry_after_ns = INT64_MAX};
    ck_assert_int_eq(backoff_directed_ns(&p, &huge, 20 * NS_PER_S), 25 * NS_PER_S);
    ck_assert_int_eq(backoff_directed_ns(&p, &huge, INT64_MAX - 3), INT64_MAX);
}
END_TEST

static const struct {
    const char *text;
    int64_t ms; /* -1: refused, INT64_MAX: very large */
} headers[] = {
    {"1500", 1500},
    {"0", 0},
    {"  250\t", 250},
    {"0001", 1},
    {"4294967296", 4294967296},
    {"9223372036854", 9223372036854},
    {"9223372036855", INT64_MAX},
    {"18446744073709551616", INT64_MAX},
    {"999999999999999999999999999999999999999999999999", INT64_MAX},
    {"000000000000000000000000000000000000000000000007", 7},
    {"", -1},
    {"   ", -1},
    {"-100", -1},
    {"+100", -1},
    {"1500.5", -1},
    {"1e3", -1},
    {"0x10", -1},
    {"NaN", -1},
    {"invalid", -1},
    {"10, 20", -1},
    {"10 20", -1},
    {"Fri, 31 Dec 1999 23:59:59 GMT", -1},
    {"\xd9\xa1", -1},
};

START_TEST(header_values)
{
    int64_t ns = -7;
    bool read = backoff_parse_retry_after(slice_str(headers[_i].text), &ns);
    ck_assert_int_eq(read, headers[_i].ms >= 0);
    if (!read)
        ck_assert_int_eq(ns, -7);
    else if (headers[_i].ms == INT64_MAX)
        ck_assert_int_eq(ns, INT64_MAX);
    else
        ck_assert_int_eq(ns, headers[_i].ms * NS_PER_MS);
}
END_TEST

START_TEST(four_thousand_digits)
{
    static char text[4000];
    memset(text, '9', sizeof text);
    int64_t ns;
    ck_assert(backoff_parse_retry_after(slice_of(text, sizeof text), &ns));
    ck_assert_int_eq(ns, INT64_MAX);
    text[3999] = '.';
    ck_assert(!backoff_parse_retry_after(slice_of(text, sizeof text), &ns));
    ck_assert(!backoff_parse_retry_after(slice_of("1\0", 2), &ns));
}
END_TEST

/* Whatever the header says: t <= d <= t + 5 s, hence never more than 25 s. */
START_TEST(no_header_leaves_the_clamp)
{
    struct retry_policy p = standard();
    struct rng rng;
    rng_seed(&rng, (const uint64_t[4]){21, 22, 23, 24});
    for (int n = 0; n < 100000; n++) {
        char text[24];
        snprintf(text, sizeof text, "%llu",
                 (unsigned long long)(rng_u64(&rng) >> (rng_u64(&rng) % 64)));
        struct retry_outcome o = {.has_retry_after = true};
        ck_assert(backoff_parse_retry_after(slice_str(text), &o.retry_after_ns));
        int64_t t = backoff_ns(&p, RETRY_THROTTLING, (unsigned)(n % 12), rng_unit(&rng));
        int64_t d = backoff_directed_ns(&p, &o, t);
        ck_assert_int_ge(d, t);
        ck_assert_int_le(d, t + 5 * NS_PER_S);
        ck_assert_int_le(d, 25 * NS_PER_S);
    }
}
END_TEST

static TCase *backoff(void)
{
    TCase *tc = tcase_create("backoff");
    tcase_add_test(tc, ceilings_double_to_twenty_seconds);
    tcase_add_test(tc, jitter_applies_after_the_ceiling);
    tcase_add_test(tc, no_index_and_no_ceiling_overflows);
    tcase_add_test(tc, delays_stay_below_their_ceiling);
    tcase_add_test(tc, jitter_is_full_and_uniform);
    return tc;
}

static TCase *directed(void)
{
    TCase *tc = tcase_create("directed");
    tcase_add_test(tc, the_server_is_clamped);
    tcase_add_loop_test(tc, header_values, 0, ARRAY_LEN(headers));
    tcase_add_test(tc, four_thousand_digits);
    tcase_add_test(tc, no_header_leaves_the_clamp);
    return tc;
}

UNIT_MAIN("backoff", backoff, directed)
