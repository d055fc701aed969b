/* Binding with the final mode: there is no moment at which others could connect. */
#include "admin/adminsock.h"
#include "io/net/listener.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OWNER_ONLY = 0177, GROUP_TOO = 0660 };

static bool give_to_group(const char *path, const char *name, struct err *err)
{
    errno = 0;
    const struct group *g = getgrnam(name);
    if (g == NULL)
        return err_set(err, "admin.group: %s: %s", name, errno ? strerror(errno) : "no such group");
    if (chown(path, (uid_t)-1, g->gr_gid) != 0 || chmod(path, GROUP_TOO) != 0)
        return err_set(err, "%s: cannot be given to group %s: %s", path, name, strerror(errno));
    return true;
}

bool adminsock_open(struct adminsock *s, const char *path, const char *group, struct err *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct stat st;
    struct err why;
    size_t n = strlen(path);
    *s = (struct adminsock){.fd = -1};
    if (n >= sizeof sun.sun_path)
        return err_set(err, "%s: longer than the %zu bytes that a unix socket may have", path,
                       sizeof sun.sun_path - 1);
    memcpy(sun.sun_path, path, n);
    mode_t old = umask(OWNER_ONLY);
    s->fd = listener_bind((struct sockaddr *)&sun, sizeof sun, &why);
    umask(old);
    if (s->fd < 0)
        return err_set(err, "%s: %s", path, why.text);
    if (lstat(path, &st) == 0 && (group == NULL || give_to_group(path, group, err))) {
        s->dev = st.st_dev;
        s->ino = st.st_ino;
        return true;
    }
    close(s->fd);
    s->fd = -1;
    unlink(path);
    return false;
}

void adminsock_remove(const struct adminsock *s, const char *path)
{
    struct stat st;
    if (s->ino != 0 && lstat(path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        unlink(path);
}
