/* XML error bodies through expat (retry-semantics §3.3, §3.6; security requirement E10): the direct
 * child Code of the three shapes, and what the root element is. A DOCTYPE stops the reader, so that
 * there are no entities to resolve and nothing to load; so does nesting beyond ERRXML_DEPTH_MAX. */
#ifndef RETRYD_CORE_AWS_ERRXML_H
#define RETRYD_CORE_AWS_ERRXML_H

#include "core/aws/errcode.h"

enum { ERRXML_DEPTH_MAX = 32 };

/* Works on prefixes: a code counts as soon as its element is closed. On the arena. */
void errxml_read(struct slice body, struct arena *a, struct errcode *out);

#endif
