/* Keyed hash for tables whose keys peers choose (security requirement J14): SipHash-1-3. */
#ifndef RETRYD_CORE_BASE_HASH_H
#define RETRYD_CORE_BASE_HASH_H

#include "core/base/slice.h"
#include <stdint.h>

struct hash_key {
    uint64_t k0, k1;
};

uint64_t hash_bytes(struct hash_key key, struct slice s);

#endif
