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

#include "core/base/attr.h"

/* NUL is legal in a string of some other member; huge integers are legal too. */
enum { LOAD_FLAGS = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL };

/* "__type" with every character as \uXXXX, and the quotes: a longer key is none of ours. */
enum { KEY_RAW_MAX = 6 * 6 + 2 };

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

/* Index after the string that starts at the quote i, or n when it does not end. */
static size_t string_end(struct slice s, size_t i)
{
    for (i++; i < s.n; i++) {
        if (s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            return i + 1;
    }
    return s.n + 1;
}

static bool depth_ok(struct slice s)
{
    unsigned depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '"')
            i = string_end(s, i) - 1;
        else if ((c == '{' || c == '[') && ++depth > ERRJSON_DEPTH_MAX)
            return false;
        else if ((c == '}' || c == ']') && depth > 0)
            depth--;
    }
    return true;
}

static size_t skip_blank(struct slice s, size_t i)
{
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\r' || s.p[i] == '\n'))
        i++;
    return i;
}

/* Index after the value at i, beyond n when it does not end in the prefix. */
static size_t value_end(struct slice s, size_t i)
{
    unsigned depth = 0;
    while (i < s.n) {
        char c = s.p[i];
        if (c == '"') {
            i = string_end(s, i);
            if (depth == 0)
                return i;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return i;
        else if ((c == '}' || c == ']') && --depth == 0)
            return i + 1;
        i++;
    }
    return s.n + 1;
}

static size_t named_member(struct slice name)
{
    size_t m = 0;
    while (m < ARRAY_LEN(members) && !slice_eq(name, slice_str(members[m].name)))
        m++;
    return m;
}

/* Which member a key (with its quotes) names; ARRAY_LEN(members) for none. */
static size_t find_member(struct slice key)
{
    struct slice plain = slice_of(key.p + 1, key.n - 2);
    if (key.n > KEY_RAW_MAX || slice_index(plain, '\\') == plain.n)
        return named_member(plain);
    json_t *text = json_loadb(key.p, key.n, LOAD_FLAGS | JSON_DECODE_ANY, NULL);
    size_t m = named_member(slice_of(json_string_value(text), json_string_length(text)));
    json_decref(text);
    return m;
}

/* Collects the values of our members as written; an empty slice for a member that is absent or no
 * string. Stops where the prefix ends or stops looking like an object. False: it is none. */
static bool scan_members(struct slice s, struct slice raw[ARRAY_LEN(members)])
{
    size_t i = skip_blank(s, 0);
    if (i == s.n || s.p[i] != '{')
        return false;
    for (;;) {
        size_t key = skip_blank(s, i + 1);
        if (key >= s.n || s.p[key] != '"')
            return true;
        size_t key_end = string_end(s, key);
        size_t colon = skip_blank(s, key_end);
        if (colon >= s.n || s.p[colon] != ':')
            return true;
        size_t value = skip_blank(s, colon + 1);
        size_t end = value_end(s, value);
        if (end > s.n)
            return true;
        size_t m = find_member(slice_of(s.p + key, key_end - key));
        if (m < ARRAY_LEN(members))
            raw[m] = s.p[value] == '"' ? slice_of(s.p + value, end - value) : SLICE_NONE;
        i = skip_blank(s, end);
        if (i >= s.n || s.p[i] != ',')
            return true;
    }
}

static void read_prefix(struct slice body, struct arena *a, struct errcode *out)
{
    struct slice raw[ARRAY_LEN(members)] = {SLICE_NONE};
    out->parsed = scan_members(body, raw);
    for (size_t m = 0; m < ARRAY_LEN(members); m++) {
        if (raw[m].n == 0)
            continue;
        json_t *text = json_loadb(raw[m].p, raw[m].n, LOAD_FLAGS | JSON_DECODE_ANY, NULL);
        bool found = take_value(text, members[m].source, a, out);
        json_decref(text);
        if (found)
            return;
    }
}

void errjson_read(struct slice body, bool whole, struct arena *a, struct errcode *out)
{
    if (body.n == 0 || !depth_ok(body))
        return;
    if (whole && body.n <= ERRCODE_BODY_MAX)
        read_whole(body, a, out);
    else
        read_prefix(body, a, out);
}
