/* retryd.yaml -> settings, through libyaml's event interface (security requirement K5): anchors,
 * aliases, tags, duplicate keys, depth over 16, more than 1 MiB are problems with file and line. */
#ifndef RETRYD_IO_SOURCES_YAMLSRC_H
#define RETRYD_IO_SOURCES_YAMLSRC_H

#include "core/config/settings.h"

/* Adds the file's scalars to s; false with at least one problem. Refuses a file that is
 * world-writable or owned by another user than root or us. */
bool yamlsrc_file(const char *path, struct settings *s, struct problems *problems);
/* The same from memory, for tests and fuzzing; name is what problems call it. */
bool yamlsrc_text(struct slice text, const char *name, struct settings *s,
                  struct problems *problems);

#endif
