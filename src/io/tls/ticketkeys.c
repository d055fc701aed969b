/* HKDF (RFC 5869) over the number of the hour; a ticket is AES-256-CBC under HMAC-SHA-256, as
 * OpenSSL makes them (RFC 5077 4). */
#include "io/tls/ticketkeys.h"

#include "core/base/xalloc.h"
#include "io/tls/tlserr.h"
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 16, MAC_BYTES = 32, CIPHER_BYTES = 32, HOUR_S = 3600 };

struct ticketkey {
    unsigned char name[NAME_BYTES], mac[MAC_BYTES], cipher[CIPHER_BYTES];
};

struct ticketkeys {
    unsigned char secret[TICKETKEYS_SECRET_BYTES];
    int64_t hour; /* of `present`; -1: none yet */
    struct ticketkey present, before;
};

struct ticketkeys *ticketkeys_new(const unsigned char *secret)
{
    struct ticketkeys *k = xcalloc(1, sizeof *k);
    memcpy(k->secret, secret, sizeof k->secret);
    k->hour = -1;
    return k;
}

void ticketkeys_free(struct ticketkeys *k)
{
    if (k == NULL)
        return;
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

static bool derive(struct ticketkeys *k, int64_t hour, struct ticketkey *out)
{
    char digest[] = "SHA256", info[] = "session tickets\0hour____";
    memcpy(info + sizeof info - 1 - sizeof hour, &hour, sizeof hour);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, k->secret, sizeof k->secret),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, sizeof info - 1),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
    bool ok = ctx != NULL && EVP_KDF_derive(ctx, (unsigned char *)out, sizeof *out, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    return ok;
}

bool ticketkeys_turn(struct ticketkeys *k, time_t now, struct err *err)
{
    int64_t hour = (int64_t)now / HOUR_S;
    if (hour == k->hour)
        return true;
    if (!derive(k, hour, &k->present) || !derive(k, hour - 1, &k->before))
        return tlserr_set(err, "session ticket keys");
    k->hour = hour;
    return true;
}

static bool start(const struct ticketkey *key, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                  EVP_MAC_CTX *mac, int seal)
{
    char digest[] = "SHA256";
    unsigned char mac_key[MAC_BYTES];
    memcpy(mac_key, key->mac, sizeof mac_key);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, mac_key, sizeof mac_key),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    bool ok = EVP_MAC_CTX_set_params(mac, params) == 1 &&
              EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, seal) == 1;
    OPENSSL_cleanse(mac_key, sizeof mac_key);
    return ok;
}

/* -1: failed; 0: not one of ours, a full handshake follows; 1: good; 2: good, and to be renewed. */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int seal)
{
    const struct ticketkeys *k = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const struct ticketkey *key = &k->present;
    if (seal) {
        memcpy(name, key->name, NAME_BYTES);
        return RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1 &&
                       start(key, iv, cipher, mac, 1)
                   ? 1
                   : -1;
    }
    bool old = CRYPTO_memcmp(name, k->before.name, NAME_BYTES) == 0;
    if (old)
        key = &k->before;
    else if (CRYPTO_memcmp(name, key->name, NAME_BYTES) != 0)
        return 0;
    if (!start(key, iv, cipher, mac, 0))
        return -1;
    return old ? 2 : 1;
}

bool ticketkeys_use(SSL_CTX *ctx, struct ticketkeys *k)
{
    return SSL_CTX_set_app_data(ctx, k) == 1 &&
           SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket) == 1;
}
