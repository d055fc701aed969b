/* Variables -> settings. */
#include "unit.h"

#include "io/sources/envsrc.h"

static struct settings settings;
static struct problems problems;

static void setup(void)
{
    settings_init(&settings);
    problems = (struct problems){0};
}

static void teardown(void)
{
    settings_fini(&settings);
    problems_fini(&problems);
}

static bool read_env(const char **env)
{
    return envsrc_read((char *const *)env, &settings, &problems);
}

START_TEST(options)
{
    const char *env[] = {"HOME=/root",
                         "RETRYD_RETRY_MAX_ATTEMPTS=7",
                         "RETRYD_LISTEN=127.0.0.1:1,127.0.0.1:2",
                         "RETRYD_LOG_FILE=",
                         "RETRYD_STATE_DIR=/a=b",
                         "XRETRYD_FOO=1",
                         NULL};
    ck_assert(read_env(env));
    ck_assert_uint_eq(settings.n, 4);
    static const struct {
        const char *path, *value, *origin;
    } expect[] = {
        {"retry.max_attempts", "7", "RETRYD_RETRY_MAX_ATTEMPTS"},
        {"listen", "127.0.0.1:1,127.0.0.1:2", "RETRYD_LISTEN"},
        {"log.file", "", "RETRYD_LOG_FILE"},
        {"state_dir", "/a=b", "RETRYD_STATE_DIR"},
    };
    for (size_t i = 0; i < settings.n; i++) {
        ck_assert(slice_eq(settings.v[i].path, slice_str(expect[i].path)));
        ck_assert(slice_eq(settings.v[i].value, slice_str(expect[i].value)));
        ck_assert(slice_eq(settings.v[i].origin, slice_str(expect[i].origin)));
        ck_assert_int_eq(settings.v[i].rank, SETTING_ENV);
        ck_assert_uint_eq(settings.v[i].line, 0);
    }
}
END_TEST

START_TEST(not_options_and_fine)
{
    const char *env[] = {"RETRYD_CONFIG=/etc/x.yaml",
                         "RETRYD_SERVICE_HOST=10.0.0.7",
                         "RETRYD_SERVICE_PORT=8199",
                         "RETRYD_SERVICE_PORT_PROXY=8199",
                         "RETRYD_PORT=tcp://10.0.0.7:8199",
                         "RETRYD_PORT_8199_TCP_ADDR=10.0.0.7",
                         "RETRYDX=1",
                         NULL};
    ck_assert(read_env(env));
    ck_assert_uint_eq(settings.n, 0);
}
END_TEST

START_TEST(unknown_variables)
{
    const char *env[] = {
        "RETRYD_LISTN=x",  "RETRYD_TIMEOUT_CONNECT=1s", "RETRYD_QQQQQQ=1",       "RETRYD_=1",
        "RETRYD_listen=x", "RETRYD_RESOLVE=a",          "RETRYD_LOG_LEVEL=warn", NULL};
    ck_assert(!read_env(env));
    static const char *const expect[] = {
        "RETRYD_LISTN: unknown variable; did you mean RETRYD_LISTEN?",
        "RETRYD_TIMEOUT_CONNECT: unknown variable; did you mean RETRYD_TIMEOUTS_CONNECT?",
        "RETRYD_QQQQQQ: unknown variable; retryd.yaml(5) lists all options",
        "RETRYD_: unknown variable; retryd.yaml(5) lists all options",
        "RETRYD_listen: unknown variable; did you mean RETRYD_LISTEN?",
        "RETRYD_RESOLVE: unknown variable; retryd.yaml(5) lists all options",
    };
    ck_assert_uint_eq(problems.n, sizeof expect / sizeof expect[0]);
    for (size_t i = 0; i < problems.n; i++)
        ck_assert_str_eq(problems.v[i].text, expect[i]);
    ck_assert_uint_eq(settings.n, 1);
}
END_TEST

static TCase *tcase_variables(void)
{
    TCase *t = tcase_create("variables");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, options);
    tcase_add_test(t, not_options_and_fine);
    tcase_add_test(t, unknown_variables);
    return t;
}

UNIT_MAIN("envsrc", tcase_variables)
