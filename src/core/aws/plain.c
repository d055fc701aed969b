/* What a request may bring into logs and keys (plain.h), and percent-decoding (RFC 3986 2.1). */
#include "core/aws/plain.h"

#include "core/base/num.h"
#include "core/http/header.h"

bool plain_name(struct slice s)
{
    return s.n <= PLAIN_MAX && http_is_token(s);
}

struct slice plain_decode(struct slice s, char *buf, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            uint64_t byte;
            if (s.n - i < 3 || !num_hex_u64(slice_of(s.p + i + 1, 2), 2, 0xff, &byte))
                return SLICE_NONE;
            c = (char)byte;
            i += 2;
        }
        if (n == size)
            return SLICE_NONE;
        buf[n++] = c;
    }
    return slice_of(buf, n);
}
