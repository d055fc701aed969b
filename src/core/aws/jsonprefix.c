/* One pass over the top level; values are skipped unread. */
#include "core/aws/jsonprefix.h"

#include <jansson.h>

/* NUL is legal in a string of some other member; huge integers are legal too. */
enum { LOAD_FLAGS = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY };

/* Twenty characters as \uXXXX, and the quotes: a longer key with escapes is none of ours. */
enum { KEY_RAW_MAX = 20 * 6 + 2 };

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

bool jsonprefix_depth_ok(struct slice s)
{
    unsigned depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '"')
            i = string_end(s, i) - 1;
        else if ((c == '{' || c == '[') && ++depth > JSONPREFIX_DEPTH_MAX)
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

/* Which of the names a key (with its quotes) is; n for none. */
static size_t find_name(struct slice key, const char *const *names, size_t n)
{
    char decoded[KEY_RAW_MAX];
    struct slice plain = slice_of(key.p + 1, key.n - 2);
    if (key.n <= KEY_RAW_MAX && slice_index(plain, '\\') < plain.n) {
        json_t *text = json_loadb(key.p, key.n, LOAD_FLAGS, NULL);
        plain = slice_of(decoded, json_string_length(text));
        if (plain.n > 0)
            memcpy(decoded, json_string_value(text), plain.n);
        json_decref(text);
    }
    size_t i = 0;
    while (i < n && !slice_eq(plain, slice_str(names[i])))
        i++;
    return i;
}

bool jsonprefix_strings(struct slice s, const char *const *names, size_t n, struct slice *raw)
{
    size_t i = skip_blank(s, 0);
    for (size_t m = 0; m < n; m++)
        raw[m] = SLICE_NONE;
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
        size_t m = find_name(slice_of(s.p + key, key_end - key), names, n);
        if (m < n)
            raw[m] = s.p[value] == '"' ? slice_of(s.p + value, end - value) : SLICE_NONE;
        i = skip_blank(s, end);
        if (i >= s.n || s.p[i] != ',')
            return true;
    }
}

struct slice jsonprefix_decode(struct slice raw, struct arena *a)
{
    if (raw.n == 0)
        return SLICE_NONE;
    json_t *text = json_loadb(raw.p, raw.n, LOAD_FLAGS, NULL);
    struct slice out =
        json_is_string(text)
            ? arena_copy(a, slice_of(json_string_value(text), json_string_length(text)))
            : SLICE_NONE;
    json_decref(text);
    return out;
}
