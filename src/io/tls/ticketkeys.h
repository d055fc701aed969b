/* Keys of session tickets (security requirement F8): new each hour, those of the hour before still
 * opened. All workers have the same ones without telling each other, since they follow from one
 * secret, in memory only, and the hour. */
#ifndef RETRYD_IO_TLS_TICKETKEYS_H
#define RETRYD_IO_TLS_TICKETKEYS_H

#include "core/base/err.h"
#include <openssl/ssl.h>
#include <time.h>

enum { TICKETKEYS_SECRET_BYTES = 32 };

struct ticketkeys;

/* secret: of TICKETKEYS_SECRET_BYTES random bytes, made before the workers were. */
struct ticketkeys *ticketkeys_new(const unsigned char *secret);
void ticketkeys_free(struct ticketkeys *k);
/* The keys of now (wall clock) and of the hour before. False with *err. */
bool ticketkeys_turn(struct ticketkeys *k, time_t now, struct err *err);
/* The tickets of ctx are made and opened with them; ctx borrows k. */
bool ticketkeys_use(SSL_CTX *ctx, struct ticketkeys *k);

#endif
