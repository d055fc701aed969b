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

static int64_t wait_ms(const struct retry_policy *p, unsigned i, double r)
{
    return backoff_ns(p, RETRY_TRANSIENT, i, r) / NS_PER_MS;
}

/* Full jitter caps first, a random base last: 0.5 of a capped ceiling against a capped half. */
START_TEST(four_kinds_of_jitter)
{
    struct retry_policy p = standard();
    p.base_transient_ns = 1000 * NS_PER_MS;
    p.max_backoff_ns = 3000 * NS_PER_MS;
    static const struct {
        enum retry_jitter jitter;
        double r;
        int64_t ms[4];
    } kinds[] = {
        {RETRY_JITTER_NONE, 0.5, {1000, 2000, 3000, 3000}},
        {RETRY_JITTER_FULL, 0.5, {500, 1000, 1500, 1500}},
        {RETRY_JITTER_FULL, 0, {0, 0, 0, 0}},
        {RETRY_JITTER_EQUAL, 0, {500, 1000, 1500, 1500}},
        {RETRY_JITTER_EQUAL, 0.5, {750, 1500, 2250, 2250}},
        {RETRY_JITTER_EQUAL, 1, {1000, 2000, 3000, 3000}},
        {RETRY_JITTER_RANDOM_BASE, 0.5, {500, 1000, 2000, 3000}},
        {RETRY_JITTER_RANDOM_BASE, 0, {0, 0, 0, 0}},
    };
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (unsigned i = 0; i < 4; i++) {
            p.jitter_transient = kinds[k].jitter;
            ck_assert_int_eq(wait_ms(&p, i, kinds[k].r), kinds[k].ms[i]);
        }
}
END_TEST

START_TEST(each_class_has_its_jitter)
{
    struct retry_policy p = standard();
    p.jitter_throttling = RETRY_JITTER_EQUAL;
    ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 0, 0.0), 0);
    ck_assert_int_eq(backoff_ns(&p, RETRY_THROTTLING, 0, 0.0), 500 * NS_PER_MS);
}
END_TEST

/* The retries at once count for the exponent of those that follow. */
START_TEST(first_retries_at_once)
{
    struct retry_policy p = standard();
    p.no_wait_first = 2;
    ck_assert_int_eq(wait_ms(&p, 0, 1.0), 0);
    ck_assert_int_eq(wait_ms(&p, 1, 1.0), 0);
    ck_assert_int_eq(wait_ms(&p, 2, 1.0), 200);
}
END_TEST

START_TEST(no_cap_does_not_overflow)
{
    struct retry_policy p = standard();
    p.max_backoff_ns = INT64_MAX;
    for (int j = RETRY_JITTER_NONE; j <= RETRY_JITTER_RANDOM_BASE; j++) {
        p.jitter_transient = (enum retry_jitter)j;
        ck_assert_int_eq(backoff_ns(&p, RETRY_TRANSIENT, 99, 1.0), INT64_MAX);
        ck_assert_int_ge(backoff_ns(&p, RETRY_TRANSIENT, 99, 0.7), INT64_MAX / 10 * 6);
    }
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

static int64_t http_ms(enum retry_after_kind kind, enum retry_http_after form, int64_t header_ms,
                       int64_t t_ms)
{
    struct retry_policy p = standard();
    p.retry_after = kind;
    struct retry_outcome o = {.http_after = form,
                              .http_after_ns = header_ms * NS_PER_MS,
                              .has_retry_after = true,
                              .retry_after_ns = 7 * NS_PER_S};
    return backoff_directed_ns(&p, &o, t_ms * NS_PER_MS) / NS_PER_MS;
}

START_TEST(retry_after_in_seconds)
{
    const enum retry_after_kind kind = RETRY_AFTER_HTTP_SECONDS;
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_SECONDS, 2000, 50), 2000);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_SECONDS, 0, 50), 50);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_SECONDS, 86400000, 50), 86400000);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_DATE, 2000, 50), 50);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_NONE, 2000, 50), 50);
}
END_TEST

START_TEST(retry_after_in_any_form)
{
    const enum retry_after_kind kind = RETRY_AFTER_HTTP_ANY;
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_SECONDS, 2000, 50), 2000);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_DATE, 2000, 50), 2000);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_DATE, 0, 50), 50);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_SECONDS, 86400000, 50), 20000);
    ck_assert_int_eq(http_ms(kind, RETRY_HTTP_AFTER_NONE, 2000, 50), 50);
}
END_TEST

START_TEST(seconds)
{
    int64_t ns = -7;
    ck_assert(backoff_parse_retry_seconds(SLICE(" 120 "), &ns));
    ck_assert_int_eq(ns, 120 * NS_PER_S);
    ck_assert(backoff_parse_retry_seconds(SLICE("9223372037"), &ns));
    ck_assert_int_eq(ns, INT64_MAX);
    ck_assert(!backoff_parse_retry_seconds(SLICE("-1"), &ns));
    ck_assert(!backoff_parse_retry_seconds(SLICE("1.5"), &ns));
    ck_assert(!backoff_parse_retry_seconds(SLICE("Fri, 31 Dec 1999 23:59:59 GMT"), &ns));
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
    tcase_add_test(tc, four_kinds_of_jitter);
    tcase_add_test(tc, each_class_has_its_jitter);
    tcase_add_test(tc, first_retries_at_once);
    tcase_add_test(tc, no_cap_does_not_overflow);
    return tc;
}

static TCase *directed(void)
{
    TCase *tc = tcase_create("directed");
    tcase_add_test(tc, the_server_is_clamped);
    tcase_add_test(tc, retry_after_in_seconds);
    tcase_add_test(tc, retry_after_in_any_form);
    tcase_add_test(tc, seconds);
    tcase_add_loop_test(tc, header_values, 0, ARRAY_LEN(headers));
    tcase_add_test(tc, four_thousand_digits);
    tcase_add_test(tc, no_header_leaves_the_clamp);
    return tc;
}

UNIT_MAIN("backoff", backoff, directed)
