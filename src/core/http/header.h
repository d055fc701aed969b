/* Field lines: an ordered list that keeps the original spelling, and small readers of values. */
#ifndef RETRYD_CORE_HTTP_HEADER_H
#define RETRYD_CORE_HTTP_HEADER_H

#include "core/base/arena.h"
#include "core/base/slice.h"
#include <stdbool.h>
#include <stddef.h>

struct header_field {
    struct slice name, value;
};

struct header_list {
    struct header_field *v;
    size_t n, cap;
};

/* Appends on the arena. The caller has bounded the count before (h1 head limits). */
void header_add(struct header_list *l, struct arena *a, struct slice name, struct slice value);

/* Value of the first field of that name (any case), or NULL p when absent. */
struct slice header_get(const struct header_list *l, struct slice name);
/* How many field lines carry the name. */
size_t header_count(const struct header_list *l, struct slice name);
bool header_has(const struct header_list *l, struct slice name);

/* Replaces the value of the first field of that name, place and spelling kept; appends when absent.
 */
void header_set(struct header_list *l, struct arena *a, struct slice name, struct slice value);

/* True if the comma separated lists of all fields of that name hold the token (any case). */
bool header_list_has_token(const struct header_list *l, struct slice name, struct slice token);

/* Classes of bytes, one table for the whole project. */
enum {
    HTTP_TCHAR = 1,  /* RFC 9110 5.6.2 */
    HTTP_TARGET = 2, /* of a request target: 0x21-0x7E without "#" and "\\" (B5) */
    HTTP_TEXT = 4,   /* of a field value or reason: HTAB, SP, VCHAR, obs-text (B6) */
};
extern const unsigned char http_byte_class[256];

/* HTTP_TCHAR */
bool http_is_tchar(unsigned char c);
/* 1*tchar */
bool http_is_token(struct slice s);

#endif
