/* retryd config: what is in effect and where it comes from; retryd check: is it good? Exit 0, or 2
 * where the configuration or the command line is bad. */
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "proxy/entrance.h"
#include "proxy/ways.h"

#include <stdio.h>

static void print_line(void *arg, const char *text)
{
    (void)arg;
    puts(text);
}

static void print_effective(void *arg, const struct effective_line *line)
{
    (void)arg;
    printf("%s: %s  # %s\n", line->name, line->value, line->origin);
}

/* Whether requests to the service can meet the rule, and also miss it. */
static bool depends(const struct rule *r, struct slice service)
{
    bool for_service = r->n_services == 0;
    for (size_t i = 0; i < r->n_services; i++)
        for_service |= slice_eq(r->services[i], service);
    return for_service && !rule_has(r, profile) &&
           r->n_operations + r->n_listeners + r->n_regions + r->n_methods + r->n_hosts +
                   r->n_access_keys >
               0;
}

/* A request to the service of which no more is known; and which rules act if more is. */
static void show_service(const struct config *c, struct slice name)
{
    struct aws_target t = {.is_aws = true, .service_name = name};
    struct request_facts facts = {.target = &t, .method = HTTP_GET};
    struct effective e;
    t.service = aws_service_by_name(name);
    if (t.service)
        t.signing_name = t.service->signing_name;
    config_effective(c, &facts, &e);
    printf("service: %.*s\n", SLICE_FMT(name));
    config_effective_show(c, &facts, &e, print_effective, NULL);
    for (size_t i = 0; i < c->n_rules; i++) {
        char where[ORIGIN_TEXT_MAX];
        if (e.rule && c->rules[i].number > e.rule->number)
            return;
        origin_text(&c->rules[i].where, where);
        if (depends(&c->rules[i], name))
            printf("# other values for requests that rules[%u] matches (%s)\n", c->rules[i].number,
                   where);
    }
}

static void note_unknown(const char *service)
{
    struct slice near;
    if (config_service_known(slice_str(service), &near))
        return;
    fprintf(stderr, "note: no service is known as \"%s\"", service);
    if (near.n)
        fprintf(stderr, "; did you mean %.*s?", SLICE_FMT(near));
    fputs("\n", stderr);
}

/* Good, or 2 after all problems. */
static int status_of(const struct load_result *r)
{
    load_print_notes(r);
    if (r->config)
        return 0;
    load_print_problems(r);
    return 2;
}

static bool takes_no_operand(const struct load_result *r, int argc, char **argv)
{
    if (r->usage || r->first_operand == argc)
        return true;
    fprintf(stderr, "%s: unexpected; name the file with -c\n", argv[r->first_operand]);
    return false;
}

int cmd_config(int argc, char **argv)
{
    bool show = false; /* what it does anyway */
    const char *service = NULL;
    const struct load_switch switches[] = {
        {.name = "--show", .seen = &show}, {.name = "--service", .value = &service}, {NULL}};
    struct load_result r = {.switches = switches};
    (void)load_config(argc, argv, &r);
    int status = takes_no_operand(&r, argc, argv) ? status_of(&r) : 2;
    if (r.usage)
        fputs("usage: retryd config [-c FILE] [--set PATH=VALUE]... [-D NAME=VALUE]... [--show] "
              "[--service NAME]\n",
              stderr);
    if (status == 0 && service) {
        note_unknown(service);
        show_service(r.config, slice_str(service));
    } else if (status == 0) {
        config_show(&r.settings, print_line, NULL);
    }
    load_fini(&r);
    return status;
}

/* Warnings are no reason to call a configuration bad. */
static void print_warnings(const struct config *c)
{
    struct problems warnings = {0};
    config_warn(c, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        printf("warning: %s\n", warnings.v[i].text);
    problems_fini(&warnings);
}

/* Whether the files of trust and secrets can be used: a warning, since the user and the machine of
 * the daemon may be others. */
static void try_files(const struct config *c)
{
    struct err err = {""};
    struct ways *w = ways_new(c, NULL, &err);
    if (w == NULL)
        printf("warning: retryd would not start here: %s\n", err.text);
    ways_free(w);
    for (size_t i = 0; i < c->n_listeners; i++) {
        struct entrance e = {.rules = c->listeners[i]};
        if (!entrance_prepare(&e, &err))
            printf("warning: retryd would not start here: %s\n", err.text);
        entrance_fini(&e);
    }
}

int cmd_check(int argc, char **argv)
{
    bool show = false;
    const struct load_switch switches[] = {{.name = "--show", .seen = &show}, {NULL}};
    struct load_result r = {.switches = switches};
    (void)load_config(argc, argv, &r);
    int status = takes_no_operand(&r, argc, argv) ? status_of(&r) : 2;
    if (r.usage)
        fputs("usage: retryd check [-c FILE] [--set PATH=VALUE]... [-D NAME=VALUE]... [--show]\n",
              stderr);
    if (status == 0 && show) {
        config_show(&r.settings, print_line, NULL);
    } else if (status == 0) {
        print_warnings(r.config);
        try_files(r.config);
        printf("%s: ok\n", r.file ? r.file : "built-in defaults");
    }
    load_fini(&r);
    return status;
}
