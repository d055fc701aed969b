/* Randomness as an argument: backoff jitter asks for uniform numbers in [0, 1).
 *
 * rng is xoshiro256**, seeded by the caller from the operating system and reseeded after fork
 * (security requirement E13). Tests hand in a fixed source. Not for keys or serial numbers. */
#ifndef RETRYD_CORE_BASE_RNG_H
#define RETRYD_CORE_BASE_RNG_H

#include <stdint.h>

/* The port: next uniform number in [0, 1). */
struct rng_source {
    double (*unit)(void *state);
    void *state;
};

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *rng, const uint64_t seed[4]);
uint64_t rng_u64(struct rng *rng);
double rng_unit(struct rng *rng);
/* Borrows rng for as long as the source is used. */
struct rng_source rng_as_source(struct rng *rng);

#endif
