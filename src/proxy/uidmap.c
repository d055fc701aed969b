/* The map of this process's user namespace. */
#include "proxy/uidmap.h"
#include "core/base/num.h"

#include <fcntl.h>
#include <unistd.h>

enum { MAP_BYTES_MAX = 4096 };

/* The next number of a line whose columns are filled up with spaces. */
static bool next_number(struct slice *line, uint64_t *out)
{
    struct slice rest = slice_trim(*line);
    size_t n = slice_index(rest, ' ');
    *line = slice_of(rest.p + n, rest.n - n);
    return num_u64(slice_of(rest.p, n), 10, UINT32_MAX, out);
}

bool uidmap_has(struct slice map, uint32_t uid)
{
    struct slice line;
    for (bool done = false; slice_next(&map, '\n', &line, &done);) {
        uint64_t inside, outside, count;
        if (next_number(&line, &inside) && next_number(&line, &outside) &&
            next_number(&line, &count) && uid >= inside && uid - inside < count)
            return true;
    }
    return false;
}

bool uidmap_knows(uint32_t uid)
{
    char text[MAP_BYTES_MAX];
    int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    return n <= 0 || uidmap_has(slice_of(text, (size_t)n), uid);
}
