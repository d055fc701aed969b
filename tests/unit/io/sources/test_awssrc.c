/* What the SDKs are told, as settings: variables, properties, and the profile in a file. */
#include "unit.h"

#include "io/sources/awssrc.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[64];
static struct settings settings;
static struct problems problems, notes;

static void setup(void)
{
    settings_init(&settings);
    problems = notes = (struct problems){0};
    snprintf(home, sizeof home, "/tmp/retryd-aws.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(home));
}

static const char *below(const char *rest)
{
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", home, rest);
    return p;
}

static void teardown(void)
{
    unlink(below(".aws/config"));
    unlink(below(".aws/credentials"));
    unlink(below("other"));
    rmdir(below(".aws"));
    ck_assert_int_eq(rmdir(home), 0);
    settings_fini(&settings);
    problems_fini(&problems);
    problems_fini(&notes);
}

static void write_file(const char *name, const char *text)
{
    mkdir(below(".aws"), 0700);
    FILE *f = fopen(below(name), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* "path=value@origin:line" of all settings. */
static const char *got(void)
{
    static char out[1024];
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < settings.n; i++) {
        const struct setting *s = &settings.v[i];
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s=%.*s@%.*s:%u", i ? " " : "",
                              SLICE_FMT(s->path), SLICE_FMT(s->value), SLICE_FMT(s->origin),
                              s->line);
    }
    return out;
}

static const char *problem(void)
{
    ck_assert_uint_eq(problems.n, 1);
    return problems.v[0].text;
}

#define ENV(...) ((char *const *)(const char *const[]){__VA_ARGS__, NULL})

static const struct {
    const char *variable, *want, *problem;
} variables[] = {
    {"AWS_RETRY_MODE=standard", "retry.mode=standard@AWS_RETRY_MODE:0", NULL},
    {"AWS_RETRY_MODE=LEGACY", "retry.mode=legacy@AWS_RETRY_MODE:0", NULL},
    {"AWS_RETRY_MODE=Adaptive", "retry.mode=adaptive@AWS_RETRY_MODE:0", NULL},
    {"AWS_RETRY_MODE=", "", NULL},
    {"AWS_RETRY_MODE=off", "", "AWS_RETRY_MODE: \"off\" is not one of standard|adaptive|legacy"},
    {"AWS_RETRY_MODE=standard ", "",
     "AWS_RETRY_MODE: \"standard \" is not one of standard|adaptive|legacy"},
    {"AWS_RETRY_MODE=0123456789012345678901234567890123456789012345678901234567890123456789", "",
     "AWS_RETRY_MODE: \"0123456789012345678901234567890123456789012345678901234567890123...\" is "
     "not one of standard|adaptive|legacy"},
    {"AWS_MAX_ATTEMPTS=7", "retry.max_attempts=7@AWS_MAX_ATTEMPTS:0", NULL},
    {"AWS_MAX_ATTEMPTS=1", "retry.max_attempts=1@AWS_MAX_ATTEMPTS:0", NULL},
    {"AWS_MAX_ATTEMPTS=", "", NULL},
    {"AWS_NEW_RETRIES_2026=true", "retry.behaviour=2.1@AWS_NEW_RETRIES_2026:0", NULL},
    {"AWS_NEW_RETRIES_2026=True", "retry.behaviour=2.1@AWS_NEW_RETRIES_2026:0", NULL},
    {"AWS_NEW_RETRIES_2026=false", "retry.behaviour=2.0@AWS_NEW_RETRIES_2026:0", NULL},
    {"AWS_NEW_RETRIES_2026=1", "retry.behaviour=2.0@AWS_NEW_RETRIES_2026:0", NULL},
    {"AWS_NEW_RETRIES_2026=", "retry.behaviour=2.0@AWS_NEW_RETRIES_2026:0", NULL},
    {"AWS_RETRY_MODES=x", "", NULL},
    {"AWS_RETRY_MODE", "", NULL},
};

START_TEST(environment)
{
    char line[128];
    snprintf(line, sizeof line, "%s", variables[_i].variable);
    bool ok = awssrc_env(ENV("HOME=/", line), &settings, &problems, &notes);
    ck_assert_str_eq(got(), variables[_i].want);
    ck_assert(ok == !variables[_i].problem);
    if (!ok)
        ck_assert_str_eq(problem(), variables[_i].problem);
    ck_assert_uint_eq(notes.n, 0);
}
END_TEST

START_TEST(ranks)
{
    ck_assert(awssrc_env(ENV("AWS_MAX_ATTEMPTS=2"), &settings, &problems, &notes));
    ck_assert(awssrc_property(SLICE("aws.maxAttempts=3"), &settings, &problems));
    write_file(".aws/config", "[default]\nmax_attempts = 4\n");
    char variable[80];
    snprintf(variable, sizeof variable, "HOME=%s", home);
    ck_assert(awssrc_profile(ENV(variable), &settings, &problems, &notes));
    ck_assert_uint_eq(settings.n, 3);
    ck_assert_int_eq(settings.v[0].rank, SETTING_AWS_ENV);
    ck_assert_int_eq(settings.v[1].rank, SETTING_AWS_FLAG);
    ck_assert_int_eq(settings.v[2].rank, SETTING_PROFILE);
}
END_TEST

/* The 1 that `retryd env` prints is for its clients; any other number is the user's own. */
START_TEST(meant_for_clients)
{
    ck_assert(
        awssrc_env(ENV("AWS_MAX_ATTEMPTS=1", "RETRYD_CLIENT_ENV=1"), &settings, &problems, &notes));
    ck_assert_str_eq(got(), "");
    ck_assert_uint_eq(notes.n, 1);
    ck_assert(strncmp(notes.v[0].text, "AWS_MAX_ATTEMPTS=1 is not read: ", 32) == 0);
    ck_assert(awssrc_env(ENV("AWS_MAX_ATTEMPTS=2", "RETRYD_CLIENT_ENV=1", "AWS_RETRY_MODE=legacy"),
                         &settings, &problems, &notes));
    ck_assert_str_eq(got(), "retry.mode=legacy@AWS_RETRY_MODE:0 "
                            "retry.max_attempts=2@AWS_MAX_ATTEMPTS:0");
    ck_assert_uint_eq(notes.n, 1);
}
END_TEST

static const struct {
    const char *property, *want, *problem;
} properties[] = {
    {"aws.retryMode=Standard", "retry.mode=standard@-D aws.retryMode:0", NULL},
    {"aws.maxAttempts=5", "retry.max_attempts=5@-D aws.maxAttempts:0", NULL},
    {"aws.newRetries2026=true", "retry.behaviour=2.1@-D aws.newRetries2026:0", NULL},
    {"aws.newRetries2026=no", "retry.behaviour=2.0@-D aws.newRetries2026:0", NULL},
    {"aws.retryMode=x", "", "-D aws.retryMode: \"x\" is not one of standard|adaptive|legacy"},
    {"aws.retrymode=standard", "",
     "-D aws.retrymode=standard: give aws.retryMode=, aws.maxAttempts= or aws.newRetries2026= and "
     "a value"},
    {"aws.retryMode", "",
     "-D aws.retryMode: give aws.retryMode=, aws.maxAttempts= or aws.newRetries2026= and a value"},
};

START_TEST(command_line)
{
    bool ok = awssrc_property(slice_str(properties[_i].property), &settings, &problems);
    ck_assert_str_eq(got(), properties[_i].want);
    ck_assert(ok == !properties[_i].problem);
    if (!ok)
        ck_assert_str_eq(problem(), properties[_i].problem);
}
END_TEST

/* With HOME, and up to two more variables. */
static bool profile(const char *more, const char *even_more)
{
    char variable[80], a[256], b[256];
    snprintf(variable, sizeof variable, "HOME=%s", home);
    snprintf(a, sizeof a, "%s", more);
    snprintf(b, sizeof b, "%s", even_more);
    return awssrc_profile(ENV(variable, a, b), &settings, &problems, &notes);
}

/* The text with "~" replaced by the home. */
static const char *with_home(const char *text)
{
    static char out[1024];
    size_t n = 0;
    for (; *text; text++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s",
                              *text == '~' ? home : (char[]){*text, 0});
    return out;
}

START_TEST(default_profile)
{
    write_file(".aws/config", "[default]\nregion = x\nRetry_Mode = standard\nmax_attempts = 2\n"
                              "MAX_ATTEMPTS = 5\n[profile dev]\nmax_attempts = 9\n");
    ck_assert(profile("A=", "B="));
    ck_assert_str_eq(got(), with_home("retry.mode=standard@~/.aws/config:3 "
                                      "retry.max_attempts=5@~/.aws/config:5"));
}
END_TEST

START_TEST(named_profile)
{
    write_file(".aws/config", "[default]\nmax_attempts = 2\n[profile dev]\nretry_mode = legacy\n");
    ck_assert(profile("AWS_PROFILE=dev", "B="));
    ck_assert_str_eq(got(), with_home("retry.mode=legacy@~/.aws/config:4"));
}
END_TEST

START_TEST(last_key_wins_even_empty)
{
    write_file(".aws/config", "[default]\nmax_attempts = 2\nretry_mode = bad\nretry_mode =\n"
                              "max_attempts = # none\n");
    ck_assert(profile("A=", "B="));
    ck_assert_str_eq(got(), "");
}
END_TEST

START_TEST(bad_value_has_its_line)
{
    write_file(".aws/config", "[default]\nretry_mode = fast\n");
    ck_assert(!profile("A=", "B="));
    ck_assert_str_eq(problem(),
                     with_home("~/.aws/config:2: \"fast\" is not one of standard|adaptive|legacy"));
}
END_TEST

START_TEST(bad_file)
{
    write_file(".aws/config", "[default]\nx = 1\n[profile\n");
    ck_assert(!profile("AWS_PROFILE=dev", "B="));
    ck_assert_str_eq(problem(),
                     with_home("~/.aws/config:3: a section without its closing bracket"));
    ck_assert_uint_eq(settings.n, 0);
}
END_TEST

START_TEST(nothing_there)
{
    ck_assert(profile("A=", "B="));
    ck_assert(profile("AWS_PROFILE=", "AWS_CONFIG_FILE="));
    ck_assert(profile("AWS_PROFILE=default", "B="));
    ck_assert(awssrc_profile(ENV("A=b"), &settings, &problems, &notes));
    write_file(".aws/config", "");
    ck_assert(profile("A=", "B="));
    ck_assert(profile("AWS_PROFILE=default", "B="));
    ck_assert_uint_eq(settings.n + notes.n, 0);
}
END_TEST

START_TEST(named_profile_is_missing)
{
    static const char advice[] = "add one, which may be empty, or unset AWS_PROFILE for retryd";
    char want[512];
    ck_assert(!profile("AWS_PROFILE=dev", "B="));
    snprintf(want, sizeof want, "AWS_PROFILE: no [profile dev] in %s/.aws/config; %s", home,
             advice);
    ck_assert_str_eq(problem(), want);
    problems_fini(&problems);
    write_file(".aws/config", "[default]\n[dev]\n");
    write_file(".aws/credentials", "[dev]\nretry_mode = standard\n");
    ck_assert(!profile("AWS_PROFILE=dev", "B="));
    ck_assert_str_eq(problem(), want);
    problems_fini(&problems);
    ck_assert(!awssrc_profile(ENV("AWS_PROFILE=dev"), &settings, &problems, &notes));
    ck_assert(strstr(problem(), "in ~/.aws/config, as HOME is unset; ") != NULL);
    ck_assert_uint_eq(settings.n, 0);
}
END_TEST

START_TEST(named_file)
{
    char variable[256];
    write_file(".aws/config", "[default]\nmax_attempts = 2\n");
    write_file("other", "[default]\nmax_attempts = 3\n");
    ck_assert(profile("AWS_CONFIG_FILE=~/other", "B="));
    ck_assert_str_eq(got(), with_home("retry.max_attempts=3@~/other:2"));
    snprintf(variable, sizeof variable, "AWS_CONFIG_FILE=%s/other", home);
    ck_assert(profile(variable, "B="));
    ck_assert_uint_eq(settings.n, 2);
    ck_assert(profile("AWS_CONFIG_FILE=/dev/null", "B="));
    ck_assert_uint_eq(settings.n, 2);
}
END_TEST

START_TEST(named_file_is_missing)
{
    ck_assert(!profile("AWS_CONFIG_FILE=~/other", "B="));
    ck_assert_str_eq(problem(), with_home("AWS_CONFIG_FILE: ~/other: No such file or directory"));
}
END_TEST

START_TEST(not_a_file)
{
    ck_assert(!profile("AWS_CONFIG_FILE=~/", "B="));
    ck_assert_str_eq(problem(), with_home("~/: not a regular file"));
    problems_fini(&problems);
    ck_assert_int_eq(mkfifo(below("other"), 0600), 0);
    ck_assert(!profile("AWS_CONFIG_FILE=~/other", "B="));
    ck_assert_str_eq(problem(), with_home("~/other: not a regular file"));
    problems_fini(&problems);
    ck_assert(!profile("AWS_CONFIG_FILE=/dev/zero", "B="));
    ck_assert_str_eq(problem(), "/dev/zero: larger than 1 MiB");
}
END_TEST

START_TEST(hostile_names)
{
    char variable[8000] = "AWS_PROFILE=";
    ck_assert(!awssrc_profile(ENV("AWS_PROFILE=a\033b", "HOME=/"), &settings, &problems, &notes));
    ck_assert(strncmp(problem(), "AWS_PROFILE: not the name of a profile", 38) == 0);
    problems_fini(&problems);
    memset(variable + 12, 'x', 257);
    ck_assert(!awssrc_profile(ENV(variable, "HOME=/"), &settings, &problems, &notes));
    ck_assert(strncmp(problem(), "AWS_PROFILE: not the name of a profile", 38) == 0);
    problems_fini(&problems);
    memset(variable, 'x', sizeof variable - 1);
    variable[sizeof variable - 1] = '\0';
    memcpy(variable, "AWS_CONFIG_FILE=", 16);
    ck_assert(!awssrc_profile(ENV(variable), &settings, &problems, &notes));
    ck_assert_str_eq(problem(), "AWS_CONFIG_FILE: too long for a path");
}
END_TEST

/* An unreadable file that nobody named is no reason not to start. Root reads everything. */
START_TEST(kept_out)
{
    write_file(".aws/config", "[default]\nmax_attempts = 2\n");
    ck_assert_int_eq(chmod(below(".aws/config"), 0), 0);
    if (access(below(".aws/config"), R_OK) == 0) {
        ck_assert(profile("A=", "B="));
        ck_assert_uint_eq(settings.n, 1);
        return;
    }
    ck_assert(profile("A=", "B="));
    ck_assert_uint_eq(settings.n, 0);
    ck_assert_uint_eq(notes.n, 1);
    ck_assert_str_eq(notes.v[0].text, with_home("~/.aws/config: Permission denied: not read"));
}
END_TEST

static TCase *tcase_values(void)
{
    TCase *t = tcase_create("values");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, environment, 0, (int)(sizeof variables / sizeof variables[0]));
    tcase_add_loop_test(t, command_line, 0, (int)(sizeof properties / sizeof properties[0]));
    tcase_add_test(t, ranks);
    tcase_add_test(t, meant_for_clients);
    return t;
}

static TCase *tcase_profile(void)
{
    TCase *t = tcase_create("profile");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, default_profile);
    tcase_add_test(t, named_profile);
    tcase_add_test(t, last_key_wins_even_empty);
    tcase_add_test(t, bad_value_has_its_line);
    tcase_add_test(t, bad_file);
    tcase_add_test(t, nothing_there);
    tcase_add_test(t, named_profile_is_missing);
    tcase_add_test(t, named_file);
    tcase_add_test(t, named_file_is_missing);
    tcase_add_test(t, not_a_file);
    tcase_add_test(t, hostile_names);
    tcase_add_test(t, kept_out);
    return t;
}

UNIT_MAIN("awssrc", tcase_values, tcase_profile)
