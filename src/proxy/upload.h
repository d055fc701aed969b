/* The sending half of an attempt: head, Expect, body, trailers (security requirements C1, C11,
 * J11). */
#ifndef RETRYD_PROXY_UPLOAD_H
#define RETRYD_PROXY_UPLOAD_H

#include "proxy/attempt.h"

/* Writes the head, and as much of the body as there is and as goes. Tells the drive XEV_SENT when
 * all is written. */
void upload_start(struct attempt *at);
/* The connection takes bytes again, or another turn has come. */
void upload_pump(struct attempt *at);
/* The interim answer came, or its second is over. */
void upload_go_on(struct attempt *at);
/* The client sent more body, or the end of it. */
void upload_more(struct attempt *at);

#endif
