/* The bundle is compared by content and not by date: a system store that was put back, a truncated
 * bundle or a crash between two files then needs no rule of its own. */
#include "io/tls/bundle.h"

#include "core/base/strbuf.h"
#include "core/base/units.h"
#include "io/tls/tlserr.h"
#include <errno.h>
#include <openssl/pem.h>
#include <stdio.h>

#define SYSTEM_STORE_MAX_BYTES ((size_t)(16 * MIB))
#define ROOT_MAX_BYTES ((size_t)(64 * KIB))

/* False when it cannot be read or is beyond all measure. */
static bool append_file(struct strbuf *sb, const char *path)
{
    char piece[16 * 1024];
    size_t n;
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return false;
    while ((n = fread(piece, 1, sizeof piece, in)) > 0 && strbuf_put(sb, slice_of(piece, n)))
        ;
    bool ok = feof(in) && !ferror(in);
    fclose(in);
    return ok;
}

bool bundle_refresh(const struct statedir *d, const char *system_file, X509 *root, struct err *note,
                    struct err *err)
{
    struct strbuf sb;
    char *pem;
    BIO *mem = BIO_new(BIO_s_mem());
    if (mem == NULL || PEM_write_bio_X509(mem, root) != 1) {
        BIO_free(mem);
        return tlserr_set(err, BUNDLE_FILE);
    }
    strbuf_init(&sb, SYSTEM_STORE_MAX_BYTES + ROOT_MAX_BYTES);
    if (system_file == NULL || !append_file(&sb, system_file)) {
        err_set(note, "no system trust store found: %s/" BUNDLE_FILE " holds the local root alone",
                d->path);
        strbuf_reset(&sb);
    } else if (sb.n > 0 && sb.p[sb.n - 1] != '\n') {
        strbuf_putc(&sb, '\n');
    }
    long n = BIO_get_mem_data(mem, &pem);
    bool ok = strbuf_put(&sb, slice_of(pem, (size_t)n)) &&
              statedir_update(d, BUNDLE_FILE, strbuf_slice(&sb), err);
    strbuf_fini(&sb);
    BIO_free(mem);
    return ok;
}
