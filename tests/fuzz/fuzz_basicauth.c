/* Basic credentials. Oracle: what was accepted, encoded anew, is the field value without its
 * spaces. */
#include "core/base/attr.h"
#include "core/http/basicauth.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static size_t encode(const char *p, size_t n, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t k = 0;
    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (i + j < n ? (unsigned char)p[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            out[k++] = i + j <= n ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char buf[BASICAUTH_MAX + 1], again[BASICAUTH_MAX * 2];
    struct slice name, password;
    char *copy = malloc(size ? size : 1); /* so that a read behind it is noticed */
    if (size)
        memcpy(copy, input, size);
    struct slice value = slice_of(copy, size);
    if (basicauth_read(value, buf, &name, &password)) {
        ASSERT(name.p == buf && password.p == buf + name.n + 1);
        ASSERT(name.n + 1 + password.n <= BASICAUTH_MAX);
        ASSERT(strlen(name.p) == name.n && strlen(password.p) == password.n);
        buf[name.n] = ':';
        size_t n = encode(buf, name.n + 1 + password.n, again);
        value = slice_trim(value);
        ASSERT(slice_eq(slice_trim(slice_of(value.p + 6, value.n - 6)), slice_of(again, n)));
    }
    free(copy);
    return 0;
}
