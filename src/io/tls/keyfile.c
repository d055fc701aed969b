#include "io/tls/keyfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool keyfile_is_private(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return err_set(err, "%s: %s", path, strerror(errno));
    return (st.st_mode & S_IRWXO) == 0 ||
           err_set(err, "%s: others may read or write this key; chmod o= it", path);
}
