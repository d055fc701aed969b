/* Plain copies: both files are PEM, and are read again by whoever uses them. */
#include "cmd/callerca.h"
#include "cmd/environ.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *callerca_find(const char *state_dir)
{
    size_t n, dir_n = state_dir ? strlen(state_dir) : 0;
    const char *const *names = environ_bundles(&n);
    for (size_t i = 0; i < n; i++) {
        const char *file = getenv(names[i]);
        bool ours =
            file != NULL && dir_n > 0 && strncmp(file, state_dir, dir_n) == 0 && file[dir_n] == '/';
        if (file != NULL && file[0] != '\0' && !ours)
            return file;
    }
    return NULL;
}

static bool append(FILE *out, const char *path)
{
    char piece[16 * 1024];
    size_t n;
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return false;
    while ((n = fread(piece, 1, sizeof piece, in)) > 0 && fwrite(piece, 1, n, out) == n)
        ;
    bool ok = feof(in) && !ferror(in) && !ferror(out);
    fclose(in);
    return ok && fputc('\n', out) != EOF;
}

bool callerca_join(const char *ours, const char *callers, char path[CALLERCA_PATH_MAX],
                   struct err *err)
{
    const char *failed = NULL;
    int n = snprintf(path, CALLERCA_PATH_MAX, "%s.XXXXXX", ours);
    int fd = n < CALLERCA_PATH_MAX ? mkstemp(path) : -1;
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        path[0] = '\0';
        return err_set(err, "%s: no file beside it: %s", ours, strerror(errno));
    }
    if (!append(out, callers))
        failed = callers;
    else if (!append(out, ours) || fchmod(fd, 0644) != 0)
        failed = ours;
    int why = errno;
    if (fclose(out) == 0 && failed == NULL)
        return true;
    err_set(err, "%s: %s", failed ? failed : path, strerror(failed ? why : errno));
    callerca_remove(path);
    path[0] = '\0';
    return false;
}

void callerca_remove(const char *path)
{
    if (path[0] != '\0')
        unlink(path);
}
