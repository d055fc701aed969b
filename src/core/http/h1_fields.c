/* Field sections. The scan is one pass over the bytes with one table; a lone CR or LF, a control
 * byte, a fold, a missing or early colon end it at that byte. */
#include "core/http/h1_fields.h"

static enum parse refuse(struct h1_fields *st, const char *problem)
{
    st->problem = problem;
    return PARSE_BAD;
}

const char *h1_bad_byte(char c)
{
    switch (c) {
    case '\n':
        return "line feed without carriage return";
    case '\r':
        return "carriage return without line feed";
    case ' ':
    case '\t':
        return "white space out of place";
    case '\0':
        return "NUL byte";
    default:
        return (unsigned char)c < 0x20 || c == 0x7f ? "control byte" : "byte out of place";
    }
}

static const char *bad_field_byte(const struct h1_fields *st, char c)
{
    if (st->in_value || c == '\n' || c == '\0')
        return h1_bad_byte(c);
    bool at_start = st->scanned == st->line_start;
    if (c == ' ' || c == '\t')
        return at_start ? "folded field line" : "white space in or after a field name";
    if (c == ':')
        return "empty field name";
    return c == '\r' ? "field line without a colon" : "bad byte in a field name";
}

enum parse h1_fields_scan(struct h1_fields *st, const char *buf, size_t n, size_t max_fields)
{
    size_t i = st->scanned;
    for (;;) {
        unsigned char good = st->in_value ? HTTP_TEXT : HTTP_TCHAR;
        while (i < n && (http_byte_class[(unsigned char)buf[i]] & good))
            i++;
        st->scanned = i;
        if (i == n)
            return PARSE_MORE;
        if (buf[i] == '\r' && (st->in_value || i == st->line_start)) {
            if (i + 1 == n)
                return PARSE_MORE;
            if (buf[i + 1] != '\n')
                return refuse(st, h1_bad_byte('\r'));
            i += 2;
            if (!st->in_value) {
                st->scanned = i;
                return PARSE_OK;
            }
            st->in_value = false;
            st->line_start = i;
        } else if (buf[i] == ':' && !st->in_value && i > st->line_start) {
            if (st->count == max_fields) {
                st->too_many = true;
                return refuse(st, "too many fields");
            }
            st->count++;
            st->in_value = true;
            i++;
        } else {
            return refuse(st, bad_field_byte(st, buf[i]));
        }
    }
}

void h1_fields_split(struct slice section, size_t count, struct arena *a, struct header_list *out)
{
    out->v = arena_alloc(a, count * sizeof *out->v);
    out->n = out->cap = count;
    for (size_t i = 0; i < count; i++) {
        size_t colon = slice_index(section, ':');
        struct slice rest = slice_of(section.p + colon + 1, section.n - colon - 1);
        size_t end = slice_index(rest, '\r');
        out->v[i].name = slice_of(section.p, colon);
        out->v[i].value = slice_trim(slice_of(rest.p, end));
        section = slice_of(rest.p + end + 2, rest.n - end - 2);
    }
}
