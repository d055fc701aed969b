/* Text from requests that may enter logs and keys: short, and of token characters only. */
#ifndef RETRYD_CORE_AWS_PLAIN_H
#define RETRYD_CORE_AWS_PLAIN_H

#include "core/base/slice.h"

enum { PLAIN_MAX = 128 };

/* 1..PLAIN_MAX token characters (RFC 9110 tchar). */
bool plain_name(struct slice s);

/* Percent-decodes into buf. Empty when it does not fit or an escape is broken. */
struct slice plain_decode(struct slice s, char *buf, size_t size);

#endif
