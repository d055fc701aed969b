/* Request -> where it goes, by which rules, on whose budget. */
#ifndef RETRYD_PROXY_ROUTE_H
#define RETRYD_PROXY_ROUTE_H

#include "core/aws/aws.h"
#include "proxy/proxy.h"
#include "proxy/reply.h"

enum { ROUTE_POOL_KEY_MAX = AUTHORITY_TEXT_MAX + 8 };

struct route {
    struct authority origin;
    bool tls;
    struct slice path_query; /* origin-form target, byte for byte */
    struct slice host;       /* Host to send; empty: as received */
    struct aws_target target;
    struct effective effective; /* the settings for this request, its retry policy among them */
    struct budget *budget;      /* held; route_release */
    enum aws_wire wire;         /* for own answers */
    char pool_key[ROUTE_POOL_KEY_MAX];
    size_t pool_key_n;
    struct sockaddr_storage fixed; /* from `resolve` */
};

enum route_result {
    ROUTE_FORWARD,        /* *out is filled, its budget held */
    ROUTE_REFUSED,        /* answer *refusal; *why is static text or "" */
    ROUTE_ANSWER_OPTIONS, /* OPTIONS with Max-Forwards: 0 ends here */
};

/* scope: inside an opened tunnel its CONNECT authority, else NULL. May rewrite Max-Forwards in the
 * request's fields (on the arena). */
enum route_result route_request(struct proxy *px, struct http_req *req,
                                const struct authority *scope, struct arena *a, struct route *out,
                                enum reply_kind *refusal, const char **why);
/* The query protocol names its operation in the body: looks again, once the first bytes of it are
 * there. */
void route_identify_late(struct proxy *px, struct route *r, const struct http_req *req,
                         struct slice body_prefix, struct arena *a);
void route_release(struct route *r);

/* What CONNECT to this authority becomes. */
enum route_connect { ROUTE_OPEN, ROUTE_TUNNEL, ROUTE_REFUSE_PORT };
enum route_connect route_connect(const struct proxy *px, const struct authority *to);
/* The `resolve` entry for the authority; false: none. */
bool route_resolve(const struct config *c, const struct authority *to,
                   struct sockaddr_storage *out);

#endif
