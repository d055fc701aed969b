/* The protocol of socket activation is two variables: LISTEN_PID, LISTEN_FDS; the descriptors are
 * 3, 4, ... It is spoken directly. */
#include "daemon/listenfds.h"
#include "core/base/num.h"
#include "core/base/xalloc.h"
#include "io/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3, FDS_MAX = 64 };

/* How many were handed to this very process. */
static size_t handed_over(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t for_pid = 0, n = 0;
    bool ours = pid != NULL && count != NULL && num_u64(slice_str(pid), 10, INT32_MAX, &for_pid) &&
                for_pid == (uint64_t)getpid() && num_u64(slice_str(count), 3, FDS_MAX, &n);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return ours ? n : 0;
}

static socklen_t to_sockaddr(const struct authority *at, struct sockaddr_storage *sa)
{
    *sa = (struct sockaddr_storage){0};
    if (at->kind == AUTHORITY_IPV6) {
        struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)sa;
        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(at->port);
        memcpy(&sin6->sin6_addr, at->addr, 16);
        return sizeof *sin6;
    }
    struct sockaddr_in *sin = (struct sockaddr_in *)sa;
    sin->sin_family = AF_INET;
    sin->sin_port = htons(at->port);
    memcpy(&sin->sin_addr, at->addr, 4);
    return sizeof *sin;
}

/* --- handed over --- */

static bool is_local(const struct sockaddr_storage *sa)
{
    if (sa->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return sa->ss_family == AF_UNIX ||
           (sa->ss_family == AF_INET6 &&
            IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr));
}

static bool same_inet(const struct sockaddr_storage *x, const struct sockaddr_storage *y)
{
    if (x->ss_family != y->ss_family)
        return false;
    if (x->ss_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)x, *b = (const void *)y;
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *a = (const void *)x, *b = (const void *)y;
    return a->sin6_port == b->sin6_port && memcmp(&a->sin6_addr, &b->sin6_addr, 16) == 0;
}

static bool is_for(const struct listener_config *l, const struct sockaddr_storage *sa)
{
    struct sockaddr_storage at;
    if (sa->ss_family == AF_UNIX)
        return l->address.path != NULL &&
               strcmp(l->address.path, ((const struct sockaddr_un *)sa)->sun_path) == 0;
    if (l->address.path != NULL)
        return false;
    to_sockaddr(&l->address.at, &at);
    return same_inet(&at, sa);
}

/* Whether it listens, listener_adopt() will see. */
static bool take_over(const struct config *c, int fd, struct entrance *e, struct err *err)
{
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    struct listener_config plain;
    const struct listener_config *rules = NULL;
    socklen_t n = sizeof sa;
    if (getsockname(fd, (struct sockaddr *)&sa, &n) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return err_set(err, "descriptor %d, handed over in LISTEN_FDS: %s", fd, strerror(errno));
    for (size_t i = 0; i < c->n_listeners && rules == NULL; i++)
        rules = is_for(&c->listeners[i], &sa) ? &c->listeners[i] : NULL;
    if (rules == NULL) {
        config_plain_listener(c, NULL, &plain);
        rules = &plain;
    }
    entrance_init(e, fd, rules);
    return rules != &plain || is_local(&sa) ||
           err_set(err,
                   "descriptor %d, handed over in LISTEN_FDS, is no socket of a loopback address: "
                   "%s; give that address in listeners, with who may use it",
                   fd, e->text);
}

/* Closes and frees what there is. */
static bool give_up(struct entrance **v, size_t *n)
{
    while (*n > 0) {
        struct entrance *e = &(*v)[--*n];
        close(e->fd);
        entrance_remove_file(e);
        entrance_fini(e);
    }
    free(*v);
    *v = NULL;
    return false;
}

static bool prepare_all(struct entrance **v, size_t *n, struct err *err)
{
    for (size_t i = 0; i < *n; i++) {
        if (!entrance_prepare(&(*v)[i], err))
            return give_up(v, n);
    }
    return true;
}

bool listenfds_inherit(const struct config *c, struct entrance **v, size_t *n, struct err *err)
{
    size_t handed = handed_over();
    *n = 0;
    *v = NULL;
    if (handed == 0)
        return true;
    *v = xcalloc(handed, sizeof **v);
    for (; *n < handed; (*n)++) {
        if (!take_over(c, FIRST_FD + (int)*n, &(*v)[*n], err))
            return give_up(v, n);
    }
    return prepare_all(v, n, err);
}

/* --- of our own --- */

/* The line says which option it is about, and where that was set. */
static bool complain(const struct listener_config *l, const struct err *why, struct err *err)
{
    char where[ORIGIN_TEXT_MAX];
    if (!listener_has(l, address))
        return err_set(err, "listen: %.480s", why->text);
    origin_text(&l->from[LISTENER_ROW_address], where);
    return err_set(err, "%.200s: listeners[%u].address: %.280s", where, l->number, why->text);
}

static bool open_one(const struct listener_config *l, struct entrance *e, struct err *err)
{
    struct unixsock file = {.fd = -1};
    struct err why = {""};
    int fd;
    if (l->address.path != NULL) {
        unixsock_open(&file, l->address.path, l->socket_mode, l->socket_group, &why);
        fd = file.fd;
    } else {
        struct sockaddr_storage sa;
        socklen_t n = to_sockaddr(&l->address.at, &sa);
        fd = listener_bind((struct sockaddr *)&sa, n, &why);
    }
    if (fd < 0)
        return complain(l, &why, err);
    entrance_init(e, fd, l);
    e->file = file;
    return true;
}

bool listenfds_open(const struct config *c, struct entrance **v, size_t *n, struct err *err)
{
    *v = xcalloc(c->n_listeners, sizeof **v);
    for (*n = 0; *n < c->n_listeners; (*n)++) {
        if (!open_one(&c->listeners[*n], &(*v)[*n], err))
            return give_up(v, n);
    }
    return prepare_all(v, n, err);
}

bool listenfds_private(const struct config *c, struct entrance **v, size_t *n, struct err *err)
{
    struct listener_config l;
    config_plain_listener(c, NULL, &l);
    l.address.at = (struct authority){
        .kind = AUTHORITY_IPV4, .host = "127.0.0.1", .addr = {127, 0, 0, 1}, .port = 0};
    *v = xcalloc(1, sizeof **v);
    *n = 0;
    if (!open_one(&l, *v, err))
        return give_up(v, n);
    *n = 1;
    return true;
}

void listenfds_free(struct entrance *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        entrance_fini(&v[i]);
    free(v);
}
