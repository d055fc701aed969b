/* What counts as a trust anchor towards origins (security requirements G4, G5).
 *
 * Only files are read, never a directory of hashes: OpenSSL looks into those later and by itself,
 * where our own root could not be kept out. */
#include "io/tls/truststore.h"

#include "io/tls/mint.h"
#include "io/tls/tlserr.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <unistd.h>

const char *truststore_system_file(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Gentoo */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem",                  /* Alpine, BSD, macOS */
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    const char *fallback = X509_get_default_cert_file();
    return access(fallback, R_OK) == 0 ? fallback : NULL;
}

/* A root that was replaced since is as little an anchor as the present one: hence the name too. */
static bool is_own(X509 *cert, X509 *own_root)
{
    char name[sizeof MINT_ROOT_NAME];
    int n = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name,
                                      (int)sizeof name);
    if (n > 0 && strncmp(name, MINT_ROOT_NAME, strlen(MINT_ROOT_NAME)) == 0)
        return true;
    return own_root != NULL && EVP_PKEY_eq(X509_get0_pubkey(cert), X509_get0_pubkey(own_root)) == 1;
}

bool truststore_add(X509_STORE *store, const char *file, X509 *own_root, size_t *added,
                    struct err *err)
{
    BIO *in = BIO_new_file(file, "r");
    if (in == NULL) {
        ERR_clear_error();
        return err_set(err, "trust store %s: %s", file, strerror(errno));
    }
    X509 *cert;
    bool ok = true;
    while (ok && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
        if (!is_own(cert, own_root)) {
            ok = X509_STORE_add_cert(store, cert) == 1;
            *added += ok;
        }
        X509_free(cert);
    }
    /* "No start line" is how the end of a PEM file looks. */
    ok = ok && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(in);
    if (!ok) {
        tlserr_set(err, file);
        return false;
    }
    ERR_clear_error();
    return true;
}
