/* Content codings of response bodies, undone for reading only: gzip and deflate (RFC 1950 to 1952;
 * RFC 9110 8.4; security requirement E10). */
#ifndef RETRYD_CORE_AWS_CODING_H
#define RETRYD_CORE_AWS_CODING_H

#include "core/base/strbuf.h"
#include "core/http/header.h"
#include <stdint.h>

enum { CODING_OUT_MAX = 256 * 1024 };

enum coding {
    CODING_IDENTITY,
    CODING_GZIP,
    CODING_DEFLATE,
    CODING_UNKNOWN, /* another one, or more than one */
};

enum coding coding_of(const struct header_list *fields);

/* A body as it reads; text is of the body itself or of mem. */
struct coding_text {
    struct slice text;
    bool whole; /* all of what the body says; else a prefix */
};

/* Undoes the coding. Stops at CODING_OUT_MAX, and where the stream breaks; a body that is not coded
 * at all is read as it is. Of an unknown coding nothing can be read. mem: from strbuf_init with
 * CODING_OUT_MAX, freed by the caller. */
struct coding_text coding_undo(enum coding c, struct slice body, bool whole, struct strbuf *mem);

#endif
