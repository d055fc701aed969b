/* How OpenSSL starts in this program (security requirements G2, H4). */
#include "io/tls/tlsinit.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdbool.h>

/* Keys of the process and ephemeral keys of handshakes under way come from here, and a full heap
 * fails the handshake: enough for some 10,000 of them at once. Untouched pages cost nothing. */
#define KEY_HEAP_BYTES (1 << 20)
#define KEY_HEAP_MIN_BYTES 32

void tlsinit(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    /* 2 means "not locked" (RLIMIT_MEMLOCK): still guarded and kept out of dumps. */
    CRYPTO_secure_malloc_init(KEY_HEAP_BYTES, KEY_HEAP_MIN_BYTES);
}
