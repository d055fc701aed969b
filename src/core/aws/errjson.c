/* Two ways to the same members. A whole body goes through jansson, which judges it by the grammar.
 * Of a prefix only the top level is read here: members one after the other, values skipped unread,
 * strings of interest kept as written and decoded by jansson at the end. A repeated member counts
 * with its last value in both.
 *
 * Bounds: the nesting is counted before either sees the body, so neither recurses on what a peer
 * sends; jansson's document is many times its text, so a body that decoded to more than
 * ERRCODE_BODY_MAX is read as a prefix; the code is bounded by ERRCODE_MAX. */
#include "core/aws/errjson.h"

#include <jansson.h>

#include "core/aws/jsonprefix.h"
#include "core/base/attr.h"

/* NUL is legal in a string of some other member; huge integers are legal too. */
enum { LOAD_FLAGS = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL };

static const struct {
    const char *name;
    enum errcode_source source;
} members[] = {
    {"code", ERRCODE_JSON_CODE},
    {"Code", ERRCODE_JSON_CODE},
    {"__type", ERRCODE_JSON_TYPE},
};

static bool take(struct slice raw, enum errcode_source source, struct arena *a, struct errcode *out)
{
    struct slice code = errcode_clean(raw);
    if (code.n == 0)
        return false;
    out->code = arena_copy(a, code);
    out->source = source;
    return true;
}

static bool take_value(const json_t *value, enum errcode_source source, struct arena *a,
                       struct errcode *out)
{
    return json_is_string(value) &&
           take(slice_of(json_string_value(value), json_string_length(value)), source, a, out);
}

static void read_whole(struct slice body, struct arena *a, struct errcode *out)
{
    json_t *root = json_loadb(body.p, body.n, LOAD_FLAGS, NULL);
    out->parsed = json_is_object(root);
    for (size_t i = 0; out->parsed && i < ARRAY_LEN(members); i++) {
        if (take_value(json_object_get(root, members[i].name), members[i].source, a, out))
            break;
    }
    json_decref(root);
}

static void read_prefix(struct slice body, struct arena *a, struct errcode *out)
{
    const char *names[ARRAY_LEN(members)];
    struct slice raw[ARRAY_LEN(members)];
    for (size_t m = 0; m < ARRAY_LEN(members); m++)
        names[m] = members[m].name;
    out->parsed = jsonprefix_strings(body, names, ARRAY_LEN(members), raw);
    for (size_t m = 0; m < ARRAY_LEN(members); m++) {
        if (take(jsonprefix_decode(raw[m], a), members[m].source, a, out))
            return;
    }
}

void errjson_read(struct slice body, bool whole, struct arena *a, struct errcode *out)
{
    if (body.n == 0 || !jsonprefix_depth_ok(body))
        return;
    if (whole && body.n <= ERRCODE_BODY_MAX)
        read_whole(body, a, out);
    else
        read_prefix(body, a, out);
}
