/* Maps of user namespaces: the initial one, one of a service with PrivateUsers, one of a container.
 */
#include "proxy/uidmap.h"
#include "unit.h"

#include <unistd.h>

static const struct {
    const char *map;
    uint32_t uid;
    bool known;
} cases[] = {
    {"         0          0 4294967295\n", 0, true},
    {"         0          0 4294967295\n", 65534, true},
    {"         0          0 4294967295\n", 4294967294U, true},
    {"         0          0          1\n       998        998          1\n", 0, true},
    {"         0          0          1\n       998        998          1\n", 998, true},
    {"         0          0          1\n       998        998          1\n", 1000, false},
    {"         0          0          1\n       998        998          1\n", 65534, false},
    {"         0     100000      65536\n", 65535, true},
    {"         0     100000      65536\n", 65536, false},
    {"         0     100000      65536\n", 100000, false},
    {"1000 0 1", 1000, true},
    {"1000 0 1", 999, false},
    {"", 0, false},
    {"garbage\n", 0, false},
};

START_TEST(says_who_is_known)
{
    ck_assert_int_eq(uidmap_has(slice_str(cases[_i].map), cases[_i].uid), cases[_i].known);
}
END_TEST

START_TEST(we_are_known)
{
    ck_assert(uidmap_knows(getuid()));
}
END_TEST

static TCase *tcase(void)
{
    TCase *tc = tcase_create("uidmap");
    tcase_add_loop_test(tc, says_who_is_known, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, we_are_known);
    return tc;
}

UNIT_MAIN("uidmap", tcase)
