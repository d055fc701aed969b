/* Which requests may share a connection: the key of the pool (G10, I3). */
#include "unit.h"

#include "proxy/route.h"

static struct listener_config open_rules = {.private_addresses = PRIVATE_ALLOW};
static struct listener_config closed_rules = {.private_addresses = PRIVATE_DENY};

static struct route route_of(const char *host, uint16_t port, const struct listener_config *rules)
{
    struct route r = {.tls = true, .from = {.rules = rules}};
    ck_assert_uint_lt(strlen(host), sizeof r.origin.host);
    memcpy(r.origin.host, host, strlen(host) + 1);
    r.origin.port = port;
    return r;
}

static bool shared(struct route a, struct route b)
{
    route_pool_key(&a);
    route_pool_key(&b);
    ck_assert_uint_gt(a.pool_key_n, 0);
    return slice_eq(slice_of(a.pool_key, a.pool_key_n), slice_of(b.pool_key, b.pool_key_n));
}

/* A name may stand for a private address: what one listener may reach there, another cannot get out
 * of the pool. Endpoints of AWS may be private for everybody. */
START_TEST(private_addresses_by_listener)
{
    struct listener_config other_closed = closed_rules;
    const char *const mine = "wiki.corp.example", *const aws = "sts.us-east-1.amazonaws.com";
    ck_assert(!shared(route_of(mine, 443, &open_rules), route_of(mine, 443, &closed_rules)));
    ck_assert(shared(route_of(mine, 443, &open_rules), route_of(mine, 443, &open_rules)));
    ck_assert(shared(route_of(mine, 443, &closed_rules), route_of(mine, 443, &other_closed)));
    ck_assert(shared(route_of(aws, 443, &open_rules), route_of(aws, 443, &closed_rules)));
}
END_TEST

START_TEST(everything_else_that_counts)
{
    struct route r = route_of("a.example", 443, &open_rules), other = r;
    ck_assert(!shared(r, route_of("b.example", 443, &open_rules)));
    ck_assert(!shared(r, route_of("a.example", 8443, &open_rules)));
    other.way.profile = 1;
    ck_assert(!shared(r, other));
    other = r;
    other.tls = false;
    ck_assert(!shared(r, other));
    struct route to_parent = other;
    to_parent.absolute = true;
    ck_assert(!shared(other, to_parent));
}
END_TEST

/* The longest name and the largest numbers are not cut. */
START_TEST(nothing_is_cut)
{
    char host[sizeof((struct authority *)NULL)->host];
    memset(host, 'a', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    struct route r = route_of(host, 65535, &closed_rules), other = r;
    r.way.profile = other.way.profile = UINT32_MAX;
    other.origin.port = 65534;
    ck_assert(!shared(r, other));
}
END_TEST

static TCase *keys(void)
{
    TCase *tc = tcase_create("route");
    tcase_add_test(tc, private_addresses_by_listener);
    tcase_add_test(tc, everything_else_that_counts);
    tcase_add_test(tc, nothing_is_cut);
    return tc;
}

UNIT_MAIN("route", keys)
