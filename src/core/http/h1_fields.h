/* Field sections, of heads and of trailers alike (RFC 9112 5; security requirements B2, B6).
 *
 *     *( 1*tchar ":" *text CRLF ) CRLF
 *
 * Two steps: h1_fields_scan judges bytes as they arrive, h1_fields_split cuts a whole section that
 * was judged good. Every verdict depends on bytes and their place alone, never on how they were
 * cut. */
#ifndef RETRYD_CORE_HTTP_H1_FIELDS_H
#define RETRYD_CORE_HTTP_H1_FIELDS_H

#include "core/base/arena.h"
#include "core/http/header.h"

enum parse {
    PARSE_OK,
    PARSE_MORE,
    PARSE_BAD,
};

/* Set scanned and line_start to where the section starts in the buffer. */
struct h1_fields {
    size_t scanned; /* first byte not looked at; after PARSE_OK the first one behind the section */
    size_t line_start;   /* of the line being scanned */
    size_t count;        /* field lines begun */
    bool in_value;       /* the colon of this line was seen */
    bool too_many;       /* with PARSE_BAD: max_fields was passed */
    const char *problem; /* with PARSE_BAD */
};

/* Feed the same growing buffer again after PARSE_MORE. */
enum parse h1_fields_scan(struct h1_fields *st, const char *buf, size_t n, size_t max_fields);

/* Appends the count fields of a scanned section to an empty list; the slices borrow from section.
 */
void h1_fields_split(struct slice section, size_t count, struct arena *a, struct header_list *out);

/* Why a byte is refused where field or start-line text is expected. */
const char *h1_bad_byte(char c);

#endif
