/* Slices: comparison, trimming and cutting. No allocation anywhere. */
#include "core/base/slice.h"

bool slice_eq_nocase(struct slice a, struct slice b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

bool slice_starts(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && slice_eq(slice_of(s.p, prefix.n), prefix);
}

bool slice_starts_nocase(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && slice_eq_nocase(slice_of(s.p, prefix.n), prefix);
}

bool slice_ends_nocase(struct slice s, struct slice suffix)
{
    return s.n >= suffix.n && slice_eq_nocase(slice_of(s.p + (s.n - suffix.n), suffix.n), suffix);
}

bool slice_has_nocase(struct slice s, struct slice needle)
{
    for (size_t i = 0; i + needle.n <= s.n; i++)
        if (slice_eq_nocase(slice_of(s.p + i, needle.n), needle))
            return true;
    return false;
}

int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = n ? memcmp(a.p, b.p, n) : 0;
    if (d != 0)
        return d;
    return (a.n > b.n) - (a.n < b.n);
}

struct slice slice_trim(struct slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

size_t slice_index(struct slice s, char c)
{
    const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;
    return hit ? (size_t)(hit - s.p) : s.n;
}

bool slice_next(struct slice *rest, char sep, struct slice *part, bool *done)
{
    if (*done)
        return false;
    size_t at = slice_index(*rest, sep);
    *part = slice_of(rest->p, at);
    if (at == rest->n) {
        *done = true;
        *rest = SLICE_NONE;
    } else {
        *rest = slice_of(rest->p + at + 1, rest->n - at - 1);
    }
    return true;
}
