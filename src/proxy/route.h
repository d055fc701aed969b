/* Request -> where it goes, by which rules, on whose budget. */
#ifndef RETRYD_PROXY_ROUTE_H
#define RETRYD_PROXY_ROUTE_H

#include "core/aws/aws.h"
#include "proxy/proxy.h"
#include "proxy/reply.h"

enum { ROUTE_POOL_KEY_MAX = AUTHORITY_TEXT_MAX + 24 };

/* By which way a request came: borrowed for the life of its route. */
struct route_from {
    const struct authority *scope; /* inside an opened tunnel its CONNECT authority, else NULL */
    struct slice peer;             /* who sent it, without a port: for keys */
    struct slice listener;         /* the name of the listener */
    const struct listener_config *rules; /* of the listener */
};

struct route {
    struct authority origin;
    bool tls;
    struct slice path_query; /* origin-form target, byte for byte */
    struct slice host;       /* Host to send; empty: as received */
    struct aws_target target;
    struct effective effective; /* the settings for this request, its retry policy among them */
    struct budget *budget;      /* from route_budget; route_release */
    struct route_from from;
    enum aws_wire wire; /* for own answers */
    char pool_key[ROUTE_POOL_KEY_MAX];
    size_t pool_key_n;
    struct sockaddr_storage fixed; /* from `resolve` */
    struct way way;
    bool absolute; /* the request goes to a parent proxy in absolute-form: way.parent */
};

enum route_result {
    ROUTE_FORWARD,        /* *out is filled; the budget comes later */
    ROUTE_REFUSED,        /* answer *refusal; *why is static text or "" */
    ROUTE_ANSWER_OPTIONS, /* OPTIONS with Max-Forwards: 0 ends here */
};

/* May rewrite Max-Forwards in the request's fields (on the arena). */
enum route_result route_request(struct proxy *px, struct http_req *req,
                                const struct route_from *from, struct arena *a, struct route *out,
                                enum reply_kind *refusal, const char **why);
/* The query protocol names its operation in the body: looks again, once the first bytes of it are
 * there. */
void route_identify_late(struct proxy *px, struct route *r, const struct http_req *req,
                         struct slice body_prefix, struct arena *a);
/* Whether the upstream client hangs on the body: its first ROUTE_PREFIX_BYTES are then to be
 * waited for. */
enum { ROUTE_PREFIX_BYTES = 4096 };
bool route_key_in_body(const struct proxy *px, const struct route *r, const struct http_req *req);
/* Which pooled connections may serve it, and whose slots it takes: pool_key, from the origin, tls,
 * absolute, the way and the rules of the listener (security requirements G10, I3). */
void route_pool_key(struct route *r);
/* Finds the budget of the request's upstream client and holds it. */
void route_budget(struct proxy *px, struct route *r, const struct http_req *req,
                  struct slice body_prefix, struct arena *a);
void route_release(struct route *r);

/* Our own pseudonym in a received Via: the request goes in circles (security requirement C9). */
bool route_came_through_here(const struct proxy *px, const struct http_req *req);
/* What a CONNECT that we pass on says in Via: all that was received, then us. False: that is more
 * than out takes, which so many proxies in a row are taken for a circle. */
bool route_via_chain(const struct proxy *px, const struct http_req *req, char out[PARENT_VIA_MAX]);

/* What CONNECT to this authority becomes. */
enum route_connect { ROUTE_OPEN, ROUTE_TUNNEL, ROUTE_REFUSE_PORT, ROUTE_REFUSE_HOST };
enum route_connect route_connect(const struct proxy *px, const struct listener_config *rules,
                                 const struct authority *to);
/* aws_only: whether the host is of AWS or of intercept.hosts, if it must be (security requirement
 * I2). */
bool route_host_allowed(const struct config *c, const struct listener_config *rules,
                        struct slice host);
/* Whether private addresses may be dialled for this host: where the listener says so, and for AWS
 * service endpoints, which VPC endpoints have there (security requirement I3). */
bool route_private_ok(const struct listener_config *rules, struct slice host);
/* The `resolve` entry for the authority; false: none. */
bool route_resolve(const struct config *c, const struct authority *to,
                   struct sockaddr_storage *out);

#endif
