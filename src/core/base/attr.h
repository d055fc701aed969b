/* Compiler checks with short names, and the one assertion of the project.
 *
 * ASSERT is for broken invariants only and is always on: the worker dies, its master starts
 * another. It is never used on anything a peer, a file or a user can cause. */
#ifndef RETRYD_CORE_BASE_ATTR_H
#define RETRYD_CORE_BASE_ATTR_H

#ifdef NDEBUG
#undef NDEBUG
#endif
#include <assert.h>

#define ASSERT(x) assert(x)

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN __attribute__((noreturn))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
