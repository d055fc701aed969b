/* Error bodies. First byte of the input: what the response claims to be; the rest: its body.
 *
 * Oracles: a code has 1 to ERRCODE_MAX allowed bytes; an XML prefix gives no code or the code of
 * the whole; the reader of JSON prefixes agrees with the JSON parser on every body that is one
 * object; a complete S3 document has a root. */
#include "core/aws/errcode.h"
#include "core/base/attr.h"

#include <jansson.h>

enum { TYPE_JSON, TYPE_XML, TYPE_NONE, TYPE_CBOR, TYPES };

static const struct slice types[TYPES] = {{"application/x-amz-json-1.0", 26},
                                          {"text/xml", 8},
                                          {"text/plain", 10},
                                          {"application/cbor", 16}};

static struct errcode read_code(unsigned type, struct slice body, bool whole, struct arena *a)
{
    struct http_resp resp = {.status = 400};
    struct errcode e;
    header_add(&resp.fields, a, SLICE("content-type"), types[type]);
    errcode_read(&resp, body, whole, true, a, &e);
    ASSERT((e.code.n > 0) == (e.source != ERRCODE_NONE));
    ASSERT(e.code.n == 0 || errcode_allowed(e.code));
    return e;
}

static bool is_json_object(struct slice body)
{
    json_t *root = json_loadb(body.p, body.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    bool object = json_is_object(root);
    json_decref(root);
    return object;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > ERRCODE_BODY_MAX)
        return 0;
    struct arena a;
    arena_init(&a);
    unsigned type = data[0] % TYPES;
    struct slice body = slice_of((const char *)data + 1, size - 1);
    struct errcode whole = read_code(type, body, true, &a);
    struct errcode held = read_code(type, body, false, &a);
    if (held.source == ERRCODE_XML || whole.source == ERRCODE_XML || is_json_object(body))
        ASSERT(whole.source == held.source && slice_eq(whole.code, held.code));

    for (size_t part = 1; part < 4; part++) {
        struct errcode e = read_code(type, slice_of(body.p, body.n * part / 4), false, &a);
        if (type == TYPE_XML && e.source == ERRCODE_XML)
            ASSERT(slice_eq(e.code, held.code));
    }
    struct slice clean = errcode_clean(body);
    ASSERT(clean.n == 0 || errcode_allowed(clean));
    bool complete;
    enum xml_root root = errcode_xml_root(body, &complete);
    ASSERT(!complete || root != XML_ROOT_NONE);
    arena_fini(&a);
    return 0;
}
