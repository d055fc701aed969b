/* The verbs, one row each. */
#include "cmd/cmd.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("retryd " RETRYD_VERSION);
    return 0;
}

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"run", cmd_run, "run [-c FILE] [--set PATH=VALUE]...       the proxy, in the foreground"},
    {"exec", cmd_exec,
     "exec [--summary|--timeline] -- COMMAND...  a command behind a proxy of its own"},
    {"env", cmd_env,
     "env [-c FILE]                              the variables that point a shell at the proxy"},
    {"check", cmd_check,
     "check [-c FILE] [--show]                   is the configuration good, what does it come to"},
    {"config", cmd_config,
     "config --show [--service NAME]             every effective value and where it comes from"},
    {"explain", cmd_explain,
     "explain --raw FILE|- | --host NAME ...     would this answer be retried, and why"},
    {"simulate", cmd_simulate,
     "simulate FILE...                           what the engine does with recorded sequences"},
    {"version", cmd_version, "version"},
};

static int usage(FILE *to)
{
    fputs("usage: retryd VERB ...\n", to);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        fprintf(to, "  %s\n", verbs[i].help);
    fputs("see retryd(8), retryd.yaml(5), retryd-vectors(5)\n", to);
    return to == stdout ? 0 : 2;
}

/* `retryd run --help`: the list says what there is, retryd(8) the rest. */
static bool asks_for_help(int argc, char **argv)
{
    return argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);
}

int cmd_main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--version") == 0)
        return cmd_version(argc - 1, argv + 1);
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return usage(stdout);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return asks_for_help(argc, argv) ? usage(stdout) : verbs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "retryd: %s: no such verb\n", argv[1]);
    return usage(stderr);
}
