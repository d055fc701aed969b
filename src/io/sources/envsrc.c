/* Variables of the environment. */
#include "io/sources/envsrc.h"
#include "core/config/option.h"

static const struct option *find_variable(struct slice name)
{
    char variable[OPTION_VARIABLE_MAX];
    for (const struct option *o = option_table; o < option_table + option_table_n; o++) {
        option_variable(o, variable);
        if (slice_eq(slice_str(variable), name))
            return o;
    }
    return NULL;
}

/* What is in the namespace without being an option: the file's name, the mark of the variables that
 * `retryd env` prints, and what Kubernetes puts there for a Service that is called "retryd"
 * (RETRYD_SERVICE_HOST, RETRYD_PORT_8199_TCP, …). */
static bool is_foreign(struct slice name)
{
    static const char *const exact[] = {"RETRYD_CONFIG", "RETRYD_CLIENT_ENV", "RETRYD_PORT",
                                        "RETRYD_SERVICE_HOST"};
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        if (slice_eq(name, slice_str(exact[i])))
            return true;
    }
    return slice_starts(name, SLICE("RETRYD_SERVICE_PORT")) ||
           slice_starts(name, SLICE("RETRYD_PORT_"));
}

/* RETRYD_TIMEOUT_CONNECT is most likely meant for what "timeout.connect" is near to. */
static void unknown(struct slice name, struct problems *problems)
{
    char path[OPTION_VARIABLE_MAX], variable[OPTION_VARIABLE_MAX] = "";
    struct slice rest = slice_of(name.p + strlen("RETRYD_"), name.n - strlen("RETRYD_"));
    if (rest.n < sizeof path) {
        bool dotted = false;
        for (size_t i = 0; i < rest.n; i++) {
            bool dot = rest.p[i] == '_' && !dotted;
            path[i] = dot ? '.' : ascii_lower(rest.p[i]);
            dotted |= dot;
        }
        const struct option *near = option_nearest(slice_of(path, rest.n));
        if (near)
            option_variable(near, variable);
    }
    int shown = (int)(name.n < 128 ? name.n : 128);
    if (variable[0])
        problems_add(problems, "%.*s: unknown variable; did you mean %s?", shown, name.p, variable);
    else
        problems_add(problems, "%.*s: unknown variable; retryd.yaml(5) lists all options", shown,
                     name.p);
}

bool envsrc_read(char *const *env, struct settings *s, struct problems *problems)
{
    size_t problems_before = problems->n;
    for (; *env; env++) {
        struct slice all = slice_str(*env);
        size_t eq = slice_index(all, '=');
        struct slice name = slice_of(all.p, eq);
        if (eq == all.n || !slice_starts(name, SLICE("RETRYD_")) || is_foreign(name))
            continue;
        const struct option *o = find_variable(name);
        if (!o) {
            unknown(name, problems);
            continue;
        }
        char origin[OPTION_VARIABLE_MAX];
        option_variable(o, origin);
        settings_add(s, slice_str(o->path), slice_of(all.p + eq + 1, all.n - eq - 1), SETTING_ENV,
                     origin, 0);
    }
    return problems->n == problems_before;
}
