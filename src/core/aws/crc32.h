/* DynamoDB's checksum of a response (retry-semantics §13.4). */
#ifndef RETRYD_CORE_AWS_CRC32_H
#define RETRYD_CORE_AWS_CRC32_H

#include "core/http/message.h"

/* x-amz-crc32 stands there once, is a CRC-32 in decimal, and is not that of the body as transferred
 * (before any content decoding). */
bool crc32_mismatch(const struct http_resp *resp, struct slice whole_body);

#endif
