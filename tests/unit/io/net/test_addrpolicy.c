/* The address rules, one line an address: what a name may resolve to. */
#include "io/net/addrpolicy.h"
#include "io/net/addrtext.h"
#include "unit.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

static struct sockaddr_storage address(const char *text, uint16_t port)
{
    struct sockaddr_storage sa = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&sa;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    }
    return sa;
}

static struct addr_range range(const char *text, unsigned prefix)
{
    struct addr_range r = {.prefix = prefix};
    struct sockaddr_storage sa = address(text, 0);
    if (sa.ss_family == AF_INET6) {
        memcpy(r.addr, &((struct sockaddr_in6 *)&sa)->sin6_addr, 16);
    } else {
        r.addr[10] = r.addr[11] = 0xff;
        memcpy(r.addr + 12, &((struct sockaddr_in *)&sa)->sin_addr, 4);
        r.prefix += 96;
    }
    return r;
}

static const char *denied(const struct addr_policy *p, const char *text, uint16_t port,
                          bool private_ok)
{
    struct sockaddr_storage sa = address(text, port);
    const char *why = "unset";
    bool ok = addr_policy_allows(p, (struct sockaddr *)&sa, private_ok, &why);
    ck_assert(ok == (why == NULL));
    return why ? why : "";
}

/* NULL: allowed. */
static const struct {
    const char *addr, *why;
} CASES[] = {
    {"8.8.8.8", NULL},
    {"52.94.5.1", NULL},
    {"1.0.0.0", NULL},
    {"0.0.0.0", "reserved"},
    {"0.255.255.255", "reserved"},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private"},
    {"10.255.255.255", "private"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "private"},
    {"100.127.255.255", "private"},
    {"100.128.0.0", NULL},
    {"127.0.0.1", "loopback"},
    {"127.255.255.255", "loopback"},
    {"128.0.0.0", NULL},
    {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"},
    {"169.254.169.254", "metadata"},
    {"169.254.170.2", "metadata"},
    {"169.254.170.23", "metadata"},
    {"169.254.255.255", "link-local"},
    {"169.255.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "private"},
    {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL},
    {"192.0.0.0", "reserved"},
    {"192.0.0.255", "reserved"},
    {"192.0.1.0", NULL},
    {"192.167.255.255", NULL},
    {"192.168.0.0", "private"},
    {"192.168.255.255", "private"},
    {"192.169.0.0", NULL},
    {"198.17.255.255", NULL},
    {"198.18.0.0", "reserved"},
    {"198.19.255.255", "reserved"},
    {"198.20.0.0", NULL},
    {"223.255.255.255", NULL},
    {"224.0.0.0", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.1", "reserved"},
    {"255.255.255.255", "reserved"},
    {"2600:1f18::1", NULL},
    {"::", "reserved"},
    {"::1", "loopback"},
    {"fe7f:ffff::", NULL},
    {"fe80::1", "link-local"},
    {"febf:ffff::", "link-local"},
    {"fec0::1", NULL},
    {"fbff::1", NULL},
    {"fc00::1", "private"},
    {"fdff:ffff::1", "private"},
    {"fd00:ec2::254", "metadata"},
    {"fd00:ec2::23", "metadata"},
    {"fd00:ec2::253", "private"},
    {"fe00::", NULL},
    {"ff02::1", "multicast"},
    /* IPv4 in other clothes */
    {"::ffff:127.0.0.1", "loopback"},
    {"::ffff:169.254.169.254", "metadata"},
    {"::ffff:10.0.0.1", "private"},
    {"::ffff:8.8.8.8", NULL},
    {"::ffff:0.0.0.0", "reserved"},
    {"::127.0.0.1", "loopback"},
    {"::169.254.169.254", "metadata"},
    {"::10.0.0.1", "private"},
    {"::2", "reserved"},
    {"::8.8.8.8", NULL},
    {"64:ff9b::127.0.0.1", "loopback"},
    {"64:ff9b::a9fe:a9fe", "metadata"},
    {"64:ff9b::192.168.1.1", "private"},
    {"64:ff9b::8.8.8.8", NULL},
    {"64:ff9b:0:1::7f00:1", NULL}, /* not the translation prefix */
    {"2002:7f00:1::", "loopback"},
    {"2002:a9fe:a9fe::1", "metadata"},
    {"2002:a00:1::", "private"},
    {"2002:e000:1::", "multicast"},
    {"2002:808:808::1", NULL},
};

START_TEST(test_table)
{
    static const struct addr_policy strict = {0};
    const char *why = CASES[_i].why ? CASES[_i].why : "";
    const char *open_why = strcmp(why, "private") == 0 ? "" : why;
    ck_assert_str_eq(denied(&strict, CASES[_i].addr, 443, false), why);
    ck_assert_str_eq(denied(&strict, CASES[_i].addr, 443, true), open_why);
}
END_TEST

START_TEST(test_allow_list)
{
    struct addr_range allow[] = {range("127.0.0.2", 32), range("169.254.169.254", 32),
                                 range("10.1.0.0", 16), range("fd00:ec2::254", 128),
                                 range("fe80::", 12)};
    struct addr_policy p = {.allow = allow, .n_allow = 5};
    ck_assert_str_eq(denied(&p, "127.0.0.2", 80, false), "");
    ck_assert_str_eq(denied(&p, "::ffff:127.0.0.2", 80, false), "");
    ck_assert_str_eq(denied(&p, "127.0.0.3", 80, false), "loopback");
    ck_assert_str_eq(denied(&p, "64:ff9b::127.0.0.2", 80, false), "loopback");
    ck_assert_str_eq(denied(&p, "169.254.169.254", 80, false), "");
    ck_assert_str_eq(denied(&p, "10.1.255.1", 80, false), "");
    ck_assert_str_eq(denied(&p, "10.2.0.1", 80, false), "private");
    ck_assert_str_eq(denied(&p, "fd00:ec2::254", 80, false), "");
    ck_assert_str_eq(denied(&p, "fe8f::1", 80, false), "");
    ck_assert_str_eq(denied(&p, "fe90::1", 80, false), "link-local");
    struct addr_range all[] = {range("::", 0)};
    struct addr_policy anything = {.allow = all, .n_allow = 1};
    ck_assert_str_eq(denied(&anything, "127.0.0.1", 80, false), "");
    struct addr_range bad = {.prefix = 129};
    struct addr_policy none = {.allow = &bad, .n_allow = 1};
    ck_assert_str_eq(denied(&none, "127.0.0.1", 80, false), "loopback");
}
END_TEST

START_TEST(test_own_listeners)
{
    struct addr_range all[] = {range("::", 0)};
    struct sockaddr_storage own[] = {address("127.0.0.1", 8080), address("0.0.0.0", 8081),
                                     address("10.0.0.5", 8082), address("::", 8083),
                                     address("::1", 8084)};
    struct addr_policy p = {.allow = all, .n_allow = 1, .listeners = own, .n_listeners = 5};
    static const struct {
        const char *addr;
        uint16_t port;
        bool own;
    } cases[] = {
        {"127.0.0.1", 8080, true},  {"::ffff:127.0.0.1", 8080, true},
        {"127.0.0.2", 8080, false}, {"127.0.0.1", 8079, false},
        {"0.0.0.0", 8080, true},    {"127.0.0.9", 8081, true},
        {"0.0.0.0", 8081, true},    {"10.0.0.5", 8082, true},
        {"10.0.0.6", 8082, false},  {"::1", 8083, true},
        {"127.0.0.1", 8083, true},  {"8.8.8.8", 8083, false},
        {"::1", 8084, true},        {"::", 8084, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sockaddr_storage sa = address(cases[i].addr, cases[i].port);
        ck_assert_str_eq(denied(&p, cases[i].addr, cases[i].port, true),
                         cases[i].own ? "own listener" : "");
        ck_assert(addr_policy_is_own(&p, (struct sockaddr *)&sa) == cases[i].own);
    }
}
END_TEST

START_TEST(test_other_families)
{
    static const struct addr_policy p = {0};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const char *why;
    ck_assert(!addr_policy_allows(&p, (struct sockaddr *)&un, true, &why));
    ck_assert_str_eq(why, "reserved");
    ck_assert(!addr_policy_is_own(&p, (struct sockaddr *)&un));
}
END_TEST

START_TEST(test_text)
{
    char buf[ADDRTEXT_BYTES];
    struct sockaddr_storage sa = address("192.0.2.1", 80);
    ck_assert_str_eq(addrtext((struct sockaddr *)&sa, buf), "192.0.2.1:80");
    sa = address("2001:db8::1", 443);
    ck_assert_str_eq(addrtext((struct sockaddr *)&sa, buf), "[2001:db8::1]:443");
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    ck_assert_str_eq(addrtext((struct sockaddr *)&un, buf), "unix");
    un.sun_family = AF_UNSPEC;
    ck_assert_str_eq(addrtext((struct sockaddr *)&un, buf), "unknown");
}
END_TEST

static TCase *tcase_rules(void)
{
    TCase *tc = tcase_create("rules");
    tcase_add_loop_test(tc, test_table, 0, (int)(sizeof CASES / sizeof CASES[0]));
    tcase_add_test(tc, test_allow_list);
    tcase_add_test(tc, test_own_listeners);
    tcase_add_test(tc, test_other_families);
    tcase_add_test(tc, test_text);
    return tc;
}

UNIT_MAIN("addrpolicy", tcase_rules)
