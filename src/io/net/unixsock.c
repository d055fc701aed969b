/* Binding with the final mode: there is no moment at which others could connect. */
#include "io/net/unixsock.h"
#include "io/net/listener.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OWNER_ONLY = 0600, ALL_BITS = 0777 };

static bool find_group(const char *name, gid_t *gid, struct err *err)
{
    errno = 0;
    const struct group *g = getgrnam(name);
    if (g == NULL)
        return err_set(err, "group %s: %s", name, errno ? strerror(errno) : "no such group");
    *gid = g->gr_gid;
    return true;
}

static bool bind_file(struct unixsock *s, const struct sockaddr_un *sun, mode_t mode,
                      struct err *err)
{
    struct err why;
    mode_t old = umask(ALL_BITS & ~mode);
    s->fd = listener_bind((const struct sockaddr *)sun, sizeof *sun, &why);
    umask(old);
    return s->fd >= 0 || err_set(err, "%s: %.300s", sun->sun_path, why.text);
}

/* The group comes before the bits that let it in. */
static bool give_to(const char *path, gid_t gid, mode_t mode, const char *group, struct err *err)
{
    return (lchown(path, (uid_t)-1, gid) == 0 && chmod(path, mode) == 0) ||
           err_set(err, "%s: cannot be given to group %s: %s", path, group, strerror(errno));
}

bool unixsock_open(struct unixsock *s, const char *path, mode_t mode, const char *group,
                   struct err *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct stat st;
    gid_t gid = 0;
    size_t n = strlen(path);
    *s = (struct unixsock){.fd = -1};
    if (n >= sizeof sun.sun_path)
        return err_set(err, "%s: longer than the %zu bytes that a unix socket may have", path,
                       sizeof sun.sun_path - 1);
    memcpy(sun.sun_path, path, n);
    if ((group != NULL && !find_group(group, &gid, err)) ||
        !bind_file(s, &sun, group != NULL ? mode & OWNER_ONLY : mode, err))
        return false;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        (group == NULL || give_to(path, gid, mode, group, err))) {
        s->dev = st.st_dev;
        s->ino = st.st_ino;
        return true;
    }
    if (group == NULL)
        err_set(err, "%s: %s", path, "is no socket any more");
    close(s->fd);
    s->fd = -1;
    unlink(path);
    return false;
}

bool unixsock_is_held(const char *path, pid_t *pid)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct stat st;
    struct ucred peer = {.pid = 0};
    socklen_t n = sizeof peer;
    *pid = 0;
    if (strlen(path) >= sizeof sun.sun_path || lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    memcpy(sun.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool connected = fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0;
    bool held = connected || errno == EAGAIN; /* its queue is full, but it has one */
    if (connected && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0)
        *pid = peer.pid;
    if (fd >= 0)
        close(fd);
    return held;
}

void unixsock_remove(const struct unixsock *s, const char *path)
{
    struct stat st;
    if (s->ino != 0 && lstat(path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        unlink(path);
}
