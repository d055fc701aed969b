/* amz-sdk-request, which SDKs send along with each of their attempts: "attempt=2; max=3; ttl=...",
 * its parts in any order. */
#ifndef RETRYD_CORE_AWS_SDKREQUEST_H
#define RETRYD_CORE_AWS_SDKREQUEST_H

#include "core/http/message.h"

/* The value of the first part of that name; SLICE_NONE: there is none. */
struct slice sdkrequest_part(const struct header_list *fields, struct slice name);
/* The client's own count of its attempts, up to 9999; 0: it does not say. Most SDKs begin with 1,
 * that for Ruby with 0. */
unsigned sdkrequest_attempt(const struct header_list *fields);

#endif
