/* Settings -> config: defaults, precedence, lists and maps, every problem with its place, and what
 * must fit together. */
#include "unit.h"

#include "core/base/units.h"
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
    ck_assert_uint_eq(problems.n, 0);
    return c;
}

/* The one problem of these lines. */
static const char *bad(const char *lines)
{
    problems_fini(&problems);
    ck_assert_ptr_null(lines_build(lines, &problems));
    ck_assert_msg(problems.n == 1, "%zu problems: %s; %s", problems.n, problems.v[0].text,
                  problems.n > 1 ? problems.v[1].text : "");
    return problems.v[0].text;
}

START_TEST(defaults_of_values)
{
    struct config *c = good("");
    ck_assert_str_eq(c->state_dir, "/state");
    ck_assert(c->intercept_aws && c->upstream_system_trust && c->retry_429);
    ck_assert_int_eq(c->private_addresses, PRIVATE_ALLOW);
    ck_assert_ptr_null(c->upstream_ca_file);
    ck_assert_ptr_null(c->replay_dir);
    ck_assert_ptr_null(c->log_file);
    ck_assert_int_eq(c->connect_timeout_ns, 5 * NS_PER_S);
    ck_assert_int_eq(c->tls_timeout_ns, 10 * NS_PER_S);
    ck_assert_int_eq(c->response_timeout_ns, 75 * NS_PER_S);
    ck_assert_int_eq(c->read_timeout_ns, 60 * NS_PER_S);
    ck_assert_int_eq(c->client_head_timeout_ns, 10 * NS_PER_S);
    ck_assert_int_eq(c->client_idle_timeout_ns, 60 * NS_PER_S);
    ck_assert_int_eq(c->client_body_timeout_ns, 60 * NS_PER_S);
    ck_assert_int_eq(c->client_write_timeout_ns, 60 * NS_PER_S);
    ck_assert_int_eq(c->tunnel_idle_ns, 600 * NS_PER_S);
    ck_assert_int_eq(c->pool_idle_ns, 30 * NS_PER_S);
    ck_assert_int_eq(c->dns_timeout_ns, 5 * NS_PER_S);
    ck_assert_int_eq(c->drain_timeout_ns, 30 * NS_PER_S);
    ck_assert_uint_eq(c->replay_memory_bytes, MIB);
    ck_assert_uint_eq(c->replay_disk_bytes, 64 * MIB);
    ck_assert_uint_eq(c->replay_memory_total_bytes, 256 * MIB);
    ck_assert_uint_eq(c->replay_disk_total_bytes, GIB);
    ck_assert_uint_eq(c->max_clients, 4096);
    ck_assert_uint_eq(c->max_parked, 4096);
    ck_assert_uint_eq(c->pool_per_origin, 64);
    ck_assert_uint_eq(c->pool_total, 1024);
    ck_assert_uint_eq(c->hold.error_bytes, 64 * KIB);
    ck_assert_uint_eq(c->hold.small_bytes, 64 * KIB);
    ck_assert_uint_eq(c->hold.root_bytes, 256 * KIB);
    ck_assert_int_eq(c->hold.root_ns, 20 * NS_PER_S);
    ck_assert_int_eq(c->retry_mode, RETRY_MODE_STANDARD);
    ck_assert_uint_eq(c->max_attempts, 0);
    ck_assert_int_eq(c->max_total_wait_ns, 120 * NS_PER_S);
    ck_assert_int_eq(c->max_signature_age_ns, 240 * NS_PER_S);
    ck_assert_int_eq(c->max_backoff_ns, 0);
    ck_assert_int_eq(c->max_elapsed_ns + c->client_timeout_ns, 0);
    ck_assert_int_eq(c->retry_behaviour, RETRY_BEHAVIOUR_21);
    ck_assert_ptr_null(c->retry_flavour);
    ck_assert(!c->modeled_errors && !c->dynamodb_crc32 && c->s3_errors == S3_ERRORS_CORE);
    ck_assert_int_eq(c->log_format, LOG_FORMAT_KV);
    ck_assert_int_eq(c->log_level, 2);
    ck_assert_uint_eq(c->workers, 1);
    ck_assert_uint_eq(c->budgets_entries, 1024);
    ck_assert(!c->budgets_file && !c->admin_socket && !c->admin_group);
    config_free(c);
}
END_TEST

START_TEST(processes)
{
    struct config *c = good("workers=auto\nbudgets.file=/dev/shm/b\nbudgets.entries=16\n"
                            "admin.socket=/run/a.sock\nadmin.group=ops-1");
    ck_assert_uint_eq(c->workers, 0);
    ck_assert_str_eq(c->budgets_file, "/dev/shm/b");
    ck_assert_uint_eq(c->budgets_entries, 16);
    ck_assert_str_eq(c->admin_socket, "/run/a.sock");
    ck_assert_str_eq(c->admin_group, "ops-1");
    config_free(c);
    c = good("workers=32");
    ck_assert_uint_eq(c->workers, 32);
    config_free(c);
}
END_TEST

START_TEST(defaults_of_lists)
{
    struct config *c = good("");
    ck_assert_uint_eq(c->n_listen, 1);
    ck_assert_str_eq(c->listen[0].host, "127.0.0.1");
    ck_assert_uint_eq(c->listen[0].port, 8199);
    ck_assert_uint_eq(c->n_connect_ports, 1);
    ck_assert_uint_eq(c->connect_ports[0], 443);
    ck_assert_uint_eq(c->n_http_ports, 2);
    ck_assert_uint_eq(c->http_ports[0], 80);
    ck_assert_uint_eq(c->http_ports[1], 443);
    ck_assert_uint_eq(c->n_intercept_hosts + c->n_bypass_hosts + c->n_allow_addresses, 0);
    ck_assert_uint_eq(c->n_resolve + c->n_services + c->n_rules, 0);
    config_free(c);
}
END_TEST

START_TEST(no_state_dir_at_all)
{
    struct settings s;
    settings_init(&s);
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_null(c->state_dir);
    config_free(c);
    settings_fini(&s);
}
END_TEST

START_TEST(every_type)
{
    struct config *c = good("state_dir=/a b\nintercept.aws=false\ntimeouts.connect=250ms\n"
                            "limits.replay_disk=0\nlimits.max_clients=7\nlog.format=json\n"
                            "log.level=debug\nprivate_addresses=deny\nretry.max_attempts=100\n"
                            "log.file=/var/log/x\nintercept.hosts[0]=*.A.example\n"
                            "intercept.hosts[1]=b\nintercept.bypass=*.internal, .c\n"
                            "allow_addresses=127.0.0.2,fd00::/8\nlisten=[::1]:0");
    ck_assert_str_eq(c->state_dir, "/a b");
    ck_assert(!c->intercept_aws);
    ck_assert_int_eq(c->connect_timeout_ns, 250 * NS_PER_MS);
    ck_assert_uint_eq(c->replay_disk_bytes, 0);
    ck_assert_uint_eq(c->max_clients, 7);
    ck_assert_int_eq(c->log_format, LOG_FORMAT_JSON);
    ck_assert_int_eq(c->log_level, 3);
    ck_assert_int_eq(c->private_addresses, PRIVATE_DENY);
    ck_assert_uint_eq(c->max_attempts, 100);
    ck_assert_str_eq(c->log_file, "/var/log/x");
    ck_assert_uint_eq(c->n_intercept_hosts, 2);
    ck_assert_str_eq(c->intercept_hosts[0].text, "a.example");
    ck_assert(c->intercept_hosts[0].suffix && !c->intercept_hosts[1].suffix);
    ck_assert_uint_eq(c->n_bypass_hosts, 2);
    ck_assert_str_eq(c->bypass_hosts[0].text, "internal");
    ck_assert(c->bypass_hosts[1].suffix);
    ck_assert_uint_eq(c->n_allow_addresses, 2);
    ck_assert_uint_eq(c->allow_addresses[0].prefix, 128);
    ck_assert_uint_eq(c->allow_addresses[1].prefix, 8);
    ck_assert_uint_eq(c->n_listen, 1);
    ck_assert_uint_eq(c->listen[0].port, 0);
    config_free(c);
}
END_TEST

START_TEST(maps)
{
    struct config *c =
        good("resolve.s3.example:443=127.0.0.1:9000\nresolve.*.b.example=[::1]\n"
             "retry.services.dynamodb.mode=off\nretry.services.s3.max_attempts=5\n"
             "retry.services.dynamodb.max_attempts=6\nresolve={}\nretry.services={}\n"
             "retry.services.sqs=");
    ck_assert_uint_eq(c->n_resolve, 2);
    ck_assert_str_eq(c->resolve[0].host.text, "s3.example");
    ck_assert_uint_eq(c->resolve[0].port, 443);
    ck_assert_str_eq(c->resolve[0].to.host, "127.0.0.1");
    ck_assert_uint_eq(c->resolve[0].to.port, 9000);
    ck_assert(c->resolve[1].host.suffix);
    ck_assert_uint_eq(c->resolve[1].port, 0);
    ck_assert_int_eq(c->resolve[1].to.kind, AUTHORITY_IPV6);
    ck_assert_uint_eq(c->resolve[1].to.port, 0);
    ck_assert_uint_eq(c->n_services, 2);
    ck_assert_str_eq(c->services[0].service, "dynamodb");
    ck_assert_int_eq(c->services[0].mode, RETRY_MODE_OFF);
    ck_assert_uint_eq(c->services[0].max_attempts, 6);
    ck_assert_str_eq(c->services[1].service, "s3");
    ck_assert_int_eq(c->services[1].mode, -1);
    ck_assert_uint_eq(c->services[1].max_attempts, 5);
    config_free(c);
}
END_TEST

START_TEST(resolve_is_ordered)
{
    struct config *c = good("resolve.*.example=127.0.0.1\nresolve.a.b.example=127.0.0.2\n"
                            "resolve.*.b.example=127.0.0.3\nresolve.*.b.example:443=127.0.0.4\n"
                            "resolve.a.b.example:80=127.0.0.5");
    static const char *const order[] = {"127.0.0.5", "127.0.0.2", "127.0.0.4", "127.0.0.3",
                                        "127.0.0.1"};
    ck_assert_uint_eq(c->n_resolve, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(c->resolve[i].to.host, order[i]);
    config_free(c);
}
END_TEST

/* file < environment < command line, whatever was read first */
START_TEST(precedence)
{
    struct settings s;
    settings_init(&s);
    lines_add(&s, "timeouts.dns=4s\nhttp_ports=9\nresolve.a=127.0.0.3\nretry.max_attempts=",
              SETTING_FLAG, "--set");
    lines_add(&s,
              "timeouts.tls=3s\ntimeouts.dns=3s\nconnect_ports=7,8\nresolve.a=127.0.0.2\n"
              "retry.max_attempts=5",
              SETTING_ENV, "RETRYD_X");
    lines_add(&s,
              "timeouts.connect=1s\ntimeouts.tls=1s\ntimeouts.dns=1s\nconnect_ports[0]=1\n"
              "connect_ports[1]=2\nconnect_ports[2]=3\nhttp_ports[0]=4\nhttp_ports[1]=5\n"
              "resolve.a=127.0.0.1\nresolve.b=127.0.0.1\nretry.max_attempts=4",
              SETTING_FILE, "f.yaml");
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(c->connect_timeout_ns, NS_PER_S);
    ck_assert_int_eq(c->tls_timeout_ns, 3 * NS_PER_S);
    ck_assert_int_eq(c->dns_timeout_ns, 4 * NS_PER_S);
    ck_assert_uint_eq(c->n_connect_ports, 2); /* lists are replaced, */
    ck_assert_uint_eq(c->connect_ports[0], 7);
    ck_assert_uint_eq(c->n_http_ports, 1);
    ck_assert_uint_eq(c->http_ports[0], 9);
    ck_assert_uint_eq(c->n_resolve, 2); /* maps are merged */
    ck_assert_str_eq(c->resolve[0].to.host, "127.0.0.3");
    ck_assert_uint_eq(c->max_attempts, 0); /* null unsets */
    config_free(c);
    settings_fini(&s);
}
END_TEST

START_TEST(last_flag_wins)
{
    struct settings s;
    settings_init(&s);
    lines_add(&s, "log.level=warn\nlog.level=error\nhttp_ports=1,2\nhttp_ports=3", SETTING_FLAG,
              "--set");
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(c->log_level, 0);
    ck_assert_uint_eq(c->n_http_ports, 1);
    ck_assert_uint_eq(c->http_ports[0], 3);
    config_free(c);
    settings_fini(&s);
}
END_TEST

static const struct {
    const char *lines, *problem;
} bad_lines[] = {
    {"\ntimeouts.connect=5 parsecs",
     "f.yaml:2: timeouts.connect: \"5 parsecs\" is not a duration; give a "
     "number with ms, s, m or h, 1ms..10m"},
    {"timeouts.connect=0s", "f.yaml:1: timeouts.connect: \"0s\" is out of bounds; give 1ms..10m"},
    {"timeouts.connect=11m", "f.yaml:1: timeouts.connect: \"11m\" is out of bounds; give 1ms..10m"},
    {"timeouts.connect=",
     "f.yaml:1: timeouts.connect: is empty; leave the key out for the default, 5s"},
    {"limits.replay_memory=1MB",
     "f.yaml:1: limits.replay_memory: \"1MB\" is not a size; give a number of "
     "bytes, or one with KiB, MiB, GiB or TiB, 4KiB..1GiB"},
    {"limits.replay_memory=1",
     "f.yaml:1: limits.replay_memory: \"1\" is out of bounds; give 4KiB..1GiB"},
    {"retry.max_attempts=0", "f.yaml:1: retry.max_attempts: \"0\" is out of bounds; give 1..100"},
    {"retry.max_attempts=-1",
     "f.yaml:1: retry.max_attempts: \"-1\" is not a whole number; give one, 1..100"},
    {"retry.max_attempts=4294967297",
     "f.yaml:1: retry.max_attempts: \"4294967297\" is not a whole number; give one, 1..100"},
    {"retry.retry_429=yes", "f.yaml:1: retry.retry_429: \"yes\" is not one of true|false"},
    {"retry.mode=adapt",
     "f.yaml:1: retry.mode: \"adapt\" is not one of off|standard|adaptive|legacy"},
    {"log.file=x.log",
     "f.yaml:1: log.file: \"x.log\" is not an absolute path; give one that starts with /"},
    {"log.file=[]",
     "f.yaml:1: log.file: \"[]\" is not an absolute path; give one that starts with /"},
    {"listen[0]=0.0.0.0:80", "f.yaml:1: listen[0]: \"0.0.0.0:80\": not a loopback address; "
                             "listeners may have others; give 127.0.0.1:PORT or [::1]:PORT"},
    {"listen=[]",
     "f.yaml:1: listen: no address to listen on; give at least one, here or in listeners"},
    {"listen=127.0.0.1:1,127.0.0.1:1", "f.yaml:1: listen: \"127.0.0.1:1\" is listed twice"},
    {"connect_ports[0]=0", "f.yaml:1: connect_ports[0]: \"0\" is not a port; give 1..65535"},
    {"http_ports=80,", "f.yaml:1: http_ports: \"\" is not a port; give 1..65535"},
    {"intercept.hosts[0]=*.com",
     "f.yaml:1: intercept.hosts[0]: \"*.com\" is a whole top-level domain; give at "
     "least two labels after \"*.\""},
    {"intercept.bypass[0]=a:443", "f.yaml:1: intercept.bypass[0]: \"a:443\": a port does not "
                                  "belong here; give a host name or *.suffix"},
    {"allow_addresses[0]=10.0.0.1/8",
     "f.yaml:1: allow_addresses[0]: \"10.0.0.1/8\": the address has bits set "
     "beyond its prefix; give ADDRESS or ADDRESS/PREFIX"},
    {"resolve.a.example=b.example",
     "f.yaml:1: resolve.a.example: \"b.example\": a name where an address is "
     "needed; give ADDRESS or ADDRESS:PORT"},
    {"resolve.a.example:0=127.0.0.1",
     "f.yaml:1: resolve.a.example:0: bad port; the key is HOST or HOST:PORT, "
     "and HOST a name or *.suffix"},
    {"retry.services.S3.mode=off",
     "f.yaml:1: retry.services.S3.mode: \"S3\" is not the name of a service; give "
     "lower-case letters, digits and \"-\""},
    {"retry.services.s3.mode=on",
     "f.yaml:1: retry.services.s3.mode: \"on\" is not one of off|standard|adaptive|legacy"},
    {"retry.services.s3.max_attempts=101",
     "f.yaml:1: retry.services.s3.max_attempts: \"101\" is out of bounds; give 1..100"},
    {"timeout.connect=1s",
     "f.yaml:1: timeout.connect: unknown option; did you mean timeouts.connect?"},
    {"qqq=1", "f.yaml:1: qqq: unknown option; retryd.yaml(5) lists all"},
    {"timeouts=5s", "f.yaml:1: timeouts: is a section; give its options below it"},
    {"timeouts=[]", "f.yaml:1: timeouts: is a section; give its options below it"},
    {"timeouts.connect[0]=5s",
     "f.yaml:1: timeouts.connect[0]: a list is not allowed here; give one value"},
    {"listen[0][0]=127.0.0.1:1",
     "f.yaml:1: listen[0][0]: a list is not allowed here; give one value"},
    {"log.level=a\001b", "f.yaml:1: log.level: \"a?b\" is not one of error|warn|info|debug"},
    {"workers=all",
     "f.yaml:1: workers: \"all\" is neither auto nor a whole number; give one, 1..32"},
    {"workers=33", "f.yaml:1: workers: \"33\" is out of bounds; give 1..32"},
    {"workers=0", "f.yaml:1: workers: \"0\" is out of bounds; give 1..32"},
    {"budgets.entries=1000", "f.yaml:1: budgets.entries: 1000 is not a power of two"},
    {"admin.group=a b", "f.yaml:1: admin.group: \"a b\" is not a name; give letters, digits, "
                        "\".\", \"_\" and \"-\""},
    {"limits.pool_per_origin=5\nlimits.pool_total=4",
     "f.yaml:1: limits.pool_per_origin: limits.pool_per_origin (5) does not fit in "
     "limits.pool_total (4)"},
    {"limits.pool_total=63", "f.yaml:1: limits.pool_total: limits.pool_per_origin (64) does not "
                             "fit in limits.pool_total (63)"},
    {"limits.replay_disk=2GiB",
     "f.yaml:1: limits.replay_disk: limits.replay_disk (2GiB) does not fit in "
     "limits.replay_disk_total (1GiB)"},
    {"limits.hold_small=16MiB\nlimits.replay_memory_total=8MiB",
     "f.yaml:1: limits.hold_small: limits.hold_small (16MiB) does not fit in "
     "limits.replay_memory_total (8MiB)"},
    {"intercept.hosts=a.b.example\nintercept.bypass=*.b.example",
     "f.yaml:2: intercept.bypass: hides a.b.example, which intercept.hosts lists; remove one of "
     "the two"},
    {"intercept.hosts=*.b.example\nintercept.bypass=*.b.example",
     "f.yaml:2: intercept.bypass: hides *.b.example, which intercept.hosts lists; remove one of "
     "the two"},
    {"intercept.hosts=a.example\nintercept.bypass=a.example",
     "f.yaml:2: intercept.bypass: hides a.example, which intercept.hosts lists; remove one of the "
     "two"},
};

START_TEST(one_problem)
{
    ck_assert_str_eq(bad(bad_lines[_i].lines), bad_lines[_i].problem);
}
END_TEST

START_TEST(narrow_bypass_is_fine)
{
    config_free(
        good("intercept.hosts=*.b.example,c.example\nintercept.bypass=a.b.example,*.c.example"));
}
END_TEST

START_TEST(two_kernel_ports_are_fine)
{
    struct config *c = good("listen=127.0.0.1:0,127.0.0.1:0");
    ck_assert_uint_eq(c->n_listen, 2);
    config_free(c);
}
END_TEST

START_TEST(all_problems_at_once)
{
    ck_assert_ptr_null(lines_build("timeouts.connect=x\nlog.level=info\nlisten=8.8.8.8:1\nfoo=1\n"
                                   "limits.pool_total=1\nretry.mode=x",
                                   &problems));
    static const char *const starts[] = {
        "f.yaml:1: timeouts.connect: ",
        "f.yaml:3: listen: ",
        "f.yaml:4: foo: ",
        "f.yaml:6: retry.mode: ",
        "f.yaml:5: limits.pool_total: ",
    };
    ck_assert_uint_eq(problems.n, sizeof starts / sizeof starts[0]);
    for (size_t i = 0; i < problems.n; i++)
        ck_assert_msg(strncmp(problems.v[i].text, starts[i], strlen(starts[i])) == 0, "%s",
                      problems.v[i].text);
}
END_TEST

/* A value is checked although a higher rank overrides it. */
START_TEST(overridden_problem)
{
    struct settings s;
    settings_init(&s);
    lines_add(&s, "timeouts.dns=x", SETTING_FILE, "f.yaml");
    settings_add(&s, SLICE("timeouts.dns"), SLICE("1s"), SETTING_FLAG, "--set", 0);
    settings_add(&s, SLICE("timeouts.tls"), SLICE("1"), SETTING_FLAG, "--set", 0);
    ck_assert_ptr_null(config_build(&s, NULL, &problems));
    ck_assert_uint_eq(problems.n, 2);
    ck_assert(strncmp(problems.v[0].text, "f.yaml:1: timeouts.dns: ", 24) == 0);
    ck_assert(strncmp(problems.v[1].text, "--set: timeouts.tls: ", 21) == 0);
    settings_fini(&s);
}
END_TEST

START_TEST(list_is_bounded)
{
    struct settings s;
    settings_init(&s);
    for (int i = 0; i < 256; i++)
        settings_add(&s, SLICE("intercept.hosts[0]"), SLICE("a.example"), SETTING_FILE, "f.yaml",
                     1);
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->n_intercept_hosts, 256);
    ck_assert_str_eq(c->intercept_hosts[255].text, "a.example");
    config_free(c);
    settings_add(&s, SLICE("intercept.hosts[0]"), SLICE("a.example"), SETTING_FILE, "f.yaml", 2);
    ck_assert_ptr_null(config_build(&s, NULL, &problems));
    ck_assert_str_eq(problems.v[0].text, "f.yaml:2: intercept.hosts[0]: more than 256 entries");
    settings_fini(&s);
}
END_TEST

START_TEST(long_values_are_cut)
{
    char line[3000] = "log.level=";
    memset(line + strlen(line), 'x', sizeof line - 1 - strlen(line));
    line[sizeof line - 1] = '\0';
    const char *text = bad(line);
    ck_assert(strstr(text, "xxx...\" is not one of error|warn|info|debug") != NULL);
    ck_assert_uint_lt(strlen(text), 200);
}
END_TEST

static TCase *tcase_build(void)
{
    TCase *t = tcase_create("build");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults_of_values);
    tcase_add_test(t, defaults_of_lists);
    tcase_add_test(t, no_state_dir_at_all);
    tcase_add_test(t, processes);
    tcase_add_test(t, every_type);
    tcase_add_test(t, maps);
    tcase_add_test(t, resolve_is_ordered);
    tcase_add_test(t, precedence);
    tcase_add_test(t, last_flag_wins);
    return t;
}

static TCase *tcase_problems(void)
{
    TCase *t = tcase_create("problems");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, one_problem, 0, (int)(sizeof bad_lines / sizeof bad_lines[0]));
    tcase_add_test(t, narrow_bypass_is_fine);
    tcase_add_test(t, two_kernel_ports_are_fine);
    tcase_add_test(t, all_problems_at_once);
    tcase_add_test(t, overridden_problem);
    tcase_add_test(t, list_is_bounded);
    tcase_add_test(t, long_values_are_cut);
    return t;
}

UNIT_MAIN("config_build", tcase_build, tcase_problems)
