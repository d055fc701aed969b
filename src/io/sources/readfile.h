/* Reading a whole small file, bounded and without waiting. */
#ifndef RETRYD_IO_SOURCES_READFILE_H
#define RETRYD_IO_SOURCES_READFILE_H

#include <stdbool.h>
#include <stddef.h>

/* No configuration is larger: 1 MiB. */
enum { READFILE_MAX_BYTES = 1024 * 1024 };

/* A descriptor, or -1 with errno. A FIFO does not hold up the start: it is opened, and has nothing
 * to say. */
int readfile_open(const char *path);
/* All of it, on the heap; NULL with errno, EFBIG when it is larger. */
char *readfile_all(int fd, size_t *n);

#endif
