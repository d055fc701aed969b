/* Credentials of the Basic scheme (RFC 7617). */
#ifndef RETRYD_CORE_HTTP_BASICAUTH_H
#define RETRYD_CORE_HTTP_BASICAUTH_H

#include "core/base/slice.h"

enum { BASICAUTH_MAX = 384 }; /* bytes of name, colon and password */

/* Reads "Basic BASE64" into buf; name and password lie there, both NUL-terminated. False for
 * another scheme, for what is no strict Base64, for control bytes, without a colon, and beyond the
 * bound. */
bool basicauth_read(struct slice value, char buf[BASICAUTH_MAX + 1], struct slice *name,
                    struct slice *password);

#endif
