/* The sources of the configuration, weakest first: what the AWS SDKs are told (profile, AWS_*, -D),
 * file, environment, command line. */
#include "cmd/load.h"
#include "core/base/xalloc.h"
#include "io/sources/awssrc.h"
#include "io/sources/envsrc.h"
#include "io/sources/yamlsrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- command line --- */

static void usage_problem(struct load_result *out, const char *what, const char *arg)
{
    problems_add(&out->problems, "%s: %s", arg, what);
    out->usage = true;
}

static void set_option(struct load_result *out, const char *assignment)
{
    struct slice all = slice_str(assignment);
    size_t eq = slice_index(all, '=');
    if (eq == 0 || eq == all.n)
        usage_problem(out, "give --set PATH=VALUE", assignment);
    else
        settings_add(&out->settings, slice_of(all.p, eq), slice_of(all.p + eq + 1, all.n - eq - 1),
                     SETTING_FLAG, "--set", 0);
}

/* True if argv[*i] is that option, as "--name VALUE" or "--name=VALUE"; *i moves on to the last
 * word used. A missing value is a problem, and NULL. */
static bool takes_value(int argc, char **argv, int *i, const char *name, const char **value,
                        struct load_result *out)
{
    size_t n = strlen(name);
    const char *rest = argv[*i] + n;
    if (strncmp(argv[*i], name, n) != 0 || (*rest != '\0' && *rest != '='))
        return false;
    *value = *rest ? rest + 1 : NULL;
    if (!*value && *i + 1 < argc)
        *value = argv[++*i];
    if (!*value)
        usage_problem(out, "needs a value", name);
    return true;
}

/* True if argv[*i] is one of the verb's own; it is then done with. */
static bool is_switch(int argc, char **argv, int *i, struct load_result *out)
{
    for (const struct load_switch *sw = out->switches; sw && sw->name; sw++) {
        if (sw->value && takes_value(argc, argv, i, sw->name, sw->value, out))
            return true;
        if (sw->seen && strcmp(argv[*i], sw->name) == 0) {
            *sw->seen = true;
            return true;
        }
    }
    return false;
}

/* True for -D NAME=VALUE, also without the blank, as Java has it. */
static bool is_property(int argc, char **argv, int *i, struct load_result *out)
{
    if (strncmp(argv[*i], "-D", 2) != 0)
        return false;
    const char *assignment = argv[*i][2] ? argv[*i] + 2 : NULL;
    if (!assignment && *i + 1 < argc)
        assignment = argv[++*i];
    if (assignment)
        (void)awssrc_property(slice_str(assignment), &out->settings, &out->problems);
    else
        usage_problem(out, "needs a value", "-D");
    return true;
}

/* Returns the file named on the command line, or NULL. */
static const char *read_flags(int argc, char **argv, struct load_result *out)
{
    const char *file = NULL, *value;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (is_switch(argc, argv, &i, out) || is_property(argc, argv, &i, out))
            continue;
        if (takes_value(argc, argv, &i, "--set", &value, out)) {
            if (value)
                set_option(out, value);
        } else if (takes_value(argc, argv, &i, "--config", &value, out) ||
                   takes_value(argc, argv, &i, "-c", &value, out)) {
            file = value;
        } else {
            usage_problem(out, "unknown option", argv[i]);
        }
    }
    out->first_operand = i;
    return file;
}

/* --- places --- */

static char *join(const char *directory, const char *rest)
{
    size_t n = strlen(directory) + strlen(rest) + 1;
    char *path = xmalloc(n);
    snprintf(path, n, "%s%s", directory, rest);
    return path;
}

/* An absolute path of the environment; all else counts as unset (XDG base directory rules). */
static const char *directory_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

/* A directory of the user: below $XDG_…, else below $HOME. NULL: neither is set. */
static char *user_path(const char *xdg_variable, const char *home_infix, const char *rest)
{
    const char *base = directory_variable(xdg_variable), *home = directory_variable("HOME");
    if (base)
        return join(base, rest);
    if (!home)
        return NULL;
    char *in_home = join(home, home_infix);
    char *path = join(in_home, rest);
    free(in_home);
    return path;
}

/* Also true for a file that cannot be looked at: reading it will say why. */
static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The file to read, on the heap; NULL: none. */
static char *find_file(const char *from_flag)
{
    const char *from_env = getenv("RETRYD_CONFIG");
    if (from_flag)
        return xstrdup(from_flag);
    if (from_env && from_env[0])
        return xstrdup(from_env);
    char *of_user = user_path("XDG_CONFIG_HOME", "/.config", "/retryd/retryd.yaml");
    if (of_user && exists(of_user))
        return of_user;
    free(of_user);
    return exists("/etc/retryd/retryd.yaml") ? xstrdup("/etc/retryd/retryd.yaml") : NULL;
}

static char *find_state_dir(void)
{
    const char *systemd = directory_variable("STATE_DIRECTORY");
    if (systemd) {
        /* A unit with several has them separated by colons; the first is the main one. */
        return xstrndup(systemd, slice_index(slice_str(systemd), ':'));
    }
    char *of_user = user_path("XDG_STATE_HOME", "/.local/state", "/retryd");
    return of_user ? of_user : xstrdup("/var/lib/retryd");
}

/* --- all --- */

bool load_config(int argc, char **argv, struct load_result *out)
{
    *out = (struct load_result){.switches = out->switches};
    settings_init(&out->settings);
    const char *named = read_flags(argc, argv, out);
    if (out->usage)
        return false;
    out->file = find_file(named);
    if (out->file)
        (void)yamlsrc_file(out->file, &out->settings, &out->problems);
    (void)envsrc_read(environ, &out->settings, &out->problems);
    (void)awssrc_env(environ, &out->settings, &out->problems, &out->notes);
    (void)awssrc_profile(environ, &out->settings, &out->problems, &out->notes);
    char *state_dir = find_state_dir();
    settings_add(&out->settings, SLICE("state_dir"), slice_str(state_dir), SETTING_DEFAULT,
                 "default", 0);
    /* Even after a problem: the values are worth a look, too. */
    out->config = config_build(&out->settings, state_dir, &out->problems);
    free(state_dir);
    if (out->problems.n > 0) {
        config_free(out->config);
        out->config = NULL;
    }
    return out->config != NULL;
}

void load_print_notes(const struct load_result *r)
{
    for (size_t i = 0; i < r->notes.n; i++)
        fprintf(stderr, "note: %s\n", r->notes.v[i].text);
}

void load_print_problems(const struct load_result *r)
{
    for (size_t i = 0; i < r->problems.n; i++)
        fprintf(stderr, "%s\n", r->problems.v[i].text);
}

void load_fini(struct load_result *r)
{
    config_free(r->config);
    settings_fini(&r->settings);
    problems_fini(&r->problems);
    problems_fini(&r->notes);
    free(r->file);
    *r = (struct load_result){0};
}
