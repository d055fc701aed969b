/* A borrowed run of bytes: the currency of parsing. Never owns, never NUL-terminated.
 *
 * The empty slice has n == 0; its p may be NULL. "nocase" folds ASCII letters only. */
#ifndef RETRYD_CORE_BASE_SLICE_H
#define RETRYD_CORE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *p;
    size_t n;
};

#define SLICE(lit) ((struct slice){(lit), sizeof(lit) - 1})
#define SLICE_NONE ((struct slice){NULL, 0})
/* For printf: "%.*s", SLICE_FMT(s) */
#define SLICE_FMT(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct slice slice_of(const char *p, size_t n)
{
    return (struct slice){p, n};
}

/* Borrows a NUL-terminated string; NULL gives the empty slice. */
static inline struct slice slice_str(const char *s)
{
    return (struct slice){s, s ? strlen(s) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_alpha(char c)
{
    c = ascii_lower(c);
    return c >= 'a' && c <= 'z';
}

bool slice_eq_nocase(struct slice a, struct slice b);
bool slice_starts(struct slice s, struct slice prefix);
bool slice_starts_nocase(struct slice s, struct slice prefix);
bool slice_ends_nocase(struct slice s, struct slice suffix);
bool slice_has_nocase(struct slice s, struct slice needle);

/* Byte-wise order, shorter first among equals: for sorted tables. */
int slice_cmp(struct slice a, struct slice b);

/* Without leading and trailing SP and HTAB (RFC 9110 5.6.3 OWS). */
struct slice slice_trim(struct slice s);

/* First index of c, or s.n when absent. */
size_t slice_index(struct slice s, char c);

/* Cuts the next part off *rest at sep (dropped). False when *rest is used up; a trailing separator
 * yields a last empty part, the empty slice yields one empty part. Start with *done == false. */
bool slice_next(struct slice *rest, char sep, struct slice *part, bool *done);

#endif
