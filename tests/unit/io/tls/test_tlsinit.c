/* OpenSSL does not take orders from the environment (security requirement G2), and private keys
 * live in the guarded heap (H4). */
#include "unit.h"

#include "io/tls/mint.h"
#include "io/tls/tlsclient.h"
#include "io/tls/tlsinit.h"
#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <unistd.h>

/* Runs in a process of its own that has not touched OpenSSL before. */
START_TEST(openssl_conf_is_ignored)
{
    static const char conf[] =
        "openssl_conf = top\n[top]\nssl_conf = ssl\n[ssl]\nsystem_default = sys\n"
        "[sys]\nMaxProtocol = TLSv1.2\nOptions = UnsafeLegacyRenegotiation\n";
    char path[] = "/tmp/retryd-test-conf-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, conf, sizeof conf - 1), (int)sizeof conf - 1);
    close(fd);
    ck_assert_int_eq(setenv("OPENSSL_CONF", path, 1), 0);
    if (_i == 0)
        tlsinit();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    /* The second run shows that the file would have had an effect. */
    ck_assert_int_eq(SSL_CTX_get_max_proto_version(ctx), _i == 0 ? 0 : TLS1_2_VERSION);
    SSL_CTX_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(keys_are_in_the_guarded_heap)
{
    struct err err = {""};
    tlsinit();
    tlsinit();
    ck_assert_int_eq(CRYPTO_secure_malloc_initialized(), 1);
    EVP_PKEY_free(mint_key(&err)); /* the random generator settles in the same heap */
    size_t before = CRYPTO_secure_used();
    EVP_PKEY *key = mint_key(&err);
    ck_assert_ptr_nonnull(key);
    ck_assert_uint_gt(CRYPTO_secure_used(), before);
    EVP_PKEY_free(key);
    ck_assert_uint_eq(CRYPTO_secure_used(), before);
}
END_TEST

static TCase *case_tlsinit(void)
{
    TCase *tc = tcase_create("tlsinit");
    tcase_add_loop_test(tc, openssl_conf_is_ignored, 0, 2);
    tcase_add_test(tc, keys_are_in_the_guarded_heap);
    return tc;
}

UNIT_MAIN("tlsinit", case_tlsinit)
