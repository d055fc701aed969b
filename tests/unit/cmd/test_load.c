/* Where the configuration comes from: options of the command line, the environment, the file that
 * is found. */
#include "unit.h"

#include "cmd/load.h"
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
        if (strncmp(*e, "RETRYD_", 7) != 0) {
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
                                       "xdg/retryd/retryd.yaml"};
    static const char *const directories[] = {".config/retryd", ".config", "xdg/retryd", "xdg"};
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
    tcase_add_test(t, which_file);
    tcase_add_test(t, named_file_must_exist);
    tcase_add_test(t, which_state_directory);
    tcase_add_test(t, operands);
    tcase_add_loop_test(t, bad_usage, 0, (int)(sizeof usage / sizeof usage[0]));
    tcase_add_test(t, problems_of_all_sources);
    return t;
}

UNIT_MAIN("load", tcase_load)
