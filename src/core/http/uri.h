/* Where a request goes: one parse result feeds policy, DNS, SNI, certificate name, pool key, budget
 * key and log (security requirements C5, I4). RFC 3986 subset, nothing repaired. */
#ifndef RETRYD_CORE_HTTP_URI_H
#define RETRYD_CORE_HTTP_URI_H

#include "core/base/slice.h"
#include <stdbool.h>
#include <stdint.h>

enum { HTTP_HOST_MAX = 253 };

enum authority_kind {
    AUTHORITY_NAME,
    AUTHORITY_IPV4, /* exactly four decimal octets without leading zeros */
    AUTHORITY_IPV6, /* was in brackets; host holds it without them, in inet_ntop form */
};

struct authority {
    enum authority_kind kind;
    char host[HTTP_HOST_MAX + 1]; /* lower case, one trailing dot removed, NUL-terminated */
    uint16_t port;                /* 1..65535, the default filled in */
    unsigned char addr[16];       /* network order, for literals */
};

/* host [":" port]. default_port 0: a port is required. False with *why (static text) on userinfo,
 * empty host, bad port (0, sign, > 65535), zone id, IPvFuture, percent or non-ASCII bytes, a label
 * over 63 or empty, a name over 253, characters outside letters, digits, "-", "_" and ".", and on
 * all-numeric or 0x forms that are not a proper dotted quad (1.2.3, 2130706433, 0x7f.1,
 * 0177.0.0.1). */
bool authority_parse(struct slice text, uint16_t default_port, struct authority *out,
                     const char **why);

/* Same host and port. */
bool authority_eq(const struct authority *a, const struct authority *b);

/* host:port with brackets for IPv6, NUL-terminated, into a buffer of AUTHORITY_TEXT_MAX. */
enum { AUTHORITY_TEXT_MAX = HTTP_HOST_MAX + 9 };
void authority_text(const struct authority *a, char out[AUTHORITY_TEXT_MAX]);

/* The forms of a request target (RFC 9112 3.2). */
enum target_form {
    TARGET_ORIGIN,    /* /path?query */
    TARGET_ABSOLUTE,  /* http://host/path */
    TARGET_AUTHORITY, /* host:port, CONNECT only */
    TARGET_ASTERISK,  /* OPTIONS * */
    TARGET_BAD,
};

struct target {
    enum target_form form;
    bool https;                 /* absolute-form scheme */
    struct authority authority; /* absolute- and authority-form */
    struct slice path_query;    /* what goes into origin-form, byte for byte, "*" for asterisk-form.
                                   An absolute-form without a path gives "/", or "?query" alone: the
                                   serializer and target_path supply the "/" in front of that */
    bool no_path;               /* absolute-form with neither path nor query: OPTIONS becomes "*"
                                   towards the origin (RFC 9112 3.2.4) */
};

/* Reads a target that the head parser already accepted. is_connect selects authority-form.
 * TARGET_BAD with *why otherwise. Only http and https schemes (any case). */
enum target_form target_parse(struct slice text, bool is_connect, struct target *out,
                              const char **why);

/* The path without the query ("/" for an empty one), and the query without "?". */
struct slice target_path(struct slice path_query);
struct slice target_query(struct slice path_query);

/* Raw (still encoded) value of the first query parameter of that exact name; NULL p when absent.
 * Works on form bodies too. */
struct slice query_param(struct slice query, struct slice name);

#endif
