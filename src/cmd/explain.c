/* retryd explain: the verb. Exit 0 with an explanation, whatever it says; 2 when the command line,
 * the input or the configuration cannot be used. */
#include "cmd/explain.h"

#include "cmd/cmd.h"
#include "cmd/load.h"

#include <time.h>

static int usage(FILE *err)
{
    fputs("usage: retryd explain [-c FILE] [--set PATH=VALUE]... [-D NAME=VALUE]... [--attempt N]\n"
          "         [--listener NAME] [--json] [--failure KIND] --raw FILE|-\n"
          "       retryd explain ... --host HOST [--method METHOD] [--path TARGET]\n"
          "         [--header 'Name: value']... --status N [--response-header 'Name: value']...\n"
          "         [--body FILE|-]\n",
          err);
    return 2;
}

static int explain(const struct explain_args *args, const struct config *c,
                   const struct explain_world *w, struct arena *a)
{
    struct explain_case x;
    struct err why = {""};
    if (!explain_input(args, w->in, a, &x, &why)) {
        fprintf(w->err, "retryd explain: %s\n", why.text);
        return 2;
    }
    struct explanation *e = arena_alloc(a, sizeof *e);
    explain_judge(&x, c, w->now_s, a, e);
    if (args->json)
        explain_json(e, w->out);
    else
        explain_text(e, w->out);
    return 0;
}

static void print_problems(const struct problems *p, const char *prefix, FILE *err)
{
    for (size_t i = 0; i < p->n; i++)
        fprintf(err, "%s%s\n", prefix, p->v[i].text);
}

int explain_main(int argc, char **argv, const struct explain_world *w)
{
    struct arena a;
    struct explain_args args;
    struct load_result r = {.switches = NULL};
    struct err why = {""};
    char **rest;
    int n, status = 2;
    arena_init(&a);
    if (!explain_args_read(argc, argv, &a, &args, &n, &rest, &why)) {
        fprintf(w->err, "retryd explain: %s\n", why.text);
        arena_fini(&a);
        return 2;
    }
    (void)load_config(n, rest, &r);
    print_problems(&r.notes, "note: ", w->err);
    print_problems(&r.problems, "", w->err);
    /* An operand may be a header field without its option: it is not repeated. */
    bool operand = !r.usage && r.first_operand < n;
    if (operand)
        fputs("retryd explain: takes options only\n", w->err);
    if (r.usage || operand || argc == 1)
        status = usage(w->err);
    else if (r.config)
        status = explain(&args, r.config, w, &a);
    load_fini(&r);
    arena_fini(&a);
    return status;
}

int cmd_explain(int argc, char **argv)
{
    const struct explain_world w = {stdin, stdout, stderr, time(NULL)};
    return explain_main(argc, argv, &w);
}
