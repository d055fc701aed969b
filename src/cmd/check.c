/* retryd check: is the configuration good, and what does it come to? Exit 0 or 2. */
#include "cmd/cmd.h"
#include "cmd/load.h"

#include <stdio.h>

static void print_line(void *arg, const char *text)
{
    (void)arg;
    puts(text);
}

static int report(const struct load_result *r, bool show)
{
    if (!r->config) {
        load_print_problems(r);
        return 2;
    }
    if (show)
        config_show(&r->settings, print_line, NULL);
    else
        printf("%s: ok\n", r->file ? r->file : "built-in defaults");
    return 0;
}

int cmd_check(int argc, char **argv)
{
    bool show = false;
    const struct load_switch switches[] = {{.name = "--show", .seen = &show}, {NULL}};
    struct load_result r = {.switches = switches};
    (void)load_config(argc, argv, &r);
    int status = 2;
    if (!r.usage && r.first_operand < argc)
        fprintf(stderr, "%s: unexpected; name the file with -c\n", argv[r.first_operand]);
    else
        status = report(&r, show);
    if (r.usage)
        fputs("usage: retryd check [-c FILE] [--set PATH=VALUE]... [--show]\n", stderr);
    load_fini(&r);
    return status;
}
