/* Answers of our own, in the protocol that the client of this request speaks. The rows are in
 * reply.def. */
#ifndef RETRYD_PROXY_REPLY_H
#define RETRYD_PROXY_REPLY_H

#include "core/aws/errcode.h"
#include "core/retry/retry.h"
#include "io/net/conn.h"
#include "io/net/netfail.h"

enum reply_kind {
#define REPLY(kind, status, word, code, text) REPLY_##kind,
#include "proxy/reply.def"
#undef REPLY
    REPLY_COUNT,
};

/* Writes the whole answer to the connection. head_request: without the body. detail: a line of our
 * own about what happened, or "": never bytes of the request. */
void reply_write(struct conn *to, enum reply_kind kind, enum aws_wire wire, bool head_request,
                 bool close, uint64_t xid, const char *detail);

unsigned reply_status(enum reply_kind kind);
const char *reply_word(enum reply_kind kind);
enum reply_kind reply_for_failure(enum retry_failure f);
enum reply_kind
reply_for_status(unsigned status); /* of the head parser: 400, 414, 417, 431, 501, 505 */
enum retry_failure reply_failure_of_net(enum net_fail f);

#endif
