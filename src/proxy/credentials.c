/* Checking credentials. An unknown name costs what a known one costs: it is hashed by the method of
 * some entry, always the same one for that name. Comparisons take the same time whatever is equal.
 */
#include "proxy/credentials.h"
#include "core/base/attr.h"
#include "core/base/hash.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "core/http/basicauth.h"
#include "io/sources/readfile.h"

#include <crypt.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAG_BYTES = 32, KEY_BYTES = 32, CPU_SHARE = 10 };
#define CPU_BURST_NS (500 * NS_PER_MS)

struct entry {
    char *name, *hash;
};

/* What is remembered of a pair. */
struct memory {
    unsigned char tag[TAG_BYTES]; /* of the whole field value */
    uint64_t used;                /* 0: empty; else when, counted in checks */
    const struct entry *entry;
};

struct credentials {
    struct entry *v;
    size_t n;
    unsigned char key[KEY_BYTES];
    struct hash_key name_key;
    uint64_t checks;
    struct memory verified[CREDENTIALS_VERIFIED_MAX];
    struct memory refused[CREDENTIALS_REFUSED_MAX];
    int64_t cpu_ns; /* that may still be used on hashing */
    int64_t cpu_at_ns;
    struct crypt_data work;
};

/* --- the file --- */

/* crypt(3) still reads some that are not good any more, and calls sha256crypt one. */
static bool good_method(const char *hash)
{
    static const char *const prefixes[] = {"$y$", "$gy$", "$7$", "$2b$", "$2y$", "$6$", "$5$"};
    size_t i = 0;
    for (; i < ARRAY_LEN(prefixes); i++) {
        if (slice_starts(slice_str(hash), slice_str(prefixes[i])))
            break;
    }
    int said = i < ARRAY_LEN(prefixes) ? crypt_checksalt(hash) : CRYPT_SALT_INVALID;
    return said == CRYPT_SALT_OK || said == CRYPT_SALT_METHOD_LEGACY;
}

static bool good_name(struct slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
            return false;
    }
    return name.n > 0 && name.n <= CREDENTIALS_NAME_MAX;
}

static const struct entry *find(const struct credentials *c, struct slice name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (slice_eq(slice_str(c->v[i].name), name))
            return &c->v[i];
    }
    return NULL;
}

/* Returns what is wrong, or NULL. Never the line itself: it has a hash. */
static const char *take_line(struct credentials *c, struct slice line)
{
    size_t colon = slice_index(line, ':');
    struct slice name = slice_of(line.p, colon);
    if (colon == line.n)
        return "no NAME:HASH";
    if (!good_name(name))
        return "a name has 1 to 64 bytes, none of them control bytes";
    if (find(c, name) != NULL)
        return "this name has a line already";
    c->v = xrealloc(c->v, (c->n + 1) * sizeof *c->v);
    struct entry *e = &c->v[c->n++];
    e->name = xstrndup(name.p, name.n);
    e->hash = xstrndup(line.p + colon + 1, line.n - colon - 1);
    return good_method(e->hash)
               ? NULL
               : "no hash by yescrypt, bcrypt, scrypt, sha512crypt or sha256crypt; "
                 "try: openssl passwd -6";
}

static bool take_lines(struct credentials *c, const char *path, struct slice text, struct err *err)
{
    struct slice line;
    unsigned number = 0;
    for (bool done = false; slice_next(&text, '\n', &line, &done);) {
        number++;
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (line.n == 0 || line.p[0] == '#')
            continue;
        const char *why = memchr(line.p, '\0', line.n) ? "a NUL byte" : take_line(c, line);
        if (why != NULL)
            return err_set(err, "%s:%u: %s", path, number, why);
    }
    return c->n > 0 || err_set(err, "%s: no line NAME:HASH", path);
}

static bool read_file(struct credentials *c, const char *path, struct err *err)
{
    struct stat st;
    size_t n = 0;
    char *text = NULL;
    int fd = readfile_open(path);
    bool closed = fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IRWXO) == 0;
    if (closed)
        text = readfile_all(fd, &n);
    if (fd < 0 || (closed && text == NULL))
        err_set(err, "%s: %s", path, strerror(errno));
    else if (!closed)
        err_set(err, "%s: others may read or write it; chmod o= it", path);
    if (fd >= 0)
        close(fd);
    bool ok = text != NULL && take_lines(c, path, slice_of(text, n), err);
    if (text != NULL)
        OPENSSL_cleanse(text, n);
    free(text);
    return ok;
}

struct credentials *credentials_read(const char *path, struct err *err)
{
    struct credentials *c = xcalloc(1, sizeof *c);
    c->cpu_ns = CPU_BURST_NS;
    bool random = getrandom(c->key, sizeof c->key, 0) == (ssize_t)sizeof c->key &&
                  getrandom(&c->name_key, sizeof c->name_key, 0) == (ssize_t)sizeof c->name_key;
    if (!random)
        err_set(err, "no random numbers from the operating system");
    if (random && read_file(c, path, err))
        return c;
    credentials_free(c);
    return NULL;
}

void credentials_free(struct credentials *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].name);
        OPENSSL_cleanse(c->v[i].hash, strlen(c->v[i].hash));
        free(c->v[i].hash);
    }
    free(c->v);
    OPENSSL_cleanse(c, sizeof *c);
    free(c);
}

/* --- what is remembered --- */

static bool tag_of(const struct credentials *c, struct slice value, unsigned char tag[TAG_BYTES])
{
    unsigned n = 0;
    return HMAC(EVP_sha256(), c->key, sizeof c->key, (const unsigned char *)value.p, value.n, tag,
                &n) != NULL &&
           n == TAG_BYTES;
}

static struct memory *recall(struct memory *v, size_t n, const unsigned char tag[TAG_BYTES])
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].used != 0 && CRYPTO_memcmp(v[i].tag, tag, TAG_BYTES) == 0)
            return &v[i];
    }
    return NULL;
}

/* In place of the one that was not used for longest. */
static void remember(struct credentials *c, struct memory *v, size_t n,
                     const unsigned char tag[TAG_BYTES], const struct entry *entry)
{
    struct memory *oldest = &v[0];
    for (size_t i = 1; i < n; i++) {
        if (v[i].used < oldest->used)
            oldest = &v[i];
    }
    memcpy(oldest->tag, tag, TAG_BYTES);
    oldest->entry = entry;
    oldest->used = c->checks;
}

/* --- checking --- */

static int64_t cpu_time_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static bool may_hash(struct credentials *c, int64_t now_ns)
{
    if (now_ns > c->cpu_at_ns && c->cpu_at_ns != 0) {
        int64_t gained = (now_ns - c->cpu_at_ns) / CPU_SHARE;
        c->cpu_ns = gained > CPU_BURST_NS - c->cpu_ns ? CPU_BURST_NS : c->cpu_ns + gained;
    }
    c->cpu_at_ns = now_ns;
    return c->cpu_ns > 0;
}

static bool same_text(const char *a, const char *b)
{
    size_t n = strlen(a);
    return n == strlen(b) && CRYPTO_memcmp(a, b, n) == 0;
}

/* The slow part. */
static const struct entry *verify(struct credentials *c, struct slice name, struct slice password)
{
    const struct entry *known = find(c, name);
    const struct entry *e = known ? known : &c->v[hash_bytes(c->name_key, name) % c->n];
    int64_t start_ns = cpu_time_ns();
    const char *hash = crypt_r(password.p, e->hash, &c->work);
    bool same = hash != NULL && same_text(hash, e->hash);
    OPENSSL_cleanse(&c->work, sizeof c->work);
    c->cpu_ns -= cpu_time_ns() - start_ns;
    return known != NULL && same ? known : NULL;
}

static enum credentials_verdict judge(struct credentials *c, struct slice value,
                                      const unsigned char tag[TAG_BYTES], int64_t now_ns,
                                      const char **name)
{
    char buf[BASICAUTH_MAX + 1];
    struct slice who, password;
    bool readable = basicauth_read(value, buf, &who, &password);
    bool looked = readable && may_hash(c, now_ns);
    const struct entry *e = looked ? verify(c, who, password) : NULL;
    OPENSSL_cleanse(buf, sizeof buf);
    if (!looked)
        return readable ? CREDENTIALS_BUSY : CREDENTIALS_WRONG;
    if (e == NULL) {
        remember(c, c->refused, CREDENTIALS_REFUSED_MAX, tag, NULL);
        return CREDENTIALS_WRONG;
    }
    remember(c, c->verified, CREDENTIALS_VERIFIED_MAX, tag, e);
    *name = e->name;
    return CREDENTIALS_GOOD;
}

enum credentials_verdict credentials_check(struct credentials *c, struct slice value,
                                           int64_t now_ns, const char **name)
{
    unsigned char tag[TAG_BYTES];
    c->checks++;
    if (value.n == 0 || !tag_of(c, value, tag))
        return CREDENTIALS_WRONG;
    struct memory *m = recall(c->verified, CREDENTIALS_VERIFIED_MAX, tag);
    if (m != NULL) {
        m->used = c->checks;
        *name = m->entry->name;
        return CREDENTIALS_GOOD;
    }
    if (recall(c->refused, CREDENTIALS_REFUSED_MAX, tag) != NULL)
        return CREDENTIALS_WRONG;
    return judge(c, value, tag, now_ns, name);
}
