/* A byte stream over a connected socket, plain or TLS by an ops table: two bounded buffers, one
 * callback, one lazily moved deadline. It knows nothing of HTTP.
 *
 * The owner's callback may call any function here, conn_close included; after conn_close no
 * callback comes any more. All reading stops while the input buffer is full or conn_pause_read is
 * in force. */
#ifndef RETRYD_IO_NET_CONN_H
#define RETRYD_IO_NET_CONN_H

#include "core/base/slice.h"
#include "io/net/loop.h"
#include "io/net/netfail.h"
#include <openssl/ssl.h>
#include <sys/socket.h>

struct conn;

enum conn_event {
    CONN_UP,       /* TLS handshake finished (only after conn_start_tls) */
    CONN_READABLE, /* conn_in() has new bytes */
    CONN_DRAINED,  /* output fell to the low mark after having been above the high mark */
    CONN_EOF,    /* orderly end of the peer's stream: FIN on plain, close_notify on TLS; once, after
                    all bytes before it were offered and are in conn_in() */
    CONN_BROKEN, /* no more I/O is possible: conn_failure(), conn_detail(); close it. Bytes received
                    before were offered and stay in conn_in(). While reading is paused, a reset
                    waits until nothing is left unread; a failed write is told at once */
    CONN_TIMEOUT, /* the deadline passed; the connection still works */
};

typedef void conn_fn(struct conn *c, enum conn_event ev, void *arg);

struct conn_limits {
    size_t in_bytes; /* input buffer, at least the largest head one wants to parse */
    size_t out_high; /* conn_out_full() above this */
    size_t out_low;  /* CONN_DRAINED at or below this */
};

/* Takes fd (connected, non-blocking). Reading starts at once. */
struct conn *conn_new(struct loop *l, int fd, const struct conn_limits *lim, conn_fn *fn,
                      void *arg);
/* Hands the connection to another owner (pool, tunnel, drive). */
void conn_set_owner(struct conn *c, conn_fn *fn, void *arg);
/* Narrower bounds from here on. Output that is over the new high mark owes its CONN_DRAINED. */
void conn_set_limits(struct conn *c, const struct conn_limits *lim);
/* Unhooks now, frees at the end of the turn. Buffered output is tried once, then TLS close_notify.
 * abort true: RST instead of FIN (the peer must notice a cut); output that the socket does not take
 * at once is lost and makes it RST as well. */
void conn_close(struct conn *c, bool abort);

/* Turns the stream TLS, taking ssl (client or server side already set). Bytes already in conn_in()
 * are fed to TLS first. Callback CONN_UP or CONN_BROKEN follows. A second call runs this
 * TLS inside the first: through a parent proxy that is spoken to in TLS, or with a client that
 * speaks TLS to us. */
void conn_start_tls(struct conn *c, SSL *ssl);
bool conn_is_tls(const struct conn *c);

/* Unread input, contiguous; valid until the next call that touches c. */
struct slice conn_in(const struct conn *c);
/* Drops n bytes from the front. Reading goes on when there is room again. */
void conn_consume(struct conn *c, size_t n);
/* True if conn_in() is as large as it may get. */
bool conn_in_full(const struct conn *c);
void conn_pause_read(struct conn *c);
void conn_resume_read(struct conn *c);
/* Delivers CONN_READABLE again at the end of the turn when input was left unread, else CONN_EOF
 * again when the stream has ended: for a new owner, or for the next message on the same connection.
 */
void conn_poke(struct conn *c);
/* CONN_EOF was seen. */
bool conn_at_eof(const struct conn *c);

/* Appends to the output buffer; never refuses, so a writer asks conn_out_full() before each piece
 * of at most 64 KiB. Sent on conn_flush or when the buffer passes 64 KiB. */
void conn_write(struct conn *c, struct slice s);
void conn_flush(struct conn *c);
size_t conn_out_pending(const struct conn *c);
bool conn_out_full(const struct conn *c);
/* After the pending output: half-close (plain FIN, TLS close_notify). Nothing may be written any
 * more. */
void conn_shutdown_write(struct conn *c);

/* CONN_TIMEOUT once when the loop's clock reaches at_ns; 0: none. Cheap to move. */
void conn_deadline(struct conn *c, int64_t at_ns);

enum net_fail conn_failure(const struct conn *c);
const char *conn_detail(const struct conn *c); /* "", or a line about the failure */
uint64_t conn_bytes_in(const struct conn *c);  /* ever received above TLS, plain otherwise */
uint64_t conn_bytes_out(const struct conn *c); /* handed to the socket */
/* Peer address as text, for logs; owned by c. */
const char *conn_peer(const struct conn *c);
/* Calls the peer so from now on (at most 71 bytes): the socket's own address may say nothing.
 * left(arg) once, when the connection is closed, whoever owns it by then. */
void conn_set_guest(struct conn *c, const char *name, void (*left)(void *arg), void *arg);
/* True when the peer is known to have left: no process holds the other end of the connection any
 * more (peerprobe.h). A half-closed peer that still reads has not left. One system call or few; not
 * for hot paths. */
bool conn_peer_gone(const struct conn *c);
/* Asks the socket: nothing has arrived, no end, no error, and nothing waits in either buffer. */
bool conn_quiet(struct conn *c);

#endif
