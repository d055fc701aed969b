/* Files that people write: small, or refused. */
#include "io/sources/readfile.h"
#include "core/base/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int readfile_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Into a buffer one byte longer than allowed, so that growth since any check of the size shows. */
static bool fill(int fd, char *buffer, size_t *n)
{
    for (*n = 0; *n <= READFILE_MAX_BYTES;) {
        ssize_t got = read(fd, buffer + *n, READFILE_MAX_BYTES + 1 - *n);
        if (got == 0)
            return true;
        if (got > 0)
            *n += (size_t)got;
        else if (errno != EINTR)
            return false;
    }
    errno = EFBIG;
    return false;
}

char *readfile_all(int fd, size_t *n)
{
    char *text = xmalloc(READFILE_MAX_BYTES + 1);
    if (fill(fd, text, n))
        return text;
    int failed = errno;
    free(text);
    errno = failed;
    return NULL;
}
