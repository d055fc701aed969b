/* Strict incremental HTTP/1.1 head parser, both directions (RFC 9112 2-6; security requirements
 * B1-B8, B12, B14, D1, D2).
 *
 * Anything that the grammar does not match is refused, never repaired. A head is judged as bytes
 * arrive: a bare LF or CR is refused at once. Feed the same growing buffer again after PARSE_MORE;
 * the scan position is kept, so that one-byte reads stay linear. */
#ifndef RETRYD_CORE_HTTP_H1_HEAD_H
#define RETRYD_CORE_HTTP_H1_HEAD_H

#include "core/base/arena.h"
#include "core/http/h1_fields.h"
#include "core/http/message.h"

struct h1_limits {
    size_t head_bytes;   /* whole head: 431 beyond */
    size_t target_bytes; /* 414 beyond */
    size_t fields;       /* count: 431 beyond */
};

/* Request 64 KiB / 16 KiB / 256, response 128 KiB / - / 256. */
extern const struct h1_limits h1_request_limits, h1_response_limits;

enum h1_part {
    H1_METHOD, /* or the start of a status line */
    H1_TARGET,
    H1_VERSION,
    H1_REASON,
    H1_FIELDS,
};

/* State of one head; all-zero is a fresh start. */
struct h1_head {
    size_t scanned;    /* bytes of the buffer already looked at */
    bool started;      /* the start line is complete */
    unsigned blank;    /* empty lines before the start line (at most 4, requests only) */
    size_t head_start; /* first byte after those empty lines */

    /* private */
    enum h1_part part;
    size_t part_start;
    struct h1_fields fields;

    /* results */
    size_t consumed;     /* with PARSE_OK: bytes of the buffer that the head took */
    unsigned status;     /* with PARSE_BAD: the status to answer a client with (400, 414, 431, 501,
                            505, 417); meaningless for responses */
    const char *problem; /* with PARSE_BAD: static text, fit for a log and for the answer */
};

/* buf[0..n) is everything received and not consumed yet. On PARSE_OK *out is filled, its slices on
 * the arena (one copy of the head). Framing rules applied: one Content-Length of 1*DIGIT (<= 18),
 * or Transfer-Encoding exactly one field "chunked" on 1.1, never both; Host exactly once on 1.1, at
 * most once on 1.0 (CONNECT: may lack it, clients.md rule 1); Connection may not name end-to-end
 * essentials (C7). CONNECT with a body framing is refused. Expect other than 100-continue: 417. */
enum parse h1_parse_request(struct h1_head *st, const char *buf, size_t n,
                            const struct h1_limits *lim, struct arena *a, struct http_req *out);

/* request_method decides about bodies (HEAD, CONNECT 2xx). 1xx heads parse like others, framing
 * NONE (whether a 101 was asked for is the caller's business: h1 refuses nothing about it). */
enum parse h1_parse_response(struct h1_head *st, const char *buf, size_t n,
                             const struct h1_limits *lim, enum http_method request_method,
                             struct arena *a, struct http_resp *out);

#endif
