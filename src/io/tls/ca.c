/* Opening the authority: is what stands in the directory whole, ours, for these names and good for
 * a while? Then it is used. Is it damaged or outdated? Then a new one is made and the caller is
 * told, since its root has to be trusted anew. Is it in the wrong hands, or the clock wrong? Then
 * nothing is touched (security requirements H1-H5).
 *
 * The intermediate itself says which names are in force; the file `names` is for people. No order
 * of writing matters: files of two authorities never pass check_whole() together. */
#include "io/tls/ca.h"

#include "core/base/attr.h"
#include "core/base/strbuf.h"
#include "core/base/xalloc.h"
#include "io/tls/bundle.h"
#include "io/tls/mint.h"
#include "io/tls/statedir.h"
#include "io/tls/ticketkeys.h"
#include "io/tls/tlserr.h"
#include "io/tls/tlsinit.h"
#include "io/tls/truststore.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define ROOT_FILE "ca.pem"
#define CHAIN_FILE "chain.pem"
#define NAMES_FILE "names"
#define KEY_FILE "intermediate.key"
#define USE_FILE "in-use"

#define DAY_S 86400
#define LIFE_S ((int64_t)396 * DAY_S) /* with the hour before: less than 397 days (H5) */
#define RENEW_S ((int64_t)30 * DAY_S)
#define EARLIEST_CLOCK ((time_t)1767225600) /* 2026-01-01: older than any build of this program */
#define FILE_MAX_BYTES 65536
#define NAMES_MAX 4096
#define NAME_MAX_BYTES 253
#define LABEL_MAX_BYTES 63

struct ca {
    X509 *root, *intermediate;
    EVP_PKEY *key;
    time_t begin, end;
    struct slice *names; /* sorted, no doubles; bytes in name_text */
    size_t n_names;
    char *name_text;
    bool ip_literals;
    NAME_CONSTRAINTS *constraints;
    char *root_path, *bundle_path;
    unsigned char ticket_secret[TICKETKEYS_SECRET_BYTES];
    int use_fd; /* the shared lock of its users, or -1 */
};

enum found {
    FOUND,
    AGING, /* good, but near its end */
    NOTHING,
    UNFIT,
    REFUSED,
};

/* Letters, digits, "-", "_", labels of 1 to 63 bytes: what a certificate can name and no pattern.
 */
static bool is_host_name(struct slice s)
{
    struct slice label;
    bool done = false;
    if (s.n > NAME_MAX_BYTES)
        return false;
    while (slice_next(&s, '.', &label, &done)) {
        if (label.n == 0 || label.n > LABEL_MAX_BYTES)
            return false;
        for (size_t i = 0; i < label.n; i++) {
            char c = label.p[i];
            if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '-' && c != '_')
                return false;
        }
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return slice_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

/* Lower case, sorted, each once: two lists that mean the same set become the same bytes. */
static bool set_names(struct ca *ca, const struct slice *names, size_t n, struct err *err)
{
    size_t bytes = 0;
    if (n == 0 && !ca->ip_literals)
        return err_set(err, "the authority needs at least one name that it may sign for");
    if (n > NAMES_MAX)
        return err_set(err, "the authority takes at most %d names", NAMES_MAX);
    for (size_t i = 0; i < n; i++)
        bytes += names[i].n;
    char *p = ca->name_text = xmalloc(bytes + 1);
    ca->names = xcalloc(n + 1, sizeof *ca->names);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < names[i].n; k++)
            p[k] = ascii_lower(names[i].p[k]);
        ca->names[i] = slice_of(p, names[i].n);
        p += names[i].n;
        if (!is_host_name(ca->names[i]))
            return err_set(err, "\"%.*s\" is not a host name or suffix to make certificates for",
                           SLICE_FMT(names[i]));
    }
    qsort(ca->names, n, sizeof *ca->names, compare_names);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !slice_eq(ca->names[i], ca->names[ca->n_names - 1]))
            ca->names[ca->n_names++] = ca->names[i];
    ca->constraints = mint_constraints(ca->names, ca->n_names, ca->ip_literals);
    return ca->constraints != NULL || tlserr_set(err, "name constraints");
}

static char *join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = xmalloc(n);
    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static bool to_time(const ASN1_TIME *t, time_t *out)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *out = timegm(&tm);
    return true;
}

/* A key with a pass phrase is not one of ours; nobody is asked for it on a terminal. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
    (void)buf, (void)size, (void)rwflag, (void)arg;
    return -1;
}

static X509 *parse_cert(struct slice pem)
{
    BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *cert = in ? PEM_read_bio_X509(in, NULL, no_password, NULL) : NULL;
    BIO_free(in);
    return cert;
}

static EVP_PKEY *parse_key(struct slice pem)
{
    BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *key = in ? PEM_read_bio_PrivateKey(in, NULL, no_password, NULL) : NULL;
    BIO_free(in);
    return key;
}

/* Takes the three files into ca, as far as they are there and can be read. */
static enum found read_files(struct ca *ca, const struct statedir *d, struct err *why,
                             struct err *err)
{
    struct slice root, chain, key;
    enum statedir_read r[] = {
        statedir_read(d, true, KEY_FILE, FILE_MAX_BYTES, &key, err),
        STATEDIR_REFUSED,
        STATEDIR_REFUSED,
    };
    if (r[0] == STATEDIR_REFUSED)
        return REFUSED;
    r[1] = statedir_read(d, false, CHAIN_FILE, FILE_MAX_BYTES, &chain, err);
    r[2] = statedir_read(d, false, ROOT_FILE, FILE_MAX_BYTES, &root, err);
    if (r[0] == STATEDIR_FOUND)
        ca->key = parse_key(key);
    if (r[1] == STATEDIR_FOUND)
        ca->intermediate = parse_cert(chain);
    if (r[2] == STATEDIR_FOUND)
        ca->root = parse_cert(root);
    statedir_forget(&key);
    statedir_forget(&chain);
    statedir_forget(&root);
    ERR_clear_error();
    if (r[1] == STATEDIR_REFUSED || r[2] == STATEDIR_REFUSED)
        return REFUSED;
    if (r[0] == STATEDIR_ABSENT && r[1] == STATEDIR_ABSENT && r[2] == STATEDIR_ABSENT)
        return NOTHING;
    if (ca->key && ca->intermediate && ca->root)
        return FOUND;
    err_set(why, "%s is missing or damaged",
            !ca->key            ? STATEDIR_PRIVATE "/" KEY_FILE
            : !ca->intermediate ? CHAIN_FILE
                                : ROOT_FILE);
    return UNFIT;
}

/* One authority, and not the remains of two. */
static bool check_whole(struct ca *ca)
{
    bool ok = X509_verify(ca->root, X509_get0_pubkey(ca->root)) == 1 &&
              X509_verify(ca->intermediate, X509_get0_pubkey(ca->root)) == 1 &&
              X509_check_issued(ca->root, ca->intermediate) == X509_V_OK &&
              X509_check_private_key(ca->intermediate, ca->key) == 1 &&
              to_time(X509_get0_notBefore(ca->intermediate), &ca->begin) &&
              to_time(X509_get0_notAfter(ca->intermediate), &ca->end);
    ERR_clear_error();
    return ok;
}

/* The constraints in the certificate are byte for byte those that would be written today. */
static bool check_names(const struct ca *ca)
{
    int at = X509_get_ext_by_NID(ca->intermediate, NID_name_constraints, -1);
    if (at < 0)
        return false;
    const ASN1_OCTET_STRING *have = X509_EXTENSION_get_data(X509_get_ext(ca->intermediate, at));
    unsigned char *want = NULL;
    int n =
        ASN1_item_i2d((const ASN1_VALUE *)ca->constraints, &want, ASN1_ITEM_rptr(NAME_CONSTRAINTS));
    bool same = n > 0 && ASN1_STRING_length(have) == n &&
                memcmp(ASN1_STRING_get0_data(have), want, (size_t)n) == 0;
    OPENSSL_free(want);
    return same;
}

static enum found load(struct ca *ca, const struct statedir *d, time_t now, struct err *why,
                       struct err *err)
{
    enum found f = read_files(ca, d, why, err);
    if (f != FOUND)
        return f;
    if (!check_whole(ca)) {
        err_set(why, "its files do not belong together");
        return UNFIT;
    }
    if (now < ca->begin) {
        err_set(err, "the authority in %s was made in the future: check the clock", d->path);
        return REFUSED;
    }
    if (!check_names(ca)) {
        err_set(why, "the intercepted names changed");
        return UNFIT;
    }
    if (ca->end - now < RENEW_S) {
        err_set(why, ca->end <= now ? "it had expired" : "it was about to expire");
        return ca->end <= now ? UNFIT : AGING;
    }
    return FOUND;
}

static void drop_pair(struct ca *ca)
{
    X509_free(ca->root);
    X509_free(ca->intermediate);
    EVP_PKEY_free(ca->key);
    ca->root = ca->intermediate = NULL;
    ca->key = NULL;
}

static bool write_key(const struct statedir *d, EVP_PKEY *key, struct err *err)
{
    char *p;
    BIO *mem = BIO_new(BIO_s_secmem());
    bool ok = mem != NULL && PEM_write_bio_PrivateKey(mem, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (!ok)
        tlserr_set(err, KEY_FILE);
    long n = ok ? BIO_get_mem_data(mem, &p) : 0;
    ok = ok && statedir_write(d, true, KEY_FILE, slice_of(p, (size_t)n), err);
    BIO_free(mem);
    return ok;
}

static bool write_cert(const struct statedir *d, const char *name, X509 *cert, struct err *err)
{
    char *p;
    BIO *mem = BIO_new(BIO_s_mem());
    bool ok = mem != NULL && PEM_write_bio_X509(mem, cert) == 1;
    if (!ok)
        tlserr_set(err, name);
    long n = ok ? BIO_get_mem_data(mem, &p) : 0;
    ok = ok && statedir_write(d, false, name, slice_of(p, (size_t)n), err);
    BIO_free(mem);
    return ok;
}

static bool create(struct ca *ca, const struct statedir *d, time_t now, struct err *err)
{
    ca->key = mint_key(err);
    return ca->key != NULL &&
           mint_authority(ca->key, ca->constraints, now, LIFE_S, &ca->root, &ca->intermediate,
                          err) &&
           to_time(X509_get0_notBefore(ca->intermediate), &ca->begin) &&
           to_time(X509_get0_notAfter(ca->intermediate), &ca->end) && write_key(d, ca->key, err) &&
           write_cert(d, CHAIN_FILE, ca->intermediate, err) &&
           write_cert(d, ROOT_FILE, ca->root, err);
}

static bool write_names(const struct ca *ca, const struct statedir *d, struct err *err)
{
    struct strbuf sb;
    strbuf_init(&sb, (NAMES_MAX + 1) * (NAME_MAX_BYTES + sizeof "DNS:\n"));
    for (size_t i = 0; i < ca->n_names; i++)
        strbuf_printf(&sb, "DNS:%.*s\n", SLICE_FMT(ca->names[i]));
    strbuf_printf(&sb, "IP:%s\n", ca->ip_literals ? "any" : "none");
    bool ok = !sb.overflow && statedir_update(d, NAMES_FILE, strbuf_slice(&sb), err);
    strbuf_fini(&sb);
    return ok;
}

/* Whoever uses the authority holds a shared lock on this file: it is not replaced under a running
 * retryd, whose clients trust it. */
static bool hold(struct ca *ca, const struct statedir *d, int how, struct err *err)
{
    if (ca->use_fd < 0) {
        char *path = join(d->path, USE_FILE);
        ca->use_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        free(path);
    }
    if (ca->use_fd >= 0 && flock(ca->use_fd, how) == 0)
        return true;
    return err_set(err, "%s/" USE_FILE ": %s", d->path, strerror(errno));
}

static bool load_or_create(struct ca *ca, const struct statedir *d, time_t now, struct err *note,
                           struct err *err)
{
    struct err why;
    switch (load(ca, d, now, &why, err)) {
    case FOUND:
        return true;
    case REFUSED:
        return false;
    case NOTHING:
        return create(ca, d, now, err);
    case AGING:
        if (!hold(ca, d, LOCK_EX | LOCK_NB, err))
            return true; /* somebody uses it: it will do until that one stops */
        break;
    case UNFIT:
        break;
    }
    drop_pair(ca);
    if (!hold(ca, d, LOCK_EX | LOCK_NB, err))
        return err_set(err,
                       "the authority in %s would have to be made anew, since %s, but a running "
                       "retryd uses it: stop "
                       "that one, or give this one a state_dir of its own",
                       d->path, why.text);
    err_set(note, "made a new authority in %s, since %s: let clients trust the new %s/" ROOT_FILE,
            d->path, why.text, d->path);
    return create(ca, d, now, err);
}

struct ca *ca_open(const char *dir, const struct slice *names, size_t n_names, bool ip_literals,
                   time_t now, struct err *note, struct err *err)
{
    struct statedir d;
    struct err bundle_note = {""};
    tlsinit();
    note->text[0] = '\0';
    struct ca *ca = xcalloc(1, sizeof *ca);
    ca->use_fd = -1;
    ca->ip_literals = ip_literals;
    ca->root_path = join(dir, ROOT_FILE);
    ca->bundle_path = join(dir, BUNDLE_FILE);
    bool ok = set_names(ca, names, n_names, err);
    if (ok && now < EARLIEST_CLOCK)
        ok = err_set(err, "the clock is years behind: no certificates are made before it is set");
    if (ok && RAND_priv_bytes(ca->ticket_secret, sizeof ca->ticket_secret) != 1)
        ok = tlserr_set(err, "random numbers");
    ok = ok && statedir_open(&d, dir, err);
    if (ok) {
        ok = load_or_create(ca, &d, now, note, err) && hold(ca, &d, LOCK_SH, err) &&
             write_names(ca, &d, err) &&
             bundle_refresh(&d, truststore_system_file(), ca->root, &bundle_note, err);
        statedir_close(&d);
    }
    if (!ok) {
        ca_free(ca);
        return NULL;
    }
    if (note->text[0] == '\0')
        *note = bundle_note;
    return ca;
}

void ca_free(struct ca *ca)
{
    if (ca == NULL)
        return;
    drop_pair(ca);
    if (ca->use_fd >= 0)
        close(ca->use_fd);
    NAME_CONSTRAINTS_free(ca->constraints);
    free(ca->names);
    free(ca->name_text);
    free(ca->root_path);
    free(ca->bundle_path);
    OPENSSL_cleanse(ca->ticket_secret, sizeof ca->ticket_secret);
    free(ca);
}

bool ca_permits(const struct ca *ca, const char *host, bool is_ip)
{
    struct slice h = slice_str(host);
    if (is_ip)
        return ca->ip_literals;
    if (!is_host_name(h))
        return false;
    for (size_t i = 0; i < ca->n_names; i++) {
        size_t n = ca->names[i].n;
        if (h.n >= n && memcmp(h.p + h.n - n, ca->names[i].p, n) == 0 &&
            (h.n == n || h.p[h.n - n - 1] == '.'))
            return true;
    }
    return false;
}

X509 *ca_root(const struct ca *ca)
{
    return ca->root;
}

X509 *ca_intermediate(const struct ca *ca)
{
    return ca->intermediate;
}

EVP_PKEY *ca_key(const struct ca *ca)
{
    return ca->key;
}

const unsigned char *ca_ticket_secret(const struct ca *ca)
{
    return ca->ticket_secret;
}

time_t ca_begin(const struct ca *ca)
{
    return ca->begin;
}

time_t ca_end(const struct ca *ca)
{
    return ca->end;
}

const char *ca_root_path(const struct ca *ca)
{
    return ca->root_path;
}

const char *ca_bundle_path(const struct ca *ca)
{
    return ca->bundle_path;
}
