/* The effective values and where they come from. */
#include "unit.h"

#include "core/base/strbuf.h"
#include "core/config/option.h"
#include "lines.h"

static struct strbuf shown;
static size_t lines_shown;

static void on_line(void *arg, const char *text)
{
    ck_assert_ptr_eq(arg, &shown);
    strbuf_printf(&shown, "%s\n", text);
    lines_shown++;
}

static bool shows(const char *line)
{
    return memmem(shown.p, shown.n, line, strlen(line)) != NULL;
}

static void show(const char *file, const char *env, const char *flags)
{
    struct settings s;
    settings_init(&s);
    strbuf_reset(&shown);
    lines_shown = 0;
    /* The order in which sources were read does not matter. */
    lines_add(&s, flags, SETTING_FLAG, "--set");
    lines_add(&s, file, SETTING_FILE, "f.yaml");
    lines_add(&s, env, SETTING_ENV, "RETRYD_X");
    settings_add(&s, SLICE("log.format"), SLICE("json"), SETTING_FLAG, "--set", 0);
    config_show(&s, on_line, &shown);
    settings_fini(&s);
}

static void setup(void)
{
    strbuf_init(&shown, 1024 * 1024);
}

static void teardown(void)
{
    strbuf_fini(&shown);
}

START_TEST(defaults)
{
    size_t maps = 0;
    for (size_t i = 0; i < option_table_n; i++)
        maps += option_table[i].kind == OPTION_KIND_MAP;
    show("", "", "");
    ck_assert_uint_eq(lines_shown, option_table_n - maps + option_records_n);
    ck_assert(shows("\nrules: []  # default\nlog.format"));
    ck_assert(shows("listen: [127.0.0.1:8199]  # default\n"));
    ck_assert(shows("\nlog.format: json  # --set\n"));
    ck_assert(shows("\nhttp_ports: [80, 443]  # default\n"));
    ck_assert(shows("\nretry.max_attempts: null  # default\n"));
    ck_assert(shows("\ntimeouts.response: 75s  # default\n"));
}
END_TEST

START_TEST(values_with_origin)
{
    show("timeouts.connect=1s\ntimeouts.tls=2s\ntimeouts.dns=3s",
         "timeouts.tls=4s\ntimeouts.dns=5s", "timeouts.dns=6s\ntimeouts.dns=7s");
    ck_assert(shows("timeouts.connect: 1s  # f.yaml:1\n"));
    ck_assert(shows("timeouts.tls: 4s  # RETRYD_X:1\n"));
    ck_assert(shows("timeouts.dns: 7s  # --set:2\n"));
    ck_assert(!shows("2s") && !shows(": 3s") && !shows(": 6s"));
}
END_TEST

START_TEST(lists_and_maps)
{
    show("http_ports[0]=1\nhttp_ports[1]=2\nconnect_ports[0]=3\nresolve.a=1.1.1.1\nresolve.b=1.1.1."
         "2\n"
         "intercept.hosts=[]",
         "connect_ports=4,5", "resolve.b=1.1.1.3\nretry.services.s3.max_attempts=2");
    ck_assert(shows("http_ports: [1, 2]  # f.yaml:1\n"));
    ck_assert(shows("connect_ports: [4,5]  # RETRYD_X:1\n"));
    ck_assert(shows("intercept.hosts: []  # f.yaml:6\n"));
    ck_assert(shows("resolve.a: 1.1.1.1  # f.yaml:4\n"));
    ck_assert(shows("resolve.b: 1.1.1.3  # --set:1\n") && !shows("1.1.1.2"));
    ck_assert(shows("retry.services.s3.max_attempts: 2  # --set:2\n"));
}
END_TEST

START_TEST(rules)
{
    show("rules[0].match.service[0]=s3\nrules[0].match.access_key_id[0]=AKIASECRETSECRET\n"
         "rules[0].match.access_key_id[1]=*CRET\nrules[1].max_attempts=5\nrules[1].mode=",
         "", "retry.max_attempts=2");
    ck_assert(shows("rules[0].match.service[0]: s3  # f.yaml:1\n"));
    ck_assert(shows("rules[0].match.access_key_id[0]: (not shown)  # f.yaml:2\n"));
    ck_assert(shows("rules[0].match.access_key_id[1]: (not shown)  # f.yaml:3\n"));
    ck_assert(shows("rules[1].max_attempts: 5  # f.yaml:4\nrules[1].mode: null  # f.yaml:5\n"));
    ck_assert(!shows("SECRET") && !shows("CRET") && !shows("rules: []"));
}
END_TEST

START_TEST(rules_of_the_highest_rank)
{
    show("rules[0].max_attempts=5\nrules[1].max_attempts=6", "",
         "rules[0].max_attempts=7\nrules[0].max_attempts=8");
    ck_assert(shows("rules[0].max_attempts: 8  # --set:2\n"));
    ck_assert(!shows("rules[1]") && !shows("max_attempts: 5") && !shows("max_attempts: 7"));
    show("rules[0].max_attempts=5", "", "rules=[]");
    ck_assert(shows("rules: []  # --set:1\n") && !shows("rules[0]"));
}
END_TEST

static TCase *tcase_show(void)
{
    TCase *t = tcase_create("show");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults);
    tcase_add_test(t, values_with_origin);
    tcase_add_test(t, lists_and_maps);
    tcase_add_test(t, rules);
    tcase_add_test(t, rules_of_the_highest_rank);
    return t;
}

UNIT_MAIN("config_show", tcase_show)
