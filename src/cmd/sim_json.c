/* Members of vectors: checked for presence, type, range and spelling. */
#include "cmd/sim.h"

#include <stdarg.h>

bool sim_unpack(json_t *object, const char *what, struct err *why, const char *fmt, ...)
{
    json_error_t e;
    va_list ap;
    va_start(ap, fmt);
    int bad = json_vunpack_ex(object, &e, 0, fmt, ap);
    va_end(ap);
    return bad ? err_set(why, "%s: %s", what, e.text) : true;
}

bool sim_number(json_t *j, const char *name, json_int_t min, json_int_t max, json_int_t *out,
                struct err *why)
{
    if (!j)
        return true;
    json_int_t v = json_integer_value(j);
    if (!json_is_integer(j) || v < min || v > max)
        return err_set(why,
                       "%s: must be a whole number from %" JSON_INTEGER_FORMAT
                       " to %" JSON_INTEGER_FORMAT,
                       name, min, max);
    *out = v;
    return true;
}

static bool add_line(struct header_list *out, struct arena *a, const char *name, json_t *value,
                     struct err *why)
{
    if (!json_is_string(value))
        return err_set(why, "headers: %s: must be a string or an array of strings", name);
    struct slice text = slice_of(json_string_value(value), json_string_length(value));
    header_add(out, a, slice_str(name), slice_trim(text));
    return true;
}

bool sim_headers(json_t *object, struct header_list *out, struct arena *a, struct err *why)
{
    const char *name;
    json_t *value, *line;
    size_t i;
    if (object && !json_is_object(object))
        return err_set(why, "headers: must be an object");
    json_object_foreach(object, name, value)
    {
        if (!json_is_array(value)) {
            if (!add_line(out, a, name, value, why))
                return false;
            continue;
        }
        json_array_foreach(value, i, line)
        {
            if (!add_line(out, a, name, line, why))
                return false;
        }
    }
    return true;
}
