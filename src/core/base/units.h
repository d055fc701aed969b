/* Units. Time inside the program is int64 nanoseconds of a monotonic clock; people and
 * configuration speak milliseconds. */
#ifndef RETRYD_CORE_BASE_UNITS_H
#define RETRYD_CORE_BASE_UNITS_H

#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define KIB ((uint64_t)1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

static inline double ns_to_ms(int64_t ns)
{
    return (double)ns / 1e6;
}

#endif
