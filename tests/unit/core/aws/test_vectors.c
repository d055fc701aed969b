/* tests/vectors/classify.json through the whole room: request to target to policy, response to
 * reading, both to a class. */
#include "core/aws/outcome.h"
#include "core/retry/classify.h"
#include "unit.h"

#include <jansson.h>

static const char *text(const json_t *object, const char *name)
{
    const char *s = json_string_value(json_object_get(object, name));
    return s ? s : "";
}

static void add_headers(struct header_list *l, const json_t *object, struct arena *a)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(object, "headers"), name, value)
        header_add(l, a, slice_str(name), slice_str(json_string_value(value)));
}

static enum http_method method_of(const char *name)
{
    static const struct {
        const char *name;
        enum http_method id;
    } methods[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}, {"PUT", HTTP_PUT}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(name, methods[i].name) == 0)
            return methods[i].id;
    }
    ck_abort_msg("method %s", name);
    return HTTP_OTHER;
}

/* RFC 4648 4. */
static struct slice base64(const char *text, struct arena *a)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *p = arena_alloc(a, strlen(text) + 1);
    size_t n = 0;
    unsigned bits = 0, have = 0;
    for (; *text && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        ck_assert(digit != NULL);
        bits = bits << 6 | (unsigned)(digit - digits);
        have += 6;
        if (have >= 8) {
            have -= 8;
            p[n++] = (char)(bits >> have);
        }
    }
    return slice_of(p, n);
}

static struct retry_outcome outcome_of(const json_t *response, enum http_method method,
                                       const struct aws_target *t, const struct aws_options *o,
                                       struct arena *a)
{
    struct http_resp resp = {.status =
                                 (unsigned)json_integer_value(json_object_get(response, "status"))};
    const char *coded = text(response, "body_base64");
    struct aws_response r = {.head = &resp, .whole = true};
    struct aws_reading reading;
    add_headers(&resp.fields, response, a);
    if (method != HTTP_HEAD && resp.status != 304)
        r.held = *coded ? base64(coded, a) : slice_str(text(response, "body"));
    aws_outcome(&r, t, o, a, &reading);
    return reading.outcome;
}

static void run_vector(const json_t *vector)
{
    const json_t *request = json_object_get(vector, "request");
    const json_t *expected = json_object_get(vector, "expected");
    const char *name = text(vector, "name");
    struct arena a;
    struct aws_target t;
    enum retry_rule rule;
    bool extended = strcmp(text(vector, "level"), "extended") == 0;
    const struct aws_options options = {.s3_more = extended, .crc32 = extended};
    arena_init(&a);
    struct http_req req = {.method_id = method_of(text(request, "method"))};
    add_headers(&req.fields, request, &a);
    aws_identify(&req, slice_str(text(request, "host")), slice_str(text(request, "path")),
                 SLICE_NONE, &a, &t);
    struct retry_outcome o =
        outcome_of(json_object_get(vector, "response"), req.method_id, &t, &options, &a);
    struct retry_policy p = aws_policy(&t);
    if (extended)
        p.modeled_codes = aws_modeled_codes(&t);

    ck_assert_msg(slice_eq(o.code, slice_str(text(expected, "code"))), "%s: code %.*s", name,
                  SLICE_FMT(o.code));
    const char *class = retry_class_name(classify(&p, &o, &rule));
    ck_assert_msg(strcmp(class, text(expected, "class")) == 0, "%s: class %s", name, class);
    arena_fini(&a);
}

START_TEST(classify_vectors)
{
    json_t *root = json_load_file(TEST_DATA_DIR "/vectors/classify.json", 0, NULL);
    json_t *vectors = json_object_get(root, "vectors"), *vector;
    size_t i, ran = 0;
    json_array_foreach(vectors, i, vector)
    {
        run_vector(vector);
        ran++;
    }
    ck_assert_uint_ge(ran, 91);
    json_decref(root);
}
END_TEST

static TCase *vectors(void)
{
    TCase *tc = tcase_create("vectors");
    tcase_add_test(tc, classify_vectors);
    return tc;
}

UNIT_MAIN("vectors", vectors)
