/* One table of names for the three places where the SDKs look, and a reader for each place. */
#include "io/sources/awssrc.h"
#include "core/base/attr.h"
#include "core/config/ini.h"
#include "core/config/value.h"
#include "io/sources/readfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 256, SHOWN_MAX = 64, MODE_MAX = 16 };

/* Texts of the SDKs as texts of the option. */
enum meaning { MEANING_SAME, MEANING_MODE, MEANING_BEHAVIOUR };

static const struct name {
    const char *variable, *property;
    const char *key; /* in the file; NULL: has none */
    const char *option;
    enum meaning meaning;
} names[] = {
    {"AWS_RETRY_MODE", "aws.retryMode", "retry_mode", "retry.mode", MEANING_MODE},
    {"AWS_MAX_ATTEMPTS", "aws.maxAttempts", "max_attempts", "retry.max_attempts", MEANING_SAME},
    {"AWS_NEW_RETRIES_2026", "aws.newRetries2026", NULL, "retry.behaviour", MEANING_BEHAVIOUR},
};

/* Where a value was found. */
struct place {
    const char *origin;
    unsigned line; /* 0: it has none */
    enum setting_rank rank;
};

/* retry.mode has a word that no SDK knows, "off": the words are checked here. */
static bool read_mode(struct slice value, char word[MODE_MAX])
{
    int position;
    if (value.n >= MODE_MAX)
        return false;
    for (size_t i = 0; i < value.n; i++)
        word[i] = ascii_lower(value.p[i]);
    word[value.n] = '\0';
    return value_choice(slice_str(word), SLICE("standard|adaptive|legacy"), &position);
}

static void complain(struct problems *problems, const struct place *at, struct slice value,
                     const char *what)
{
    char line[16] = "";
    if (at->line)
        snprintf(line, sizeof line, ":%u", at->line);
    problems_add(problems, "%s%s: \"%.*s%s\" %s", at->origin, line,
                 (int)(value.n < SHOWN_MAX ? value.n : SHOWN_MAX), value.n ? value.p : "",
                 value.n > SHOWN_MAX ? "..." : "", what);
}

static void add(const struct name *name, struct slice value, const struct place *at,
                struct settings *s, struct problems *problems)
{
    char word[MODE_MAX];
    switch (name->meaning) {
    case MEANING_BEHAVIOUR:
        /* Present and not "true", even empty: the older behaviour. */
        value = slice_eq_nocase(value, SLICE("true")) ? SLICE("2.1") : SLICE("2.0");
        break;
    case MEANING_MODE:
        if (value.n == 0)
            return;
        if (!read_mode(value, word)) {
            complain(problems, at, value, "is not one of standard|adaptive|legacy");
            return;
        }
        value = slice_str(word);
        break;
    case MEANING_SAME:
        if (value.n == 0)
            return;
        break;
    }
    settings_add(s, slice_str(name->option), value, at->rank, at->origin, at->line);
}

/* --- the environment --- */

/* NULL: unset. */
static const char *variable(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++) {
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    }
    return NULL;
}

/* Unset and empty are the same to most. */
static const char *non_empty(char *const *env, const char *name)
{
    const char *value = variable(env, name);
    return value && value[0] ? value : NULL;
}

/* What `retryd env` put there for programs behind retryd. */
static bool is_for_clients(char *const *env, const struct name *name, const char *value)
{
    return strcmp(name->variable, "AWS_MAX_ATTEMPTS") == 0 && strcmp(value, "1") == 0 &&
           non_empty(env, "RETRYD_CLIENT_ENV") != NULL;
}

bool awssrc_env(char *const *env, struct settings *s, struct problems *problems,
                struct problems *notes)
{
    size_t problems_before = problems->n;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = variable(env, names[i].variable);
        if (!value)
            continue;
        if (is_for_clients(env, &names[i], value)) {
            problems_add(notes,
                         "AWS_MAX_ATTEMPTS=1 is not read: RETRYD_CLIENT_ENV says that it is meant "
                         "for programs behind retryd; set retry.max_attempts for retryd itself");
            continue;
        }
        struct place at = {.origin = names[i].variable, .rank = SETTING_AWS_ENV};
        add(&names[i], slice_str(value), &at, s, problems);
    }
    return problems->n == problems_before;
}

/* --- the command line --- */

bool awssrc_property(struct slice assignment, struct settings *s, struct problems *problems)
{
    size_t problems_before = problems->n;
    size_t eq = slice_index(assignment, '=');
    struct slice property = slice_of(assignment.p, eq);
    for (size_t i = 0; i < ARRAY_LEN(names) && eq < assignment.n; i++) {
        if (!slice_eq(slice_str(names[i].property), property))
            continue;
        char origin[SHOWN_MAX];
        snprintf(origin, sizeof origin, "-D %s", names[i].property);
        struct place at = {.origin = origin, .rank = SETTING_AWS_FLAG};
        add(&names[i], slice_of(assignment.p + eq + 1, assignment.n - eq - 1), &at, s, problems);
        return problems->n == problems_before;
    }
    problems_add(
        problems,
        "-D %.*s: give aws.retryMode=, aws.maxAttempts= or aws.newRetries2026= and a value",
        (int)(assignment.n < SHOWN_MAX ? assignment.n : SHOWN_MAX), assignment.p);
    return false;
}

/* --- the profile --- */

struct profile {
    char path[4096];
    const char *name;
    bool path_named, name_named; /* by a variable */
    struct settings *settings;
    struct problems *problems, *notes;
};

/* False: there is no file to look for, or its path is too long to be one. */
static bool find_path(struct profile *p, char *const *env)
{
    const char *named = non_empty(env, "AWS_CONFIG_FILE"), *home = non_empty(env, "HOME");
    int n;
    p->path_named = named != NULL;
    if (named && (strncmp(named, "~/", 2) != 0 || !home))
        n = snprintf(p->path, sizeof p->path, "%s", named);
    else if (home)
        n = snprintf(p->path, sizeof p->path, "%s%s", home, named ? named + 1 : "/.aws/config");
    else {
        snprintf(p->path, sizeof p->path, "~/.aws/config, as HOME is unset");
        return false;
    }
    if (n >= 0 && (size_t)n < sizeof p->path)
        return true;
    problems_add(p->problems, "%s: too long for a path", named ? "AWS_CONFIG_FILE" : "HOME");
    return false;
}

static bool find_name(struct profile *p, char *const *env)
{
    const char *named = non_empty(env, "AWS_PROFILE");
    p->name = named ? named : "default";
    p->name_named = named && strcmp(named, "default") != 0;
    size_t n = strlen(p->name);
    bool good = n <= NAME_MAX_BYTES;
    for (size_t i = 0; i < n && good; i++)
        good = p->name[i] >= ' ' && p->name[i] < 0x7f;
    if (!good)
        problems_add(p->problems,
                     "AWS_PROFILE: not the name of a profile; give printable ASCII, 256 bytes at "
                     "most");
    return good;
}

static void missing(struct profile *p)
{
    if (p->name_named)
        problems_add(p->problems,
                     "AWS_PROFILE: no [profile %s] in %s; add one, which may be empty, or unset "
                     "AWS_PROFILE for retryd",
                     p->name, p->path);
}

/* Of equal keys the last counts, also when it is empty: so all are read before any is added. */
static void read_text(struct profile *p, struct slice text)
{
    struct ini in;
    struct ini_property found, last[ARRAY_LEN(names)] = {0};
    if (!ini_open(&in, text, slice_str(p->name)) && !in.problem)
        missing(p);
    while (ini_next(&in, &found)) {
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (names[i].key && slice_eq_nocase(found.key, slice_str(names[i].key)))
                last[i] = found;
        }
    }
    if (in.problem) {
        problems_add(p->problems, "%s:%u: %s", p->path, in.line, in.problem);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct place at = {p->path, last[i].line, SETTING_PROFILE};
        if (at.line)
            add(&names[i], last[i].value, &at, p->settings, p->problems);
    }
}

static void read_file(struct profile *p, int fd)
{
    struct stat st;
    size_t n;
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
        problems_add(p->problems, "%s: not a regular file", p->path);
        return;
    }
    char *text = readfile_all(fd, &n);
    if (text)
        read_text(p, slice_of(text, n));
    else
        problems_add(p->problems, "%s: %s", p->path,
                     errno == EFBIG ? "larger than 1 MiB" : strerror(errno));
    free(text);
}

/* A file that nobody named need not be there for us: a daemon may be kept out of a home. */
static void not_opened(struct profile *p)
{
    int why = errno;
    if (p->path_named)
        problems_add(p->problems, "AWS_CONFIG_FILE: %s: %s", p->path, strerror(why));
    else if (p->name_named || why == ENOENT || why == ENOTDIR)
        missing(p);
    else
        problems_add(p->notes, "%s: %s: not read", p->path, strerror(why));
}

bool awssrc_profile(char *const *env, struct settings *s, struct problems *problems,
                    struct problems *notes)
{
    struct profile p = {.settings = s, .problems = problems, .notes = notes};
    size_t problems_before = problems->n;
    if (!find_name(&p, env))
        return false;
    if (find_path(&p, env)) {
        int fd = readfile_open(p.path);
        if (fd < 0) {
            not_opened(&p);
        } else {
            read_file(&p, fd);
            close(fd);
        }
    } else if (problems->n == problems_before) {
        missing(&p);
    }
    return problems->n == problems_before;
}
