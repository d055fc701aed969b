/* tests/vectors/classify.json through the whole room: request to target to policy, response to
 * code, both to a class. Left out: what other readers than header, JSON and XML are needed for, and
 * the options of level "extended". */
#include "core/aws/aws.h"
#include "core/aws/errcode.h"
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

static bool in_scope(const json_t *vector)
{
    const json_t *response = json_object_get(vector, "response");
    const json_t *headers = json_object_get(response, "headers");
    return strcmp(text(vector, "level"), "core") == 0 &&
           strcmp(text(headers, "content-type"), "application/cbor") != 0 &&
           !json_object_get(headers, "x-amzn-query-error");
}

static void outcome_of(const json_t *response, enum http_method method, const struct aws_target *t,
                       struct arena *a, struct retry_outcome *o)
{
    struct http_resp resp = {.status =
                                 (unsigned)json_integer_value(json_object_get(response, "status"))};
    struct slice body = slice_str(text(response, "body"));
    struct errcode code;
    add_headers(&resp.fields, response, a);
    *o = (struct retry_outcome){.status = resp.status};
    if (resp.status == 200 && t->error_in_200) {
        bool complete;
        o->error_in_200 = errcode_xml_root(body, &complete) == XML_ROOT_ERROR;
        if (!complete)
            o->failure = RETRY_FAIL_TRUNCATED;
    }
    if (resp.status >= 300 || o->error_in_200) {
        bool has_body = method != HTTP_HEAD && resp.status != 304;
        errcode_read(&resp, body, true, has_body, a, &code);
        o->code = code.code;
    }
}

static void run_vector(const json_t *vector)
{
    const json_t *request = json_object_get(vector, "request");
    const json_t *expected = json_object_get(vector, "expected");
    const char *name = text(vector, "name");
    struct arena a;
    struct aws_target t;
    struct retry_outcome o;
    enum retry_rule rule;
    arena_init(&a);
    struct http_req req = {.method_id = method_of(text(request, "method"))};
    add_headers(&req.fields, request, &a);
    aws_identify(&req, slice_str(text(request, "host")), slice_str(text(request, "path")),
                 SLICE_NONE, &a, &t);
    outcome_of(json_object_get(vector, "response"), req.method_id, &t, &a, &o);
    struct retry_policy p = aws_policy(&t);

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
        if (!in_scope(vector))
            continue;
        run_vector(vector);
        ran++;
    }
    ck_assert_uint_ge(ran, 75);
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
