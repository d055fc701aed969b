/* Parts between semicolons. */
#include "core/aws/sdkrequest.h"
#include "core/base/num.h"

struct slice sdkrequest_part(const struct header_list *fields, struct slice name)
{
    struct slice rest = header_get(fields, SLICE("amz-sdk-request")), part;
    bool done = rest.p == NULL;
    while (slice_next(&rest, ';', &part, &done)) {
        part = slice_trim(part);
        if (part.n > name.n && part.p[name.n] == '=' && slice_starts_nocase(part, name))
            return slice_of(part.p + name.n + 1, part.n - name.n - 1);
    }
    return SLICE_NONE;
}

unsigned sdkrequest_attempt(const struct header_list *fields)
{
    enum { DIGITS_MAX = 4, ATTEMPT_MAX = 9999 };
    uint64_t n;
    return num_u64(sdkrequest_part(fields, SLICE("attempt")), DIGITS_MAX, ATTEMPT_MAX, &n)
               ? (unsigned)n
               : 0;
}
