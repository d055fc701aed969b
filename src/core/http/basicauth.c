/* Basic credentials, strictly. */
#include "core/http/basicauth.h"

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648 with its padding, and with nothing hidden in the last digit. Returns how many bytes, or
 * -1. */
static int decode(struct slice text, char *out)
{
    unsigned bits = 0;
    int n = 0;
    size_t digits = text.n;
    if (text.n == 0 || text.n % 4 != 0 || text.n / 4 * 3 > BASICAUTH_MAX)
        return -1;
    while (digits > text.n - 2 && text.p[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        int d = digit_of(text.p[i]);
        if (d < 0)
            return -1;
        bits = bits << 6 | (unsigned)d;
        if (i % 4 != 0)
            out[n++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
    }
    unsigned rest = digits % 4 == 2 ? bits & 0xf : digits % 4 == 3 ? bits & 0x3 : 0;
    return rest == 0 ? n : -1;
}

bool basicauth_read(struct slice value, char buf[BASICAUTH_MAX + 1], struct slice *name,
                    struct slice *password)
{
    static const struct slice scheme = {"Basic ", 6};
    value = slice_trim(value);
    if (!slice_starts_nocase(value, scheme))
        return false;
    int n = decode(slice_trim(slice_of(value.p + scheme.n, value.n - scheme.n)), buf);
    if (n < 0)
        return false;
    struct slice all = slice_of(buf, (size_t)n);
    size_t colon = slice_index(all, ':');
    if (colon == all.n)
        return false;
    for (size_t i = 0; i < all.n; i++) {
        if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f)
            return false;
    }
    buf[colon] = buf[n] = '\0';
    *name = slice_of(buf, colon);
    *password = slice_of(buf + colon + 1, all.n - colon - 1);
    return true;
}
