/* Signature age: the dates, and which of the bounds comes first. */
#include "core/aws/sdkrequest.h"
#include "core/aws/sigtime.h"
#include "unit.h"

START_TEST(dates)
{
    int64_t s = 0;
    ck_assert(sigtime_parse_amz(SLICE("19700101T000000Z"), &s) && s == 0);
    ck_assert(sigtime_parse_amz(SLICE("20250101T000000Z"), &s) && s == 1735689600);
    ck_assert(sigtime_parse_amz(SLICE("20240229T235959Z"), &s) && s == 1709251199);
    ck_assert(!sigtime_parse_amz(SLICE("20250101T000000"), &s));
    ck_assert(!sigtime_parse_amz(SLICE("20251301T000000Z"), &s));
    ck_assert(!sigtime_parse_amz(SLICE("2025-1-1T000000Z"), &s));
    ck_assert(sigtime_parse_http(SLICE("Sun, 06 Nov 1994 08:49:37 GMT"), &s) && s == 784111777);
    ck_assert(!sigtime_parse_http(SLICE("Sunday, 06-Nov-94 08:49:37 GMT"), &s));
    ck_assert(!sigtime_parse_http(SLICE("Sun, 06 Foo 1994 08:49:37 GMT"), &s));
}
END_TEST

/* Every byte of a date counts: any other one in its place, and it is no date. */
START_TEST(each_place_is_checked)
{
    static const char amz[] = "20250228T115959Z", http[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    char text[40];
    int64_t s;
    for (size_t i = 0; i < sizeof amz - 1; i++) {
        memcpy(text, amz, sizeof amz);
        text[i] = 'x';
        ck_assert_msg(!sigtime_parse_amz(slice_str(text), &s), "%s", text);
        ck_assert(!sigtime_parse_amz(slice_of(amz, i), &s));
    }
    for (size_t i = 5; i < sizeof http - 1; i++) {
        if (strchr(" :", http[i]) != NULL && i < 25)
            continue; /* separators inside are not looked at */
        memcpy(text, http, sizeof http);
        text[i] = 'x';
        ck_assert_msg(!sigtime_parse_http(slice_str(text), &s), "%s", text);
    }
    static const char *const out_of_range[] = {
        "20251301T000000Z", "20250100T000000Z", "20250132T000000Z", "20250101T240000Z",
        "20250101T006000Z", "19691231T235959Z", "20250001T000000Z", "20250101T000061Z"};
    for (size_t i = 0; i < sizeof out_of_range / sizeof out_of_range[0]; i++)
        ck_assert_msg(!sigtime_parse_amz(slice_str(out_of_range[i]), &s), "%s", out_of_range[i]);
}
END_TEST

static int64_t deadline(const char *name, const char *value, const char *target, const char *sdk)
{
    struct arena a;
    arena_init(&a);
    struct http_req req = {0};
    if (name != NULL)
        header_add(&req.fields, &a, slice_str(name), slice_str(value));
    if (sdk != NULL)
        header_add(&req.fields, &a, SLICE("amz-sdk-request"), slice_str(sdk));
    int64_t d = sigtime_deadline_s(&req, slice_str(target), 240);
    arena_fini(&a);
    return d;
}

START_TEST(which_bound_holds)
{
    ck_assert(deadline(NULL, NULL, "/", NULL) == SIGTIME_NEVER);
    ck_assert(deadline("X-Amz-Date", "20250101T000000Z", "/", NULL) == 1735689600 + 240);
    ck_assert(deadline("X-Amz-Date", "nonsense", "/", NULL) == SIGTIME_NEVER);
    ck_assert(deadline(NULL, NULL, "/k?X-Amz-Date=20250101T000000Z&X-Amz-Expires=3600", NULL) ==
              1735689600 + 3600);
    ck_assert(deadline(NULL, NULL, "/k?X-Amz-Date=20250101T000000Z", NULL) == 1735689600 + 240);
    ck_assert(deadline("x-amz-date", "20250101T000000Z", "/",
                       "ttl=20250101T000100Z; attempt=2; max=3") == 1735689600 + 60);
    ck_assert(deadline("x-amz-date", "20250101T000000Z", "/",
                       "attempt=2; max=3; ttl=20260101T000000Z") == 1735689600 + 240);
    ck_assert(deadline(NULL, NULL, "/", "attempt=1; ttl=20250101T000100Z") == 1735689660);
}
END_TEST

static unsigned attempt(const char *value)
{
    struct arena a;
    arena_init(&a);
    struct http_req req = {0};
    if (value != NULL)
        header_add(&req.fields, &a, SLICE("amz-sdk-request"), slice_str(value));
    unsigned n = sdkrequest_attempt(&req.fields);
    arena_fini(&a);
    return n;
}

/* CR15 */
START_TEST(attempts_of_the_client)
{
    ck_assert_uint_eq(attempt("attempt=1; max=3"), 1);
    ck_assert_uint_eq(attempt("attempt=2; max=3"), 2);
    ck_assert_uint_eq(attempt("ttl=20250101T000100Z; Attempt=12;max=20"), 12);
    ck_assert_uint_eq(attempt("attempt=0"), 0);
    ck_assert_uint_eq(attempt("attempt=9999"), 9999);
    static const char *const nothing[] = {
        NULL,        "",         "attempt",    "attempt=",   "attempts=2",    "max=3",
        "attempt=x", "attempt2", "attempt=-2", "attempt= 2", "attempt=10000", "reattempt=2"};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        ck_assert_uint_eq(attempt(nothing[i]), 0);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("sigtime");
    tcase_add_test(tc, dates);
    tcase_add_test(tc, each_place_is_checked);
    tcase_add_test(tc, which_bound_holds);
    tcase_add_test(tc, attempts_of_the_client);
    return tc;
}

UNIT_MAIN("sigtime", cases)
