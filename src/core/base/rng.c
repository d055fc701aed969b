/* xoshiro256** (Blackman and Vigna, public domain algorithm). */
#include "core/base/rng.h"

void rng_seed(struct rng *rng, const uint64_t seed[4])
{
    for (int i = 0; i < 4; i++)
        rng->s[i] = seed[i];
    if ((rng->s[0] | rng->s[1] | rng->s[2] | rng->s[3]) == 0)
        rng->s[0] = 1; /* the all-zero state is a fixed point */
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

static double unit(void *state)
{
    return rng_unit(state);
}

struct rng_source rng_as_source(struct rng *rng)
{
    return (struct rng_source){unit, rng};
}
