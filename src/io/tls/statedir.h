/* The directory that the authority lives in: locked while open, files replaced whole, secrets only
 * from hands that may hold them (security requirement H3). */
#ifndef RETRYD_IO_TLS_STATEDIR_H
#define RETRYD_IO_TLS_STATEDIR_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include <sys/types.h>

#define STATEDIR_PRIVATE "private"

struct statedir {
    const char *path; /* borrowed, for messages */
    int fd, private_fd, lock_fd;
};

/* Makes DIR (0755, parents too) and DIR/private (0700) when they are not there, and waits for the
 * lock that processes starting at the same time take in turn. Refuses directories that others could
 * write to, or, for the private one, look into. */
bool statedir_open(struct statedir *d, const char *path, struct err *err);
void statedir_close(struct statedir *d);

enum statedir_read { STATEDIR_FOUND, STATEDIR_ABSENT, STATEDIR_REFUSED };

/* The whole file, to be freed with statedir_forget. REFUSED sets *err: it cannot be read, it is
 * larger than max_bytes, or, in the private directory, its mode or owner is not right. */
enum statedir_read statedir_read(const struct statedir *d, bool secret, const char *name,
                                 size_t max_bytes, struct slice *out, struct err *err);
/* Wipes and frees; the empty slice is fine. */
void statedir_forget(struct slice *s);

/* Replaces the file: a new one beside it, synced, renamed over it. 0644, in the private directory
 * 0600, whatever the umask. */
bool statedir_write(const struct statedir *d, bool secret, const char *name, struct slice content,
                    struct err *err);
/* The same for a public file, unless it has this content already. */
bool statedir_update(const struct statedir *d, const char *name, struct slice content,
                     struct err *err);

#endif
