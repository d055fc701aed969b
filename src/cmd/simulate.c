/* retryd simulate: the verb. Reads files, picks their format, runs their vectors, counts.
 *
 * Exit status: 0 all passed, 1 some failed, 2 the command line, a file or a vector could not be
 * understood (which wins over 1). What could be run is run all the same. */
#include "cmd/cmd.h"
#include "cmd/sim.h"

#include <errno.h>

struct sim {
    FILE *out, *err;
    bool core_only;
    unsigned passed, failed, skipped;
    bool bad;
};

/* Names become words of the output, one vector a line. */
static bool is_plain_name(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return n > 0 && n <= 200;
}

/* Every vector has a name of its own and a level; the rest belongs to its format. */
static bool read_head(json_t *vector, json_t *names, const char **name, bool *extended,
                      struct err *why)
{
    const char *level = "core";
    json_error_t e;
    if (json_unpack_ex(vector, &e, 0, "{s:s, s?s}", "name", name, "level", &level) != 0)
        return err_set(why, "%s", e.text);
    if (!is_plain_name(*name))
        return err_set(why, "name: 1 to 200 printable ASCII characters without blanks");
    *extended = strcmp(level, "extended") == 0;
    if (!*extended && strcmp(level, "core") != 0)
        return err_set(why, "%s: level: \"core\" or \"extended\"", *name);
    if (json_object_get(names, *name))
        return err_set(why, "%s: the name is taken by an earlier vector", *name);
    json_object_set(names, *name, json_true());
    return true;
}

static void run_vector(struct sim *s, const struct sim_format *format, json_t *vector,
                       json_t *names, const char *file, size_t index)
{
    const char *name = NULL;
    bool extended = false;
    struct err why = {""};
    if (!read_head(vector, names, &name, &extended, &why)) {
        fprintf(s->err, "%s: vector %zu: %s\n", file, index + 1, why.text);
        s->bad = true;
        return;
    }
    if (extended && s->core_only) {
        s->skipped++;
        return;
    }
    struct arena a;
    arena_init(&a);
    switch (format->run(vector, &a, &why)) {
    case SIM_OK:
        s->passed++;
        fprintf(s->out, "ok %s\n", name);
        break;
    case SIM_FAIL:
        s->failed++;
        fprintf(s->out, "FAIL %s: %s\n", name, why.text);
        break;
    case SIM_BAD:
        s->bad = true;
        fprintf(s->err, "%s: vector %zu: %s: %s\n", file, index + 1, name, why.text);
        break;
    }
    arena_fini(&a);
}

static const struct sim_format *format_of(json_t *file, json_t **vectors, struct err *why)
{
    static const struct sim_format *const formats[] = {&sim_standard_21, &sim_standard_20,
                                                       &sim_legacy, &sim_classify, &sim_adaptive};
    const char *name;
    json_error_t e;
    if (json_unpack_ex(file, &e, 0, "{s:s, s:o}", "format", &name, "vectors", vectors) != 0) {
        err_set(why, "%s", e.text);
        return NULL;
    }
    if (!json_is_array(*vectors)) {
        err_set(why, "vectors: must be an array");
        return NULL;
    }
    err_set(why, "format \"%s\" cannot be run", name);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(formats[i]->name, name) == 0 && formats[i]->accepts(file, why))
            return formats[i];
    return NULL;
}

static void run_document(struct sim *s, json_t *document, const char *file)
{
    json_t *vectors = NULL;
    struct err why = {""};
    const struct sim_format *format = format_of(document, &vectors, &why);
    if (!format) {
        fprintf(s->err, "%s: %s\n", file, why.text);
        s->bad = true;
        return;
    }
    json_t *names = json_object(), *vector;
    size_t index;
    json_array_foreach(vectors, index, vector)
    {
        run_vector(s, format, vector, names, file, index);
    }
    json_decref(names);
}

static void run_file(struct sim *s, const char *file)
{
    FILE *f = fopen(file, "re");
    if (!f) {
        fprintf(s->err, "%s: %s\n", file, strerror(errno));
        s->bad = true;
        return;
    }
    json_error_t e;
    json_t *document = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
    if (ferror(f)) {
        fprintf(s->err, "%s: %s\n", file, strerror(errno));
        s->bad = true;
    } else if (!document) {
        fprintf(s->err, "%s:%d:%d: %s\n", file, e.line, e.column, e.text);
        s->bad = true;
    } else {
        run_document(s, document, file);
    }
    json_decref(document);
    fclose(f);
}

/* Index of the first file, or -1 when the command line makes no sense. */
static int read_options(int argc, const char *const *argv, struct sim *s)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--level") != 0 || i + 1 == argc)
            return -1;
        i++;
        s->core_only = strcmp(argv[i], "core") == 0;
        if (!s->core_only && strcmp(argv[i], "extended") != 0)
            return -1;
    }
    return i < argc ? i : -1;
}

int sim_main(int argc, const char *const *argv, FILE *out, FILE *err)
{
    struct sim s = {.out = out, .err = err};
    int first = read_options(argc, argv, &s);
    if (first < 0) {
        fputs("usage: retryd simulate [--level core|extended] FILE...\n", err);
        return 2;
    }
    for (int i = first; i < argc; i++)
        run_file(&s, argv[i]);
    fprintf(out, "%u passed, %u failed, %u skipped\n", s.passed, s.failed, s.skipped);
    if (s.bad)
        return 2;
    return s.failed > 0;
}

int cmd_simulate(int argc, char **argv)
{
    return sim_main(argc, (const char *const *)argv, stdout, stderr);
}
