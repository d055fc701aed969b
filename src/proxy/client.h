/* A downstream connection: reads heads and bodies, owns one exchange at a time, writes answers.
 *
 * state     | true in it                                           | waits for
 * INTRODUCTION | a load balancer is to say who connects            | PROXY protocol header
 * GREETING  | TLS with the proxy itself runs                       | CONN_UP
 * HEAD      | between requests, or a head is incomplete            | bytes, idle or head timeout
 * HELLO     | CONNECT was answered; the client shall speak TLS     | a ClientHello, then its turn
 * HANDSHAKE | TLS with the client runs                             | CONN_UP
 * EXCHANGE  | a drive is at work                                   | the drive
 * CLOSED    | given away or closed; freed at the end of the turn   | - */
#ifndef RETRYD_PROXY_CLIENT_H
#define RETRYD_PROXY_CLIENT_H

#include "core/http/h1_body.h"
#include "core/http/h1_head.h"
#include "proxy/pace.h"
#include "proxy/proxy.h"
#include "proxy/relay.h"
#include "proxy/reply.h"

enum client_state {
    CLIENT_INTRODUCTION,
    CLIENT_GREETING,
    CLIENT_HEAD,
    CLIENT_HELLO,
    CLIENT_HANDSHAKE,
    CLIENT_EXCHANGE,
    CLIENT_CLOSED,
};

struct drive;

struct client {
    struct list link; /* proxy.clients */
    struct proxy *px;
    struct conn *conn;
    enum client_state state;
    const struct entrance *entrance;
    const struct listener_config *listener; /* the rules of the entrance */
    bool intercepted;                       /* inside a tunnel that we opened */
    struct authority scope;                 /* the CONNECT authority then */
    const char *via;                        /* of the CONNECT, for a parent; on the arena */
    int64_t hello_since_ns;                 /* HELLO: the 200 */
    struct handshake turn;                  /* among proxy.handshakes */

    struct arena arena; /* of the present request */
    struct peer peer;
    const char *user; /* who its credentials say it is; NULL: none were asked for */
    struct h1_head head;
    struct http_req req;
    struct h1_body body;
    struct bodylog log;
    struct drive *drive;
    struct relay relay;

    bool body_over;        /* more of it than limits.request_body */
    bool body_done;        /* the request body was read whole */
    bool sent_100;         /* the one interim answer went out */
    uint64_t sent_1xx[2];  /* a bit for each other interim status that went out */
    bool started;          /* bytes of a final answer went out */
    bool must_close;       /* after this exchange */
    bool half_closed;      /* the client sent its FIN; may still read */
    int64_t head_since_ns; /* HEAD: first byte of the head, 0: none yet; EXCHANGE: last byte of the
                              body */
    bool delivering;       /* HEAD: the answer before is not out yet */
    uint64_t out_seen;     /* conn_bytes_out at the last look, and when it last moved */
    int64_t out_progress_ns;
    bool out_waits;        /* at the last look there was output, and has been since */
    struct pace body_pace; /* at which it sends its body; at which it takes what waits for it */
    struct pace out_pace;
    unsigned requests; /* on this connection */
};

/* Takes the accepted descriptor; closes it at once if the peer may not come in. */
void client_new(struct proxy *px, const struct entrance *entrance, int fd,
                const struct sockaddr *peer);
/* Between requests: the next head is waited for. */
void client_await_head(struct client *c);
/* Ends the connection now. abort: the client must notice that something is missing (RST). Tells a
 * running drive nothing: it is the drive's or the client's own last act. */
void client_close(struct client *c, bool abort);
/* After its last bytes: gives the connection to linger.h. */
void client_part(struct client *c);
/* For the start of a drain: closes it when it is between requests, answers a request that only
 * waits. */
void client_begin_drain(struct client *c);
/* For the end of a drain: cuts what still runs, after an answer where none was begun. */
void client_give_up(struct client *c);

/* The drive ended; it is freed by the caller. ok: the answer was written whole. */
void client_exchange_done(struct client *c, bool ok);
/* The attempt has taken body bytes: there may be room for more. */
void client_body_wanted(struct client *c);
/* The one 100 Continue, if the client waits for it and nothing was sent. */
void client_continue(struct client *c);
/* Another interim answer of the upstream (102 to 199): passed on bare and, whatever attempts
 * repeat, once for each status; never to a 1.0 client, never once the final answer has begun, never
 * to one that waits for 100 Continue (C11, C14, D6). */
void client_interim(struct client *c, unsigned status, struct slice reason);
/* True when the client is known to be gone: fully closed, not just half. */
bool client_is_gone(struct client *c);

#endif
