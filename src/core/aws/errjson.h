/* The error code of a JSON body: top-level string members code, Code, __type in that order
 * (retry-semantics §3.3; security requirement E10). */
#ifndef RETRYD_CORE_AWS_ERRJSON_H
#define RETRYD_CORE_AWS_ERRJSON_H

#include "core/aws/errcode.h"

/* whole: body is all of it, and anything but one JSON object gives no code. Otherwise what the
 * members that are there say. The code is cleaned and on the arena. */
void errjson_read(struct slice body, bool whole, struct arena *a, struct errcode *out);

#endif
