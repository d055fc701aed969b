/* Where the configuration comes from: options of the command line, the environment, the file that
 * is found. */
#include "unit.h"

#include "cmd/load.h"
#include "core/base/attr.h"
#include "core/base/units.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[64];
static bool switched;
static const char *worth;
static const struct load_switch switches[] = {
    {.name = "--switch", .seen = &switched}, {.name = "--worth", .value = &worth}, {.name = NULL}};
static struct load_result result;

/* A home of its own, and no variable that means something here. */
static void setup(void)
{
    static const char *const unset[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "STATE_DIRECTORY"};
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
        unsetenv(unset[i]);
    for (char **e = environ; *e;) {
        char name[128];
        if (strncmp(*e, "RETRYD_", 7) != 0 && strncmp(*e, "AWS_", 4) != 0) {
            e++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
        unsetenv(name);
        e = environ;
    }
    snprintf(home, sizeof home, "/tmp/retryd-load.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(home));
    setenv("HOME", home, 1);
    switched = false;
    worth = NULL;
    result = (struct load_result){.switches = switches};
}

static const char *below(const char *directory, const char *rest)
{
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", directory, rest);
    return p;
}

static void teardown(void)
{
    static const char *const made[] = {"b.yaml", "a.yaml", ".config/retryd/retryd.yaml",
                                       "xdg/retryd/retryd.yaml", ".aws/config"};
    static const char *const directories[] = {".config/retryd", ".config", "xdg/retryd", "xdg",
                                              ".aws"};
    load_fini(&result);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        unlink(below(home, made[i]));
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        rmdir(below(home, directories[i]));
    ck_assert_int_eq(rmdir(home), 0);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(below(home, name), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(below(home, name), 0600), 0);
}

/* Runs load_config on these words; NULL ends them. */
static bool load(const char **words)
{
    int argc = 0;
    while (words[argc])
        argc++;
    return load_config(argc, (char **)words, &result);
}

#define LOAD(...) load((const char *[]){__VA_ARGS__, NULL})

static const char *first_problem(void)
{
    return result.problems.n ? result.problems.v[0].text : "";
}

START_TEST(nothing_given)
{
    ck_assert_msg(LOAD("verb"), "%s", first_problem());
    ck_assert_int_eq(result.first_operand, 1);
    ck_assert_str_eq(result.config->state_dir, below(home, ".local/state/retryd"));
    ck_assert_int_eq(result.config->connect_timeout_ns, 5 * NS_PER_S);
}
END_TEST

START_TEST(file_then_environment_then_flags)
{
    write_file("a.yaml", "timeouts: {connect: 1s, tls: 1s, dns: 1s}\nhttp_ports: [1, 2]\n");
    setenv("RETRYD_TIMEOUTS_TLS", "2s", 1);
    setenv("RETRYD_TIMEOUTS_DNS", "2s", 1);
    setenv("RETRYD_HTTP_PORTS", "3", 1);
    bool ok = LOAD("verb", "-c", below(home, "a.yaml"), "--set", "timeouts.dns=3s");
    ck_assert_msg(ok, "%s", first_problem());
    ck_assert_str_eq(result.file, below(home, "a.yaml"));
    ck_assert_int_eq(result.config->connect_timeout_ns, 1 * NS_PER_S);
    ck_assert_int_eq(result.config->tls_timeout_ns, 2 * NS_PER_S);
    ck_assert_int_eq(result.config->dns_timeout_ns, 3 * NS_PER_S);
    ck_assert_uint_eq(result.config->n_http_ports, 1);
    ck_assert_uint_eq(result.config->http_ports[0], 3);
}
END_TEST

/* Ready for another load. */
static void again(void)
{
    load_fini(&result);
    result.switches = switches;
}

static void tell_sdks(void)
{
    mkdir(below(home, ".aws"), 0700);
    write_file(".aws/config", "[default]\nmax_attempts = 2\n[profile dev]\nmax_attempts = 3\n");
}

/* Each source in turn, from the weakest on: the one that speaks last is heard. */
START_TEST(who_is_heard)
{
    char file[256];
    const char *words[] = {"verb", "-c", file, NULL, NULL, NULL, NULL, NULL};
    snprintf(file, sizeof file, "%s", below(home, "a.yaml"));
    write_file("a.yaml", "");
    tell_sdks();
    ck_assert_msg(load(words), "%s", first_problem());
    ck_assert_uint_eq(result.config->max_attempts, 2);
    setenv("AWS_PROFILE", "dev", 1);
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 3);
    setenv("AWS_MAX_ATTEMPTS", "4", 1);
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 4);
    words[3] = "-D";
    words[4] = "aws.maxAttempts=5";
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 5);
    write_file("a.yaml", "retry: {max_attempts: 6}\n");
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 6);
    setenv("RETRYD_RETRY_MAX_ATTEMPTS", "7", 1);
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 7);
    words[5] = "--set=retry.max_attempts=8";
    again();
    ck_assert(load(words));
    ck_assert_uint_eq(result.config->max_attempts, 8);
    ck_assert_uint_eq(result.notes.n, 0);
}
END_TEST

/* Setting by setting: a source that is silent about one leaves it to the next. */
START_TEST(setting_by_setting)
{
    tell_sdks();
    setenv("AWS_NEW_RETRIES_2026", "false", 1);
    ck_assert_msg(LOAD("verb", "-Daws.retryMode=Standard"), "%s", first_problem());
    ck_assert_uint_eq(result.config->max_attempts, 2);
    ck_assert_int_eq(result.config->retry_behaviour, RETRY_BEHAVIOUR_20);
    ck_assert_int_eq(result.config->retry_mode, RETRY_MODE_STANDARD);
    again();
    ck_assert(LOAD("verb", "--set", "retry.behaviour=2.1"));
    ck_assert_int_eq(result.config->retry_behaviour, RETRY_BEHAVIOUR_21);
}
END_TEST

START_TEST(bad_settings_of_sdks)
{
    static const char *const want[] = {
        "AWS_RETRY_MODE: \"fast\" is not one of standard|adaptive|legacy",
        "AWS_PROFILE: no [profile none] in ",
        "-D aws.maxAttempts: retry.max_attempts: \"1.5\" is not a whole number; give one, 1..100",
        "AWS_MAX_ATTEMPTS: retry.max_attempts: \"0\" is out of bounds; give 1..100",
    };
    setenv("AWS_RETRY_MODE", "fast", 1);
    setenv("AWS_MAX_ATTEMPTS", "0", 1);
    setenv("AWS_PROFILE", "none", 1);
    ck_assert(!LOAD("verb", "-D", "aws.maxAttempts=1.5"));
    ck_assert_uint_eq(result.problems.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        bool found = false;
        for (size_t j = 0; j < result.problems.n; j++)
            found |= strncmp(result.problems.v[j].text, want[i], strlen(want[i])) == 0;
        ck_assert_msg(found, "%s", want[i]);
    }
}
END_TEST

/* The exports of `retryd env` in the shell that starts retryd do not turn its retries off. */
START_TEST(own_exports)
{
    setenv("AWS_MAX_ATTEMPTS", "1", 1);
    setenv("RETRYD_CLIENT_ENV", "1", 1);
    ck_assert_msg(LOAD("verb"), "%s", first_problem());
    ck_assert_uint_eq(result.config->max_attempts, 0);
    ck_assert_uint_eq(result.notes.n, 1);
}
END_TEST

static const char *file_found(void)
{
    again();
    ck_assert_msg(LOAD("verb"), "%s", first_problem());
    return result.file ? result.file : "";
}

START_TEST(which_file)
{
    mkdir(below(home, ".config"), 0700);
    mkdir(below(home, ".config/retryd"), 0700);
    write_file(".config/retryd/retryd.yaml", "log: {level: warn}\n");
    ck_assert_str_eq(file_found(), below(home, ".config/retryd/retryd.yaml"));
    mkdir(below(home, "xdg"), 0700);
    mkdir(below(home, "xdg/retryd"), 0700);
    write_file("xdg/retryd/retryd.yaml", "log: {level: warn}\n");
    setenv("XDG_CONFIG_HOME", below(home, "xdg"), 1);
    ck_assert_str_eq(file_found(), below(home, "xdg/retryd/retryd.yaml"));
    write_file("a.yaml", "");
    setenv("RETRYD_CONFIG", below(home, "a.yaml"), 1);
    ck_assert_str_eq(file_found(), below(home, "a.yaml"));
    write_file("b.yaml", "");
    again();
    ck_assert(LOAD("verb", "--config", below(home, "b.yaml")));
    ck_assert_str_eq(result.file, below(home, "b.yaml"));
}
END_TEST

START_TEST(named_file_must_exist)
{
    ck_assert(!LOAD("verb", "-c", below(home, "none.yaml")));
    ck_assert(strstr(first_problem(), "none.yaml: No such file") != NULL);
    ck_assert(!result.usage);
    ck_assert_ptr_null(result.config);
}
END_TEST

static const char *state_dir(void)
{
    again();
    ck_assert_msg(LOAD("verb"), "%s", first_problem());
    return result.config->state_dir;
}

START_TEST(which_state_directory)
{
    setenv("XDG_STATE_HOME", "relative", 1); /* counts as unset */
    ck_assert_str_eq(state_dir(), below(home, ".local/state/retryd"));
    setenv("XDG_STATE_HOME", "/xdg", 1);
    ck_assert_str_eq(state_dir(), "/xdg/retryd");
    setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
    ck_assert_str_eq(state_dir(), "/var/lib/a");
    setenv("RETRYD_STATE_DIR", "/mine", 1);
    ck_assert_str_eq(state_dir(), "/mine");
    unsetenv("RETRYD_STATE_DIR");
    unsetenv("STATE_DIRECTORY");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    ck_assert_str_eq(state_dir(), "/var/lib/retryd");
}
END_TEST

START_TEST(operands)
{
    ck_assert(LOAD("verb", "--switch", "--set=log.level=warn", "prog", "-c", "x"));
    ck_assert_int_eq(result.first_operand, 3);
    ck_assert(switched);
    ck_assert_ptr_null(worth);
    again();
    ck_assert(LOAD("verb", "--set", "log.level=warn", "--", "-c"));
    ck_assert_int_eq(result.first_operand, 4);
    ck_assert_int_eq(result.config->log_level, 1);
    again();
    ck_assert(LOAD("verb", "--worth", "--switch", "--worth=7"));
    ck_assert_str_eq(worth, "7");
    again();
    ck_assert(LOAD("verb", "-"));
    ck_assert_int_eq(result.first_operand, 1);
}
END_TEST

static const struct {
    const char *words[4], *problem;
} usage[] = {
    {{"verb", "--frob"}, "--frob: unknown option"},
    {{"verb", "--settings"}, "--settings: unknown option"},
    {{"verb", "-c"}, "-c: needs a value"},
    {{"verb", "-D"}, "-D: needs a value"},
    {{"verb", "--worth"}, "--worth: needs a value"},
    {{"verb", "--set"}, "--set: needs a value"},
    {{"verb", "--set", "log.level"}, "log.level: give --set PATH=VALUE"},
    {{"verb", "--set", "=x"}, "=x: give --set PATH=VALUE"},
};

START_TEST(bad_usage)
{
    const char *words[4];
    memcpy(words, usage[_i].words, sizeof words);
    ck_assert(!load(words));
    ck_assert(result.usage);
    ck_assert_uint_eq(result.problems.n, 1);
    ck_assert_str_eq(first_problem(), usage[_i].problem);
}
END_TEST

START_TEST(problems_of_all_sources)
{
    write_file("a.yaml", "log: {level: loud, level: warn}\n");
    setenv("RETRYD_FOO", "1", 1);
    ck_assert(!LOAD("verb", "-c", below(home, "a.yaml"), "--set", "qqq=1"));
    ck_assert_uint_eq(result.problems.n, 4);
    ck_assert_ptr_null(result.config);
}
END_TEST

static TCase *tcase_load(void)
{
    TCase *t = tcase_create("load");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_given);
    tcase_add_test(t, file_then_environment_then_flags);
    tcase_add_test(t, who_is_heard);
    tcase_add_test(t, setting_by_setting);
    tcase_add_test(t, bad_settings_of_sdks);
    tcase_add_test(t, own_exports);
    tcase_add_test(t, which_file);
    tcase_add_test(t, named_file_must_exist);
    tcase_add_test(t, which_state_directory);
    tcase_add_test(t, operands);
    tcase_add_loop_test(t, bad_usage, 0, (int)(sizeof usage / sizeof usage[0]));
    tcase_add_test(t, problems_of_all_sources);
    return t;
}

UNIT_MAIN("load", tcase_load)
