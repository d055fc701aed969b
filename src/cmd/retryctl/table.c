/* Those that somebody waits for first, then those that changed last. */
#include "cmd/retryctl/table.h"
#include "core/base/xalloc.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

struct row {
    const char *client, *id;
    double tokens, capacity;
    bool limited;
    double send_tokens, rate_limit, rate_measured;
    double throttles, waiting;
    double changed_s; /* infinite: never */
};

static double number(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_number(v) ? json_number_value(v) : INFINITY;
}

static const char *text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s != NULL ? s : "?";
}

static struct row read_row(const json_t *o)
{
    const json_t *quota = json_object_get(o, "quota"), *send = json_object_get(o, "send");
    return (struct row){
        .client = text(o, "client"),
        .id = text(o, "id"),
        .tokens = number(quota, "tokens"),
        .capacity = number(quota, "capacity"),
        .limited = json_is_true(json_object_get(send, "limited")),
        .send_tokens = number(send, "tokens"),
        .rate_limit = number(send, "rate_limit"),
        .rate_measured = number(send, "rate_measured"),
        .throttles = number(o, "throttles"),
        .waiting = number(o, "waiting"),
        .changed_s = number(o, "changed_s"),
    };
}

static int by_interest(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->waiting != y->waiting)
        return x->waiting > y->waiting ? -1 : 1;
    if (x->changed_s != y->changed_s)
        return x->changed_s < y->changed_s ? -1 : 1;
    return strcmp(x->client, y->client);
}

/* Columns that UTF-8 text takes; the labels have no wide characters of their own making. */
static int columns(const char *s)
{
    int n = 0;
    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void pad(FILE *to, const char *s, int width)
{
    int n = columns(s);
    fprintf(to, "%s%*s", s, n < width ? width - n : 0, "");
}

static const char *age(double s, char out[24])
{
    if (!isfinite(s))
        return "-";
    if (s < 60)
        snprintf(out, 24, "%.1fs", s);
    else if (s < 3600)
        snprintf(out, 24, "%.0fm%02.0fs", floor(s / 60), floor(fmod(s, 60)));
    else
        snprintf(out, 24, "%.0fh%02.0fm", floor(s / 3600), floor(fmod(s, 3600) / 60));
    return out;
}

static void print_row(FILE *to, const struct row *r, int width)
{
    char quota[32] = "-", send[32] = "-", when[24];
    if (r->capacity > 0)
        snprintf(quota, sizeof quota, "%.0f/%.0f", r->tokens, r->capacity);
    if (r->limited)
        snprintf(send, sizeof send, "%.1f/%.1f", r->send_tokens, r->rate_limit);
    pad(to, r->client, width);
    fprintf(to, "  %11s  %13s  %10.1f  %9.0f  %7.0f  %8s  %s\n", quota, send, r->rate_measured,
            r->throttles, r->waiting, age(r->changed_s, when), r->id);
}

bool table_print(FILE *to, struct slice json)
{
    json_t *root = json_loadb(json.p, json.n, 0, NULL);
    const json_t *list = json_object_get(root, "budgets");
    size_t n = json_array_size(list);
    int width = (int)sizeof "CLIENT" - 1;
    if (!json_is_array(list)) {
        json_decref(root);
        return false;
    }
    struct row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        rows[i] = read_row(json_array_get(list, i));
        if (columns(rows[i].client) > width)
            width = columns(rows[i].client);
    }
    qsort(rows, n, sizeof *rows, by_interest);
    pad(to, "CLIENT", width);
    fprintf(to, "  %11s  %13s  %10s  %9s  %7s  %8s  %s\n", "QUOTA", "SEND/S", "MEASURED/S",
            "THROTTLES", "WAITING", "CHANGED", "ID");
    for (size_t i = 0; i < n; i++)
        print_row(to, &rows[i], width);
    if (json_is_true(json_object_get(root, "truncated")))
        fputs("(there are more)\n", to);
    free(rows);
    json_decref(root);
    return true;
}
