/* The names and password hashes of a credentials_file, and checking what clients bring (security
 * requirement I1).
 *
 * Hashes are made to be slow, so a verified pair is remembered, as a keyed hash of it, and costs
 * that once in each worker; a few refused ones are remembered too. Checks that are left take at
 * most a tenth of the worker's time: beyond that they are put off, so that nobody can hold up the
 * others by guessing. */
#ifndef RETRYD_PROXY_CREDENTIALS_H
#define RETRYD_PROXY_CREDENTIALS_H

#include "core/base/err.h"
#include "core/base/slice.h"

#include <stdint.h>

enum {
    CREDENTIALS_VERIFIED_MAX = 256, /* pairs that are remembered */
    CREDENTIALS_REFUSED_MAX = 64,
    CREDENTIALS_NAME_MAX = 64, /* bytes of a name */
};

struct credentials;

/* Lines NAME:HASH, HASH as of crypt(5) by a method that is still held to be good; "#" begins a
 * comment line. NULL with *err, which names file and line. Nobody but the owner and the group may
 * have access. */
struct credentials *credentials_read(const char *path, struct err *err);
void credentials_free(struct credentials *c);

enum credentials_verdict {
    CREDENTIALS_GOOD,  /* *name: of the file, for as long as c lives */
    CREDENTIALS_WRONG, /* none, unreadable, an unknown name or another password */
    CREDENTIALS_BUSY,  /* not looked at: too many unknown ones were */
};
/* value: of the one Proxy-Authorization field; empty when there is none or more than one. */
enum credentials_verdict credentials_check(struct credentials *c, struct slice value,
                                           int64_t now_ns, const char **name);

#endif
