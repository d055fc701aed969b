/* The one way numbers from outside become numbers (security requirement K7). */
#ifndef RETRYD_CORE_BASE_NUM_H
#define RETRYD_CORE_BASE_NUM_H

#include "core/base/slice.h"
#include <stdint.h>

/* 1*DIGIT and nothing else, at most max_digits of them, value <= max. Leading zeros count as
 * digits. False leaves *out alone. */
bool num_u64(struct slice s, unsigned max_digits, uint64_t max, uint64_t *out);

/* 1*HEXDIG, at most max_digits, value <= max. */
bool num_hex_u64(struct slice s, unsigned max_digits, uint64_t max, uint64_t *out);

#endif
