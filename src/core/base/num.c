/* Checked numbers. */
#include "core/base/num.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse(struct slice s, unsigned base, unsigned max_digits, uint64_t max, uint64_t *out)
{
    if (s.n == 0 || s.n > max_digits)
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        int d = hex_digit(s.p[i]);
        if (d < 0 || (unsigned)d >= base)
            return false;
        if (v > (max - (unsigned)d) / base || max < (unsigned)d)
            return false;
        v = v * base + (unsigned)d;
    }
    *out = v;
    return true;
}

bool num_u64(struct slice s, unsigned max_digits, uint64_t max, uint64_t *out)
{
    return parse(s, 10, max_digits, max, out);
}

bool num_hex_u64(struct slice s, unsigned max_digits, uint64_t max, uint64_t *out)
{
    return parse(s, 16, max_digits, max, out);
}
