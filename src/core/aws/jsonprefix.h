/* String members of a JSON object of which perhaps only the beginning is there. */
#ifndef RETRYD_CORE_AWS_JSONPREFIX_H
#define RETRYD_CORE_AWS_JSONPREFIX_H

#include "core/base/arena.h"
#include "core/base/slice.h"
#include <stdbool.h>

enum { JSONPREFIX_DEPTH_MAX = 32 };

/* The nesting stays within JSONPREFIX_DEPTH_MAX (security requirement E10). */
bool jsonprefix_depth_ok(struct slice s);
/* raw[i]: the value of the member names[i] of the top level as written, quotes included; empty when
 * it is absent, no string, or not whole. Of a repeated member the last value counts. Stops where
 * the text ends or stops looking like an object. False: it is none. Names are short: with escapes
 * they are recognised up to 20 characters. */
bool jsonprefix_strings(struct slice s, const char *const *names, size_t n, struct slice *raw);
/* Such a value decoded, onto the arena; empty for what is no string. */
struct slice jsonprefix_decode(struct slice raw, struct arena *a);

#endif
