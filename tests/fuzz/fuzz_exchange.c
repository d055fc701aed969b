/* The exchange machine under event sequences chosen by the fuzzer: each input byte decides one
 * choice of the hostile environment, whose assertions are the oracle. */
#include "../unit/core/exchange/hostile.h"

struct bytes {
    const uint8_t *p;
    size_t n;
};

static unsigned pick(void *arg, unsigned n)
{
    struct bytes *in = arg;
    unsigned v = 0;
    for (unsigned range = n; range > 1 && in->n > 0; range >>= 8) {
        v = v << 8 | *in->p++;
        in->n--;
    }
    return v % n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    struct hostile h;
    struct xch_acts acts;
    hostile_init(&h, (struct picker){pick, &in});
    while (!h.finished)
        hostile_feed(&h, in.n > 0 ? hostile_next(&h) : XEV_CLIENT_GONE, &acts);
    hostile_feed(&h, XEV_CLIENT_GONE, &acts);
    return 0;
}
