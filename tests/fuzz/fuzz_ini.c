/* An AWS configuration file -> the properties of a profile. The first line names the profile. What
 * comes out lies within the text, in the order of its lines, and a problem names a line of it. */
#include "core/base/attr.h"
#include "core/config/ini.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct slice part, struct slice text)
{
    ASSERT(part.n == 0 || (part.p >= text.p && part.p + part.n <= text.p + text.n));
    ASSERT(!memchr(part.n ? part.p : "", '\n', part.n));
    ASSERT(slice_trim(part).n == part.n);
}

static unsigned count_lines(struct slice text)
{
    unsigned n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = slice_of((const char *)data, size);
    size_t end = slice_index(all, '\n');
    struct slice profile = slice_of(all.p, end);
    struct slice text = end < size ? slice_of(all.p + end + 1, size - end - 1) : SLICE_NONE;
    struct ini in;
    struct ini_property p;
    unsigned line = 0;
    bool found = ini_open(&in, text, profile);
    ASSERT(!found || !in.problem);
    while (ini_next(&in, &p)) {
        ASSERT(found);
        ASSERT(p.line > line && p.line <= count_lines(text));
        ASSERT(p.key.n > 0);
        line = p.line;
        check_within(p.key, text);
        check_within(p.value, text);
    }
    ASSERT(!in.problem || (in.line > 0 && in.line <= count_lines(text) && in.problem[0]));
    ASSERT(!ini_next(&in, &p));
    return 0;
}
