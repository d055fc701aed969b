/* What is known of a listening socket once it is bound. */
#include "proxy/entrance.h"
#include "core/base/attr.h"
#include "core/base/num.h"
#include "core/base/xalloc.h"
#include "io/net/addrtext.h"
#include "io/tls/tlsserver.h"
#include "proxy/uidmap.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

_Static_assert((int)ADDRTEXT_BYTES <= (int)ENTRANCE_TEXT_MAX, "an address fits");
_Static_assert(sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof "unix:" <= ENTRANCE_TEXT_MAX,
               "a path fits");

void entrance_init(struct entrance *e, int fd, const struct listener_config *rules)
{
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof sa;
    *e = (struct entrance){.fd = fd, .rules = *rules, .file = {.fd = -1}};
    (void)getsockname(fd, (struct sockaddr *)&sa, &n);
    if (sa.ss_family == AF_UNIX)
        snprintf(e->text, sizeof e->text, "unix:%.*s",
                 (int)sizeof(((struct sockaddr_un *)NULL)->sun_path),
                 ((struct sockaddr_un *)&sa)->sun_path);
    else
        addrtext((struct sockaddr *)&sa, e->text);
    if (e->rules.name == NULL)
        e->rules.name = e->text;
}

bool entrance_url(const struct listener_config *rules, const char *text, char out[ENTRANCE_URL_MAX])
{
    static const struct slice any[] = {{"0.0.0.0:", 8}, {"[::]:", 5}};
    static const char *const loopback[] = {"127.0.0.1:", "[::1]:"};
    const char *scheme = rules->tls_certificate != NULL ? "https" : "http";
    if (slice_starts(slice_str(text), SLICE("unix:")) || rules->n_proxy_protocol > 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(any); i++) {
        if (!slice_starts(slice_str(text), any[i]))
            continue;
        snprintf(out, ENTRANCE_URL_MAX, "%s://%s%s", scheme, loopback[i], text + any[i].n);
        return true;
    }
    snprintf(out, ENTRANCE_URL_MAX, "%s://%s", scheme, text);
    return true;
}

/* "retryd.yaml:7: listeners[0].users: <what>" */
static bool complain(const struct entrance *e, enum listener_row row, const char *option,
                     const char *what, struct err *err)
{
    char where[ORIGIN_TEXT_MAX];
    origin_text(&e->rules.from[row], where);
    return err_set(err, "%.180s: listeners[%u].%s: %.250s", where, e->rules.number, option, what);
}

static bool find_user(const struct entrance *e, struct slice text, uid_t *uid, struct err *err)
{
    char name[LOGIN_NAME_MAX + 1];
    uint64_t number;
    struct err what;
    if (num_u64(text, 10, UINT32_MAX - 1, &number)) {
        *uid = (uid_t)number;
        return true;
    }
    snprintf(name, sizeof name, "%.*s", SLICE_FMT(text));
    errno = 0;
    const struct passwd *pw = getpwnam(name);
    if (pw != NULL) {
        *uid = pw->pw_uid;
        return true;
    }
    err_set(&what, "%s: %s", name, errno ? strerror(errno) : "no such user");
    return complain(e, LISTENER_ROW_users, "users", what.text, err);
}

static bool read_certificate(struct entrance *e, struct err *err)
{
    struct err what = {""};
    if (e->rules.tls_certificate == NULL)
        return true;
    e->tls = tlsserver_listener_ctx(e->rules.tls_certificate, e->rules.tls_key, &what);
    return e->tls != NULL ||
           complain(e, LISTENER_ROW_tls_certificate, "tls_certificate", what.text, err);
}

static bool read_credentials(struct entrance *e, struct err *err)
{
    struct err what = {""};
    if (e->rules.credentials_file == NULL)
        return true;
    e->credentials = credentials_read(e->rules.credentials_file, &what);
    return e->credentials != NULL ||
           complain(e, LISTENER_ROW_credentials_file, "credentials_file", what.text, err);
}

/* Users that cannot be told apart would all come in as the overflow user, or none of them would. */
static bool check_user(const struct entrance *e, uid_t uid, struct err *err)
{
    struct err what;
    if (uidmap_knows(uid))
        return true;
    err_set(&what,
            "user %u cannot be told from others in this user namespace (systemd: PrivateUsers=no)",
            uid);
    return complain(e, LISTENER_ROW_users, "users", what.text, err);
}

bool entrance_prepare(struct entrance *e, struct err *err)
{
    e->users = xcalloc(e->rules.n_users, sizeof *e->users);
    for (; e->n_users < e->rules.n_users; e->n_users++) {
        uid_t *uid = &e->users[e->n_users];
        if (!find_user(e, e->rules.users[e->n_users], uid, err) || !check_user(e, *uid, err))
            return false;
    }
    return read_credentials(e, err) && read_certificate(e, err);
}

void entrance_fini(struct entrance *e)
{
    free(e->users);
    credentials_free(e->credentials);
    SSL_CTX_free(e->tls);
}

void entrance_remove_file(const struct entrance *e)
{
    if (e->rules.address.path != NULL)
        unixsock_remove(&e->file, e->rules.address.path);
}
