/* Requests and CONNECTs that end before an exchange begins: a line "refused", an answer of our own,
 * and the end of the connection. */
#ifndef RETRYD_PROXY_REFUSE_H
#define RETRYD_PROXY_REFUSE_H

#include "proxy/client.h"

/* Gives the connection to linger.h. detail: as reply_write. */
void refuse(struct client *c, enum reply_kind kind, const char *detail);

#endif
