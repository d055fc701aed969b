/* Body framing of one direction: length, chunked, until close (RFC 9112 6 and 7; security
 * requirements B9, B10, B13). Incremental; yields slices of the caller's buffer, copies nothing.
 *
 * Chunk extensions are checked and dropped. Trailer fields are checked; the allowed ones are kept
 * for forwarding, framing, routing, authentication, hop-by-hop and Content-* names are dropped. */
#ifndef RETRYD_CORE_HTTP_H1_BODY_H
#define RETRYD_CORE_HTTP_H1_BODY_H

#include "core/base/arena.h"
#include "core/base/strbuf.h"
#include "core/http/h1_head.h"
#include "core/http/message.h"

enum h1_chunk_state {
    H1_CHUNK_SIZE,
    H1_CHUNK_EXT,
    H1_CHUNK_SIZE_LF,
    H1_CHUNK_DATA,
    H1_CHUNK_DATA_CR,
    H1_CHUNK_DATA_LF,
    H1_CHUNK_TRAILER,
    H1_CHUNK_END,
};

struct h1_body {
    enum http_framing framing;
    uint64_t left;  /* bytes of the length body or of the current chunk still to come */
    uint64_t total; /* data bytes yielded so far */
    bool done;      /* the end of the body was seen (never by itself for UNTIL_CLOSE) */
    const char *problem;

    /* chunked only; private */
    enum h1_chunk_state chunk;
    unsigned ext;          /* state inside an extension */
    unsigned digits;       /* hex digits of the size seen */
    unsigned ext_bytes;    /* extension bytes of the current chunk line, bounded */
    uint64_t overhead;     /* sum of all chunk-line bytes, bounded against total */
    struct strbuf trailer; /* raw trailer section, bounded */
    struct h1_fields scan; /* of the trailer section */
    struct header_list trailers;
};

/* Borrows nothing; call h1_body_fini when done with it. */
void h1_body_init(struct h1_body *b, enum http_framing framing, uint64_t content_length);
void h1_body_fini(struct h1_body *b);

/* Takes bytes from buf[0..n): *used of them are consumed, *data is a run of body bytes within buf
 * (possibly empty). PARSE_OK: the body has ended (b->done), nothing after *used belongs to it.
 * PARSE_MORE: call again, with the rest of the buffer if *used < n, else with more bytes.
 * PARSE_BAD: b->problem. Trailers, when allowed to be forwarded, are in b->trailers on arena a. */
enum parse h1_body_read(struct h1_body *b, const char *buf, size_t n, struct arena *a, size_t *used,
                        struct slice *data);

/* The peer's orderly end of stream arrived. True if that completes the body (UNTIL_CLOSE, or done);
 * false: it was cut short. */
bool h1_body_eof(struct h1_body *b);

/* For writing: "SIZE\r\n" before data of n > 0 bytes, "\r\n" after it, and the end
 * "0\r\n[trailers]\r\n". */
enum { H1_CHUNK_HEAD_MAX = 20 };
size_t h1_chunk_head(char out[H1_CHUNK_HEAD_MAX], uint64_t n);
bool h1_chunk_end(struct strbuf *out, const struct header_list *trailers);

#endif
