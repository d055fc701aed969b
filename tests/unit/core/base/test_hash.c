/* SipHash-1-3 against values of an independent implementation, one that also gives the published
 * SipHash-2-4 vectors; key 00..0f, message 00 01 02 ... */
#include "unit.h"

#include "core/base/hash.h"

static const struct {
    size_t n;
    uint64_t hash;
} vectors[] = {
    {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
    {2, UINT64_C(0x82cb9b024dc7d44d)},  {3, UINT64_C(0x8bf80ab8e7ddf7fb)},
    {4, UINT64_C(0xcf75576088d38328)},  {5, UINT64_C(0xdef9d52f49533b67)},
    {6, UINT64_C(0xc50d2b50c59f22a7)},  {7, UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0x369095118d299a8e)},  {9, UINT64_C(0x25a48eb36c063de4)},
    {10, UINT64_C(0x79de85ee92ff097f)}, {11, UINT64_C(0x70c118c1f94dc352)},
    {12, UINT64_C(0x78a384b157b4d9a2)}, {13, UINT64_C(0x306f760c1229ffa7)},
    {14, UINT64_C(0x605aa111c0f95d34)}, {15, UINT64_C(0xd320d86d2a519956)},
    {16, UINT64_C(0xcc4fdd1a7d908b66)}, {63, UINT64_C(0x9d199062b7bbb3a8)},
};

START_TEST(reference_vectors)
{
    const struct hash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    char message[64];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        ck_assert_uint_eq(hash_bytes(key, slice_of(message, vectors[i].n)), vectors[i].hash);
}
END_TEST

START_TEST(key_matters)
{
    struct slice s = SLICE("dynamodb");
    uint64_t a = hash_bytes((struct hash_key){1, 2}, s), b = hash_bytes((struct hash_key){1, 3}, s),
             c = hash_bytes((struct hash_key){2, 2}, s);
    ck_assert(a != b && a != c && b != c);
    ck_assert_uint_eq(hash_bytes((struct hash_key){1, 2}, SLICE("dynamodb")), a);
}
END_TEST

/* J14: names that were found to meet in one bucket under one key are spread evenly under another,
 * so nobody who does not know the key can make a table slow. */
START_TEST(collisions_are_of_one_key)
{
    enum { BUCKETS = 256, NAMES = 100000 };
    const struct hash_key known = {1, 2}, secret = {UINT64_C(0x5ca1ab1e), UINT64_C(0xdecade)};
    static unsigned fill[BUCKETS];
    unsigned found = 0;
    for (uint64_t n = 0; n < NAMES; n++) {
        struct slice name = slice_of((const char *)&n, sizeof n);
        if (hash_bytes(known, name) % BUCKETS == 0) {
            fill[hash_bytes(secret, name) % BUCKETS]++;
            found++;
        }
    }
    ck_assert_uint_gt(found, NAMES / BUCKETS / 2);
    for (unsigned i = 0; i < BUCKETS; i++)
        ck_assert_uint_lt(fill[i], 16);
}
END_TEST

static TCase *hashes(void)
{
    TCase *tc = tcase_create("hash");
    tcase_add_test(tc, reference_vectors);
    tcase_add_test(tc, key_matters);
    tcase_add_test(tc, collisions_are_of_one_key);
    return tc;
}

UNIT_MAIN("hash", hashes)
