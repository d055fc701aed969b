/* Listeners, origins and the parent proxy: what is read, which defaults hang on the place, and what
 * does not fit together. */
#include "unit.h"

#include "lines.h"

static struct problems problems;

static void setup(void)
{
    problems = (struct problems){0};
}

static void teardown(void)
{
    problems_fini(&problems);
}

static struct config *good(const char *lines)
{
    struct config *c = lines_build(lines, &problems);
    ck_assert_msg(c != NULL, "%s", problems.n ? problems.v[0].text : "no problem");
    return c;
}

START_TEST(listen_becomes_listeners)
{
    struct config *c = good("listen=127.0.0.1:1,[::1]:2\nlisteners[0].address=unix:/run/x.sock\n"
                            "listeners[0].name=pod\nprivate_addresses=deny\naws_only=true");
    ck_assert_uint_eq(c->n_listen, 2);
    ck_assert_uint_eq(c->n_listeners, 3);
    ck_assert_str_eq(c->listeners[0].name, "127.0.0.1:1");
    ck_assert_str_eq(c->listeners[1].name, "[::1]:2");
    ck_assert_str_eq(c->listeners[2].name, "pod");
    ck_assert_str_eq(c->listeners[2].address.path, "/run/x.sock");
    ck_assert_uint_eq(c->listeners[2].socket_mode, 0660);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(c->listeners[i].local && c->listeners[i].aws_only);
        ck_assert_int_eq(c->listeners[i].private_addresses, PRIVATE_DENY);
        ck_assert_uint_eq(c->listeners[i].n_clients, 0);
    }
    config_free(c);
}
END_TEST

/* Security requirements I2, I3: away from loopback the doors are narrower. */
START_TEST(defaults_off_loopback)
{
    struct config *c = good("listen=[]\nlisteners[0].address=0.0.0.0:8080\n"
                            "listeners[0].clients=10.0.0.0/8,192.0.2.1\n"
                            "listeners[1].address=[2001:db8::1]:8080\n"
                            "listeners[1].credentials_file=/etc/users\n"
                            "listeners[1].aws_only=false\nlisteners[1].private_addresses=allow");
    ck_assert_uint_eq(c->n_listeners, 2);
    ck_assert(!c->listeners[0].local && c->listeners[0].aws_only);
    ck_assert_int_eq(c->listeners[0].private_addresses, PRIVATE_DENY);
    ck_assert_uint_eq(c->listeners[0].n_clients, 2);
    ck_assert(!c->listeners[1].local && !c->listeners[1].aws_only);
    ck_assert_int_eq(c->listeners[1].private_addresses, PRIVATE_ALLOW);
    ck_assert_str_eq(c->listeners[1].credentials_file, "/etc/users");
    config_free(c);
}
END_TEST

START_TEST(ports_to_pick)
{
    struct config *c = good("listen=127.0.0.1:0\nlisteners[0].address=127.0.0.1:0\n"
                            "listeners[1].address=127.0.0.1:0");
    ck_assert_uint_eq(c->n_listeners, 3);
    config_free(c);
}
END_TEST

START_TEST(origins)
{
    struct config *c = good("origins[0].hosts=*.a.example,b.example\norigins[0].ca_file=/ca\n"
                            "origins[1].hosts=*.example\norigins[1].parent=skip\n"
                            "parent.url=https://proxy.example:3128/\n"
                            "parent.no_proxy=LOCALHOST,.corp,10.0.0.0/8,*,[::1],h:80");
    ck_assert_ptr_eq(config_origin(c, SLICE("x.a.example")), &c->origins[0]);
    ck_assert_ptr_eq(config_origin(c, SLICE("b.example")), &c->origins[0]);
    ck_assert_ptr_eq(config_origin(c, SLICE("c.example")), &c->origins[1]);
    ck_assert_ptr_null(config_origin(c, SLICE("example")));
    ck_assert(!origin_has(&c->origins[0], parent) && origin_has(&c->origins[1], parent));
    ck_assert_int_eq(c->origins[1].parent, PARENT_SKIP);
    ck_assert(c->parent.given && c->parent.tls);
    ck_assert_str_eq(c->parent.at.host, "proxy.example");
    ck_assert_uint_eq(c->parent.at.port, 3128);
    ck_assert_uint_eq(c->n_no_proxy, 6);
    ck_assert(slice_eq(c->no_proxy[0], SLICE("localhost")));
    config_free(c);
}
END_TEST

START_TEST(budget_key)
{
    struct config *c = good("budgets.key=service,resource");
    ck_assert_uint_eq(c->n_budget_parts, 2);
    ck_assert_uint_eq(c->budget_parts[1], BUDGET_PART_RESOURCE);
    config_free(c);
}
END_TEST

/* The same for clients that a load balancer lets in from elsewhere. */
START_TEST(defaults_behind_a_load_balancer)
{
    struct config *c = good("listeners[0].address=127.0.0.1:1\nlisteners[0].clients=192.0.2.0/24\n"
                            "listeners[0].proxy_protocol=127.0.0.1\n"
                            "listeners[1].address=unix:/run/x\nlisteners[1].clients=192.0.2.0/24\n"
                            "listeners[1].proxy_protocol=0.0.0.0/0");
    ck_assert_uint_eq(c->n_listeners, 3);
    for (size_t i = 1; i < 3; i++) {
        ck_assert(!c->listeners[i].local && c->listeners[i].aws_only);
        ck_assert_int_eq(c->listeners[i].private_addresses, PRIVATE_DENY);
    }
    config_free(c);
}
END_TEST

static const struct {
    const char *lines, *problem;
} bad[] = {
    {"listeners[0].name=x", "f.yaml:1: listeners[0]: address is missing"},
    {"listeners[0].address=host:80",
     "f.yaml:1: listeners[0].address: \"host:80\": a name where an address is needed; give "
     "ADDRESS:PORT or unix:/PATH"},
    {"listeners[0].address=unix:x.sock",
     "f.yaml:1: listeners[0].address: \"unix:x.sock\": not an absolute path of at most 107 bytes; "
     "give ADDRESS:PORT or unix:/PATH"},
    {"listeners[0].address=10.0.0.1:80",
     "f.yaml:1: listeners[0].address: 10.0.0.1:80 is no loopback address, so the listener needs "
     "clients or credentials_file"},
    {"listeners[0].address=127.0.0.1:8199",
     "f.yaml:1: listeners[0].address: 127.0.0.1:8199 is listened on already: take that one out of "
     "listen (listen: [] if it is the only one)"},
    {"listeners[0].address=0.0.0.0:8199\nlisteners[0].clients=10.0.0.0/8",
     "f.yaml:1: listeners[0].address: 0.0.0.0:8199 cannot be beside 127.0.0.1:8199: take that one "
     "out of listen (listen: [] if it is the only one)"},
    {"listeners[0].address=[::1]:1\nlisteners[1].address=[::]:1\nlisteners[1].clients=::/0",
     "f.yaml:2: listeners[1].address: [::]:1 cannot be beside [::1]:1"},
    {"listeners[0].address=unix:/x\nlisteners[1].address=unix:/x",
     "f.yaml:2: listeners[1].address: unix:/x is listened on already"},
    {"listeners.address=127.0.0.1:1",
     "f.yaml:1: listeners.address: listeners is a list; begin each of its entries with \"- \""},
    {"listeners[0]=127.0.0.1:1",
     "f.yaml:1: listeners[0]: is not a listener; give its settings below it"},
    {"listeners[0].address=127.0.0.1:1\nlisteners[1].address=127.0.0.1:2\n"
     "listeners[0].name=x\nlisteners[1].name=x",
     "f.yaml:2: listeners[1].name: \"x\" is taken already"},
    {"listeners[0].address=unix:/x\nlisteners[0].clients=10.0.0.0/8",
     "f.yaml:2: listeners[0].clients: peers of a unix socket have no address; give users"},
    {"listeners[0].address=127.0.0.1:1\nlisteners[0].proxy_protocol=127.0.0.1",
     "f.yaml:2: listeners[0].proxy_protocol: with it clients come from anywhere, so the listener "
     "needs clients or credentials_file"},
    {"listeners[0].address=unix:/x\nlisteners[0].proxy_protocol=127.0.0.1",
     "f.yaml:2: listeners[0].proxy_protocol: with it clients come from anywhere, so the listener "
     "needs clients or credentials_file"},
    {"listeners[0].address=127.0.0.1:1\nlisteners[0].socket_mode=0600",
     "f.yaml:2: listeners[0].socket_mode is for unix sockets; remove it"},
    {"listeners[0].address=127.0.0.1:1\nlisteners[0].socket_group=x",
     "f.yaml:2: listeners[0].socket_group is for unix sockets; remove it"},
    {"listeners[0].address=unix:/x\nlisteners[0].socket_mode=0400",
     "f.yaml:2: listeners[0].socket_mode: \"0400\" is not a file mode; give four octal digits, "
     "0600..0777"},
    {"listeners[0].address=10.0.0.1:1\nlisteners[0].clients=10.0.0.0/8\nlisteners[0].users=bob",
     "f.yaml:3: listeners[0].users: only unix sockets and loopback addresses without "
     "proxy_protocol know the user of a client; give clients or credentials_file"},
    {"listeners[0].address=127.0.0.1:1\nlisteners[0].tls_key=/k",
     "f.yaml:1: listeners[0]: tls_certificate and tls_key belong together; give both or neither"},
    {"origins[0].ca_file=/x", "f.yaml:1: origins[0]: hosts is missing"},
    {"origins[0].hosts=a\norigins[0].client_key=/k",
     "f.yaml:1: origins[0]: client_certificate and client_key belong together; give both or "
     "neither"},
    {"origins[0].hosts=a\norigins[0].parent=use",
     "f.yaml:2: origins[0].parent: there is no parent.url"},
    {"origins[0].host=a",
     "f.yaml:1: origins[0].host: unknown option of an origin; did you mean hosts?"},
    {"parent.url=socks5://x:1",
     "f.yaml:1: parent.url: is not a URL of a proxy; give http://HOST:PORT or https://HOST:PORT"},
    {"parent.url=http://u:secret@x:1",
     "f.yaml:1: parent.url: has a user in it; that belongs into parent.credentials_file; give "
     "http://HOST:PORT or https://HOST:PORT"},
    {"parent.url=http://x", "f.yaml:1: parent.url: has no port; give http://HOST:PORT or "
                            "https://HOST:PORT"},
    {"parent.url=http://x:99999", "f.yaml:1: parent.url: has a port that is not 1..65535; give "
                                  "http://HOST:PORT or https://HOST:PORT"},
    {"parent.url=http://x:1/path", "f.yaml:1: parent.url: has a path; give http://HOST:PORT or "
                                   "https://HOST:PORT"},
    {"parent.url=http://x:1\nparent.ca_file=/a",
     "f.yaml:2: parent.ca_file: only an https:// parent.url shows a certificate; remove it"},
    {"parent.no_proxy=a", "f.yaml:1: parent.no_proxy: there is no parent.url"},
    {"parent.ca_file=/a", "f.yaml:1: parent.ca_file: there is no parent.url"},
    {"parent.credentials_file=/a", "f.yaml:1: parent.credentials_file: there is no parent.url"},
    {"parent.url=http://x:1\nparent.no_proxy=a b",
     "f.yaml:2: parent.no_proxy: \"a b\": bad byte in the host name; give a name, an address, a "
     "range "
     "or *"},
    {"upstream.source_addresses=10.0.0.1,10.0.0.2",
     "f.yaml:1: upstream.source_addresses: has two addresses of one family; give one IPv4, one "
     "IPv6, or both"},
    {"upstream.source_addresses=10.0.0.1:80",
     "f.yaml:1: upstream.source_addresses: \"10.0.0.1:80\": a port does not belong here; give an "
     "address of this machine"},
    {"budgets.key=service,table",
     "f.yaml:1: budgets.key: \"table\" is not one of "
     "service|region|access_key|operation|resource|host|peer|listener"},
};

START_TEST(one_problem)
{
    ck_assert_ptr_null(lines_build(bad[_i].lines, &problems));
    ck_assert_msg(problems.n == 1, "%zu problems: %s", problems.n, problems.v[0].text);
    ck_assert_str_eq(problems.v[0].text, bad[_i].problem);
}
END_TEST

static TCase *tcase_settings(void)
{
    TCase *t = tcase_create("settings");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, listen_becomes_listeners);
    tcase_add_test(t, defaults_off_loopback);
    tcase_add_test(t, defaults_behind_a_load_balancer);
    tcase_add_test(t, ports_to_pick);
    tcase_add_test(t, origins);
    tcase_add_test(t, budget_key);
    tcase_add_loop_test(t, one_problem, 0, (int)ARRAY_LEN(bad));
    return t;
}

UNIT_MAIN("build_reach", tcase_settings)
