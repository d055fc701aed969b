/* Clients and an origin for fuzz_proxy: they speak in canned pieces, remember what was whole and
 * what was cut, and judge in the end what the clients got. */
#ifndef RETRYD_FUZZ_FAKE_FAKES_H
#define RETRYD_FUZZ_FAKE_FAKES_H

#include "core/base/attr.h"
#include "core/base/slice.h"
#include "core/base/strbuf.h"
#include "core/base/units.h"
#include "core/http/message.h"

#include <stdint.h>

enum {
    FAKES_CLIENTS = 3,
    FAKES_ORIGINS = 24, /* connections in a run; more are refused */
    FAKES_REQUESTS = 64,
    FAKES_ANSWERS = 100,
    FAKES_QUEUE = 32,
};

/* Listening sockets that serve all runs. */
struct fakes_doors {
    int client, origin;
    uint16_t client_port, origin_port;
};

struct fake_client {
    int fd; /* -1: none */
    struct strbuf got;
    bool eof, cut;     /* how its input ended */
    bool unchecked;    /* it said what we cannot follow */
    bool refusing;     /* it said something that ends the connection, or may */
    struct slice rest; /* of a canned request that was begun */
    size_t bulk;       /* bytes of the body still to say */
    enum http_method methods[FAKES_QUEUE];
    unsigned n_requests;
};

struct fake_origin {
    int fd;
    struct strbuf got;
    size_t scanned;
    int open;     /* the answer that was begun, or -1 */
    bool chunked; /* the open one; else it is of a length, or until the end */
    bool bulk;    /* it goes on whenever there is room */
    bool until_end;
    bool ended; /* nothing can be said any more */
    unsigned n_requests;
    int last;         /* number of the last request, or -1 */
    bool last_counts; /* it counts as an attempt already */
};

/* The body is its letter, n times. */
struct fake_answer {
    size_t n;    /* bytes of it in the end */
    size_t left; /* of them still to say */
    bool whole;
};

struct fakes {
    const struct fakes_doors *doors;
    struct fake_client clients[FAKES_CLIENTS];
    struct fake_origin origins[FAKES_ORIGINS];
    unsigned n_clients, n_origins;
    unsigned client, origin; /* whose turn it is */
    struct fake_answer answers[FAKES_ANSWERS];
    unsigned n_answers, n_sent; /* n_sent: requests numbered so far */
    unsigned attempts[FAKES_REQUESTS], allowed[FAKES_REQUESTS];
    bool clients_stall, origin_stalls;
    bool origin_gone; /* resets whatever comes */
    bool faulted;     /* the proxy was told that a good connection is broken: its end is no cut */
    unsigned kinds[FAKES_REQUESTS]; /* of the requests, by number */
    bool origin_raw;                /* it said what we cannot follow: contents are not judged */
};

bool fakes_open_doors(struct fakes_doors *d);
void fakes_init(struct fakes *p, const struct fakes_doors *doors);
void fakes_fini(struct fakes *p);

/* A new client; returns the proxy's end, or -1. */
int fakes_connect(struct fakes *p);
/* The client whose turn it is goes on with its request, or begins one of that kind. */
void fakes_request(struct fakes *p, unsigned kind);
/* The same of the origin's connection and an answer. */
void fakes_answer(struct fakes *p, unsigned kind);
void fakes_raw(struct fakes *p, bool by_client, struct slice bytes);
/* how: odd resets, even half-closes. */
void fakes_client_ends(struct fakes *p, unsigned how);
void fakes_origin_ends(struct fakes *p, unsigned how);
/* Whose turn it is from now on: two bits for the client, two for the origin's connections from the
 * last one back. */
void fakes_choose(struct fakes *p, unsigned who);
/* Accepts, and reads what there is. */
void fakes_read(struct fakes *p);
void fakes_judge(const struct fakes *p);
/* What all runs came to, so that a target which exercises nothing is noticed. */
struct fakes_totals {
    uint64_t requests, attempts, delivered, cut, own;
};
extern struct fakes_totals fakes_totals;

#endif
