/* The error code of a CBOR body: the top-level text member __type (retry-semantics §3.3; RFC 8949;
 * security requirement E10). */
#ifndef RETRYD_CORE_AWS_ERRCBOR_H
#define RETRYD_CORE_AWS_ERRCBOR_H

#include "core/aws/errcode.h"

/* The top-level map is the first level. */
enum { ERRCBOR_DEPTH_MAX = 32 };

/* whole: body is all of it, and anything but one well-formed map gives no code. Otherwise what the
 * members say that are complete in the prefix, if it is well-formed up to its end. The code is
 * cleaned and on the arena. */
void errcbor_read(struct slice body, bool whole, struct arena *a, struct errcode *out);

#endif
