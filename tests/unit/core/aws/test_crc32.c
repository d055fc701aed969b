/* x-amz-crc32 against bodies (retry-semantics §13.4). */
#include "core/aws/crc32.h"
#include "core/base/attr.h"
#include "unit.h"

static struct arena arena;

static bool mismatch(const char *value, const char *more, struct slice body)
{
    struct http_resp resp = {.status = 200};
    if (value)
        header_add(&resp.fields, &arena, SLICE("X-Amz-Crc32"), slice_str(value));
    if (more)
        header_add(&resp.fields, &arena, SLICE("x-amz-crc32"), slice_str(more));
    return crc32_mismatch(&resp, body);
}

START_TEST(bodies)
{
    arena_init(&arena);
    struct slice foo = SLICE("foo");
    ck_assert(!mismatch("2356372769", NULL, foo));
    ck_assert(!mismatch(" 2356372769 ", NULL, foo));
    ck_assert(mismatch("2356372768", NULL, foo));
    ck_assert(mismatch("0", NULL, foo));
    ck_assert(mismatch("4294967295", NULL, foo));
    ck_assert(mismatch("2356372769", NULL, SLICE("fop")));
    ck_assert(mismatch("2356372769", NULL, SLICE_NONE));
    ck_assert(!mismatch("0", NULL, SLICE_NONE));
    /* The check value of CRC-32. */
    ck_assert(!mismatch("3421780262", NULL, SLICE("123456789")));
    arena_fini(&arena);
}
END_TEST

START_TEST(what_is_no_checksum)
{
    static const char *const values[] = {
        "", "x", "-1", "+1", "1.0", "0x1", "1,2", "1 2", "4294967296", "99999999999", "8C736521",
    };
    arena_init(&arena);
    ck_assert(!mismatch(NULL, NULL, SLICE("foo")));
    ck_assert(!mismatch("1", "1", SLICE("foo")));
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        ck_assert_msg(!mismatch(values[i], NULL, SLICE("foo")), "%s", values[i]);
    arena_fini(&arena);
}
END_TEST

static TCase *checksums(void)
{
    TCase *tc = tcase_create("crc32");
    tcase_add_test(tc, bodies);
    tcase_add_test(tc, what_is_no_checksum);
    return tc;
}

UNIT_MAIN("crc32", checksums)
