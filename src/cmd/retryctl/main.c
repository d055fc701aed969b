/* retryctl: looks at the budgets of a running retryd, and resets them, over its admin socket. */
#include "cmd/retryctl/ask.h"
#include "cmd/retryctl/table.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, BAD = 1, USAGE = 2 };

struct options {
    const char *socket;
    bool watch, json;
    const char *verb, *operand;
};

static int usage(FILE *to)
{
    fputs("usage: retryctl [-s SOCKET] VERB\n"
          "  budgets [--watch] [--json]   the quota and the limiter of every upstream client\n"
          "  reset KEY                    makes one new; KEY is its id or its name as shown\n"
          "  health                       is retryd there\n"
          "  version\n"
          "see retryctl(8)\n",
          to);
    return to == stdout ? 0 : USAGE;
}

/* Of a retryd of this user when there is one, else of the system's. */
static const char *find_socket(char out[PATH_BYTES])
{
    const struct {
        const char *base, *rest;
    } places[] = {
        {getenv("XDG_STATE_HOME"), "/retryd/admin.sock"},
        {getenv("HOME"), "/.local/state/retryd/admin.sock"},
        {"/var/lib", "/retryd/admin.sock"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i].base == NULL || places[i].base[0] != '/')
            continue;
        snprintf(out, PATH_BYTES, "%s%s", places[i].base, places[i].rest);
        if (access(out, F_OK) == 0)
            break;
    }
    return out;
}

/* Prints what the daemon says when it refuses. */
static int refused(struct slice body, unsigned status)
{
    json_t *root = json_loadb(body.p, body.n, 0, NULL);
    const char *why = json_string_value(json_object_get(root, "error"));
    fprintf(stderr, "retryctl: %s (%u)\n", why != NULL ? why : "refused", status);
    json_decref(root);
    return BAD;
}

static int show(const struct options *o, const char *target, bool as_table)
{
    struct strbuf answer;
    struct slice body;
    struct err err = {""};
    unsigned status;
    int result = 0;
    strbuf_init(&answer, ASK_ANSWER_BYTES);
    const char *method = strcmp(o->verb, "reset") == 0 ? "POST" : "GET";
    if (!ask(o->socket, method, target, &answer, &body, &status, &err)) {
        fprintf(stderr, "retryctl: %s\n", err.text);
        result = BAD;
    } else if (status != 200) {
        result = refused(body, status);
    } else if (!as_table) {
        fwrite(body.p, 1, body.n, stdout);
    } else if (!table_print(stdout, body)) {
        fputs("retryctl: not an answer of retryd\n", stderr);
        result = BAD;
    }
    strbuf_fini(&answer);
    return result;
}

static int budgets(const struct options *o)
{
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        if (o->watch && !o->json && isatty(STDOUT_FILENO))
            fputs("\033[H\033[2J", stdout);
        int result = show(o, "/budgets", !o->json);
        if (!o->watch || result != 0 || fflush(stdout) != 0)
            return result;
        nanosleep(&second, NULL);
    }
}

static int reset(const struct options *o)
{
    struct strbuf target;
    strbuf_init(&target, 1024);
    strbuf_put(&target, SLICE("/budgets/reset?key="));
    for (const char *p = o->operand; *p != '\0'; p++)
        strbuf_printf(&target, "%%%02X", (unsigned char)*p);
    strbuf_putc(&target, '\0');
    int result = USAGE;
    if (target.overflow)
        fputs("retryctl: that is no key\n", stderr);
    else
        result = show(o, target.p, false);
    strbuf_fini(&target);
    return result;
}

static bool read_arguments(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            o->socket = argv[++i];
        else if (strcmp(argv[i], "--watch") == 0)
            o->watch = true;
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (o->verb == NULL && (argv[i][0] != '-' || strcmp(argv[i], "--version") == 0 ||
                                     strcmp(argv[i], "--help") == 0))
            o->verb = argv[i];
        else if (o->verb != NULL && o->operand == NULL && argv[i][0] != '-')
            o->operand = argv[i];
        else
            return false;
    }
    return o->verb != NULL;
}

int main(int argc, char **argv)
{
    struct options o = {NULL};
    char found[PATH_BYTES];
    if (!read_arguments(argc, argv, &o))
        return usage(stderr);
    const char *verb = strncmp(o.verb, "--", 2) == 0 ? o.verb + 2 : o.verb;
    bool takes_operand = strcmp(verb, "reset") == 0, is_budgets = strcmp(verb, "budgets") == 0;
    if (takes_operand != (o.operand != NULL) || (!is_budgets && (o.watch || o.json)))
        return usage(stderr);
    if (o.socket == NULL)
        o.socket = find_socket(found);
    if (is_budgets)
        return budgets(&o);
    if (takes_operand)
        return reset(&o);
    if (strcmp(verb, "health") == 0)
        return show(&o, "/healthz", false);
    if (strcmp(verb, "help") == 0)
        return usage(stdout);
    if (strcmp(verb, "version") != 0)
        return usage(stderr);
    puts("retryctl " RETRYD_VERSION);
    return 0;
}
