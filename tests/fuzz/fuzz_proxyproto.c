/* PROXY protocol headers. Oracles: the verdict is final, the same whole and byte by byte, and comes
 * within the bounds; what was accepted is the same without what follows it. */
#include "core/base/attr.h"
#include "core/http/proxyproto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* A copy of exactly n bytes, so that a read behind them is noticed. */
static enum proxyproto_result read_copy(const uint8_t *input, size_t n, struct proxyproto *out)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, input, n);
    enum proxyproto_result r = proxyproto_read(slice_of(copy, n), out);
    free(copy);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct proxyproto whole, part;
    enum proxyproto_result r = read_copy(input, size, &whole), cut = PROXYPROTO_MORE;
    size_t n = 0;
    for (; cut == PROXYPROTO_MORE && n <= size; n++)
        cut = read_copy(input, n, &part);
    ASSERT(cut == r);
    ASSERT(r != PROXYPROTO_MORE || size < PROXYPROTO_V2_MAX);
    if (r != PROXYPROTO_OK)
        return 0;
    ASSERT(whole.consumed == n - 1 && whole.consumed <= PROXYPROTO_V2_MAX);
    ASSERT(whole.named == part.named && whole.ipv6 == part.ipv6 && whole.port == part.port &&
           memcmp(whole.address, part.address, sizeof whole.address) == 0);
    return 0;
}
