/* x-amz-crc32. A value that is none is as no header: it says nothing about the body. */
#include "core/aws/crc32.h"

#include <zlib.h>

#include "core/base/num.h"

bool crc32_mismatch(const struct http_resp *resp, struct slice whole_body)
{
    struct slice name = SLICE("x-amz-crc32");
    uint64_t told;
    if (header_count(&resp->fields, name) != 1 ||
        !num_u64(slice_trim(header_get(&resp->fields, name)), 10, UINT32_MAX, &told))
        return false;
    return crc32_z(0, (const unsigned char *)whole_body.p, whole_body.n) != told;
}
