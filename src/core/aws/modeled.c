/* The modeled errors of a service (retry-semantics §2.5): the run of rows that carry its signing
 * name. Names and codes are two arrays of one table, so that a run is a code table as it stands. */
#include "core/aws/aws.h"

#include "core/base/attr.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define MODELED(name, code, class) TEXT(name),
static const struct slice names[] = {
#include "core/aws/modeled_errors.def"
};
#undef MODELED

#define MODELED(name, code, class) {TEXT(code), RETRY_##class},
static const struct retry_code codes[] = {
#include "core/aws/modeled_errors.def"
};

/* The first row whose name is not below. */
static size_t lower_bound(struct slice name)
{
    size_t lo = 0, hi = ARRAY_LEN(names);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (slice_cmp(names[mid], name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct retry_codes aws_modeled_codes(const struct aws_target *t)
{
    struct slice name = t->signing_name;
    if (name.n == 0 && t->service)
        name = t->service->signing_name;
    size_t first = lower_bound(name), end = first;
    while (end < ARRAY_LEN(names) && slice_eq(names[end], name))
        end++;
    return (struct retry_codes){codes + first, end - first};
}
