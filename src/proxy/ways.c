/* Reading the files of the ways out, and finding the way to an origin. */
#include "proxy/ways.h"

#include "core/base/xalloc.h"
#include "core/config/noproxy.h"
#include "core/config/option.h"
#include "io/sources/readfile.h"
#include <errno.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREDENTIALS_MAX_BYTES = 1024 };

static const char basic[] = "Basic ";

struct ways {
    const struct config *config;
    struct tlsclient **profiles; /* the general one, then those of origins that need their own */
    unsigned n_profiles;
    unsigned *profile_of; /* by number of origin */
    struct race_source source;
    struct parent parent;
    struct tlsclient *parent_tls;
    char *authorization;
    struct noproxy_rule *direct;
    size_t n_direct;
};

/* "retryd.yaml:7: parent.ca_file: <what>" */
static bool complain(const struct config *c, const char *option, const char *what, struct err *err)
{
    struct slice key;
    char where[ORIGIN_TEXT_MAX];
    const struct option *o = option_find(slice_str(option), &key);
    origin_text(&c->from[o - option_table], where);
    return err_set(err, "%.180s: %s: %.250s", where, option, what);
}

/* --- the parent --- */

/* NAME:PASSWORD out of a file: one line, its end optional. */
static bool is_credentials(struct slice line)
{
    for (size_t i = 0; i < line.n; i++)
        if ((unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f)
            return false;
    return line.n <= CREDENTIALS_MAX_BYTES && slice_index(line, ':') < line.n;
}

static bool encode(struct ways *w, struct slice line)
{
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (!is_credentials(line))
        return false;
    size_t n = sizeof basic - 1;
    w->authorization = xcalloc(1, n + (line.n + 2) / 3 * 4 + 1);
    memcpy(w->authorization, basic, n);
    EVP_EncodeBlock((unsigned char *)w->authorization + n, (const unsigned char *)line.p,
                    (int)line.n);
    w->parent.authorization = w->authorization;
    return true;
}

/* What is wrong with the file, or NULL. It has a password in the clear, so nobody else may have
 * access. */
static const char *take_credentials(struct ways *w, int fd)
{
    struct stat st;
    size_t n = 0;
    if (fd < 0 || fstat(fd, &st) != 0)
        return strerror(errno);
    if ((st.st_mode & S_IRWXO) != 0)
        return "others may read or write it; chmod o= it";
    char *text = readfile_all(fd, &n);
    if (text == NULL)
        return strerror(errno);
    bool ok = encode(w, slice_of(text, n));
    OPENSSL_cleanse(text, n);
    free(text);
    return ok ? NULL : "not one line NAME:PASSWORD";
}

static bool read_credentials(struct ways *w, const char *file, struct err *err)
{
    struct err what;
    int fd = readfile_open(file);
    const char *why = take_credentials(w, fd);
    if (fd >= 0)
        close(fd);
    if (why == NULL)
        return true;
    err_set(&what, "%s: %s", file, why);
    return complain(w->config, "parent.credentials_file", what.text, err);
}

static bool find_parent(struct ways *w, X509 *own_root, struct err *err)
{
    const struct config *c = w->config;
    if (!c->parent.given)
        return true;
    w->parent = (struct parent){.host = c->parent.at.host,
                                .is_ip = c->parent.at.kind != AUTHORITY_NAME,
                                .port = c->parent.at.port};
    if (c->parent.tls) {
        const struct tlsclient_spec trust = {.system_trust = c->parent_ca_file == NULL,
                                             .ca_file = c->parent_ca_file,
                                             .own_root = own_root};
        struct err what = {""};
        w->parent_tls = tlsclient_new(&trust, &what);
        if (w->parent_tls == NULL)
            return complain(c, c->parent_ca_file ? "parent.ca_file" : "parent.url", what.text, err);
        w->parent.tls = w->parent_tls;
    }
    w->direct = xcalloc(c->n_no_proxy, sizeof *w->direct);
    for (size_t i = 0; i < c->n_no_proxy; i++)
        w->n_direct += noproxy_parse(c->no_proxy[i], &w->direct[w->n_direct]);
    return c->parent_credentials_file == NULL ||
           read_credentials(w, c->parent_credentials_file, err);
}

/* --- origins --- */

static bool find_profiles(struct ways *w, X509 *own_root, struct err *err)
{
    const struct config *c = w->config;
    const struct tlsclient_spec general = {.system_trust = c->upstream_system_trust,
                                           .ca_file = c->upstream_ca_file,
                                           .own_root = own_root};
    w->profiles = xcalloc(c->n_origins + 1, sizeof(struct tlsclient *));
    w->profile_of = xcalloc(c->n_origins, sizeof *w->profile_of);
    w->profiles[0] = tlsclient_new(&general, err);
    if (w->profiles[0] == NULL)
        return false;
    w->n_profiles = 1;
    for (size_t i = 0; i < c->n_origins; i++) {
        const struct origin_config *o = &c->origins[i];
        if (o->ca_file == NULL && o->client_certificate == NULL)
            continue;
        const struct tlsclient_spec own = {
            .same_trust = o->ca_file == NULL ? w->profiles[0] : NULL,
            .ca_file = o->ca_file,
            .own_root = own_root,
            .certificate = o->client_certificate,
            .key = o->client_key,
        };
        struct err why = {""};
        struct tlsclient *t = tlsclient_new(&own, &why);
        if (t == NULL) {
            char where[ORIGIN_TEXT_MAX];
            origin_text(&o->where, where);
            return err_set(err, "%.180s: origins[%zu]: %.250s", where, i, why.text);
        }
        w->profile_of[i] = w->n_profiles;
        w->profiles[w->n_profiles++] = t;
    }
    return true;
}

static void find_source(struct ways *w)
{
    for (size_t i = 0; i < w->config->n_source_addresses; i++) {
        const struct authority *a = &w->config->source_addresses[i];
        if (a->kind == AUTHORITY_IPV4) {
            struct sockaddr_in *sin = (struct sockaddr_in *)&w->source.v4;
            sin->sin_family = AF_INET;
            memcpy(&sin->sin_addr, a->addr, 4);
        } else {
            struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&w->source.v6;
            sin6->sin6_family = AF_INET6;
            memcpy(&sin6->sin6_addr, a->addr, 16);
        }
    }
}

struct ways *ways_new(const struct config *c, X509 *own_root, struct err *err)
{
    struct ways *w = xcalloc(1, sizeof *w);
    w->config = c;
    find_source(w);
    if (find_profiles(w, own_root, err) && find_parent(w, own_root, err))
        return w;
    ways_free(w);
    return NULL;
}

void ways_free(struct ways *w)
{
    if (w == NULL)
        return;
    for (unsigned i = 0; i < w->n_profiles; i++)
        tlsclient_free(w->profiles[i]);
    tlsclient_free(w->parent_tls);
    if (w->authorization != NULL)
        OPENSSL_cleanse(w->authorization, strlen(w->authorization));
    free(w->authorization);
    free(w->direct);
    free(w->profile_of);
    free(w->profiles);
    free(w);
}

void ways_find(const struct ways *w, const struct authority *to, struct way *out)
{
    const struct config *c = w->config;
    const struct origin_config *o = config_origin(c, slice_str(to->host));
    *out = (struct way){.source = &w->source};
    if (o != NULL)
        out->profile = w->profile_of[o - c->origins];
    out->tls = w->profiles[out->profile];
    if (!c->parent.given)
        return;
    bool use = o != NULL && origin_has(o, parent) ? o->parent == PARENT_USE
                                                  : !noproxy_match(w->direct, w->n_direct, to);
    if (!use)
        return;
    out->parent = &w->parent;
    out->authorization = slice_str(w->authorization);
}
