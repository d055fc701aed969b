/* The options of `explain`: each has a value but --json, and the two for header fields may come
 * again. */
#include "cmd/explain.h"

#include <stddef.h>

enum kind { VALUE, LINES, SWITCH };

static const struct own {
    const char *name;
    enum kind kind;
    size_t field; /* of struct explain_args */
} table[] = {
    {"--host", VALUE, offsetof(struct explain_args, host)},
    {"--method", VALUE, offsetof(struct explain_args, method)},
    {"--path", VALUE, offsetof(struct explain_args, path)},
    {"--header", LINES, offsetof(struct explain_args, headers)},
    {"--status", VALUE, offsetof(struct explain_args, status)},
    {"--response-header", LINES, offsetof(struct explain_args, response_headers)},
    {"--body", VALUE, offsetof(struct explain_args, body)},
    {"--raw", VALUE, offsetof(struct explain_args, raw)},
    {"--failure", VALUE, offsetof(struct explain_args, failure)},
    {"--attempt", VALUE, offsetof(struct explain_args, attempt)},
    {"--listener", VALUE, offsetof(struct explain_args, listener)},
    {"--json", SWITCH, offsetof(struct explain_args, json)},
};

/* The option that the word is, alone or with "=VALUE"; NULL: none of ours. */
static const struct own *find(const char *word)
{
    struct slice name = slice_str(word);
    name.n = slice_index(name, '=');
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (slice_eq(name, slice_str(table[i].name)))
            return &table[i];
    return NULL;
}

static bool store(const struct own *o, struct explain_args *out, const char *value, struct err *why)
{
    char *field = (char *)out + o->field;
    if (o->kind == LINES) {
        struct explain_lines *lines = (struct explain_lines *)field;
        lines->v[lines->n++] = value;
        return true;
    }
    const char **one = (const char **)field;
    if (*one)
        return err_set(why, "%s: given twice", o->name);
    *one = value;
    return true;
}

/* argv[*i] is that option; *i moves on to the last word used. */
static bool take(const struct own *o, int argc, char **argv, int *i, struct explain_args *out,
                 struct err *why)
{
    const char *rest = argv[*i] + strlen(o->name);
    if (o->kind == SWITCH) {
        *(bool *)((char *)out + o->field) = true;
        return *rest == '\0' || err_set(why, "%s: takes no value", o->name);
    }
    if (*rest == '=')
        return store(o, out, rest + 1, why);
    if (*i + 1 == argc)
        return err_set(why, "%s: needs a value", o->name);
    return store(o, out, argv[++*i], why);
}

bool explain_args_read(int argc, char **argv, struct arena *a, struct explain_args *out,
                       int *rest_n, char ***rest, struct err *why)
{
    size_t room = ((size_t)argc + 1) * sizeof(char *);
    *out = (struct explain_args){.headers = {arena_alloc(a, room), 0},
                                 .response_headers = {arena_alloc(a, room), 0}};
    *rest = arena_alloc(a, room);
    *rest_n = 0;
    int i = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const struct own *o = i > 0 ? find(argv[i]) : NULL;
        if (!o)
            (*rest)[(*rest_n)++] = argv[i];
        else if (!take(o, argc, argv, &i, out, why))
            return false;
    }
    for (; i < argc; i++)
        (*rest)[(*rest_n)++] = argv[i];
    return true;
}
