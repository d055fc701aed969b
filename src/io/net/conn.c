/* The connection: two buffers and a callback around a stream.
 *
 * How it runs. The socket is registered once, edge-triggered for both directions, and never again:
 * pausing, resuming and waiting for room to write cost no system call. Each direction remembers
 * what it waits for (enum side); an edge turns waiting into SIDE_GO, and only the socket's "would
 * block" turns it back. All work happens in turn(), called for an edge or for a wake, which is a
 * deferred call. work_due() alone says whether there is something to do without a new edge: bytes
 * left inside OpenSSL or the socket by a pause, a full buffer or a used-up budget; output to push;
 * an end to tell. Every public function that can change the answer asks it last, so nothing is
 * forgotten and nothing spins.
 * - No callback from within a public function, none after conn_close; CONN_BROKEN is the last.
 * - At most 64 KiB are read per connection and turn of the loop (security requirement J11).
 * - The end is told after the bytes before it. A failed write does not end reading: the answer of a
 * peer that answered early and closed waits in the socket. */
#include "io/net/conn.h"

#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include "io/net/addrtext.h"
#include "io/net/lazytimer.h"
#include "io/net/peerprobe.h"
#include "io/net/stream.h"
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    READ_BUDGET_BYTES = 64 * 1024,  /* per turn of the loop */
    READ_FIRST_BYTES = 8 * 1024,    /* most heads fit; an idle connection has no buffer at all */
    READ_LEAST_BYTES = 1024,        /* less room than this and the buffer grows before a read */
    READ_BULK_BYTES = 64 * 1024,    /* once a read has filled its buffer */
    FLUSH_BYTES = 64 * 1024,        /* output is sent unasked beyond this */
    DIRECT_WRITE_BYTES = 16 * 1024, /* this much goes past the empty buffer: one copy less */
};

/* What one direction is waiting for. */
enum side {
    SIDE_GO,         /* nothing: the next call may succeed */
    SIDE_WAIT_READ,  /* the socket to become readable */
    SIDE_WAIT_WRITE, /* the socket to become writable */
    SIDE_END,        /* over */
};

enum conn_state {
    ST_OPEN,
    ST_HANDSHAKE, /* TLS was started; no bytes of the owner move */
    ST_BROKEN,    /* CONN_BROKEN was told; only conn_in() and conn_close() mean something */
    ST_CLOSED,    /* memory waits for the end of the turn */
};

enum shut { SHUT_NONE, SHUT_WANTED, SHUT_DONE };

struct conn {
    struct loop *loop;
    struct stream s;
    struct event *ev;
    conn_fn *fn;
    void *arg;
    struct conn_limits lim;

    enum conn_state state;
    enum side rd, wr;
    enum shut shut;
    bool paused;
    bool unread;       /* while paused: known to have bytes in the socket */
    bool eof;          /* the end was read */
    bool eof_told;     /* and told */
    bool write_failed; /* s.failure comes from a write: read what is left, then tell */
    bool flushing;     /* out is to be sent */
    bool was_full;     /* out has been above the high mark: CONN_DRAINED is owed */
    bool poked, in_turn, woken;

    struct iobuf in, out;
    size_t read_bytes; /* size of the next read */
    size_t budget;     /* left to read in turn_no */
    uint64_t turn_no, bytes_in, bytes_out;
    struct lazytimer deadline;
    void (*left)(void *arg), *left_arg; /* NULL: nobody asks */
    char peer[ADDRTEXT_BYTES];
};

static void set_state(struct conn *c, enum conn_state to)
{
    static const unsigned char from[] = {
        [ST_OPEN] = 1 << ST_HANDSHAKE,
        [ST_HANDSHAKE] = 1 << ST_OPEN,
        [ST_BROKEN] = 1 << ST_OPEN | 1 << ST_HANDSHAKE,
        [ST_CLOSED] = 1 << ST_OPEN | 1 << ST_HANDSHAKE | 1 << ST_BROKEN,
    };
    ASSERT(from[to] & 1 << c->state);
    c->state = to;
}

static void tell(struct conn *c, enum conn_event ev)
{
    c->fn(c, ev, c->arg);
}

/* --- what is to be done --- */

static bool may_read(const struct conn *c)
{
    return !c->paused && iobuf_len(&c->in) < c->lim.in_bytes;
}

static bool drained_due(const struct conn *c)
{
    return c->was_full && iobuf_len(&c->out) <= c->lim.out_low;
}

static bool end_due(const struct conn *c)
{
    if (c->s.failure == NET_OK)
        return c->eof && !c->eof_told && !c->paused;
    if (c->write_failed)
        return c->rd != SIDE_GO || !may_read(c);
    return !c->paused || iobuf_len(&c->in) == 0;
}

static bool work_due(const struct conn *c)
{
    if (c->state == ST_HANDSHAKE)
        return c->rd == SIDE_GO;
    if (c->state != ST_OPEN)
        return false;
    return (c->rd == SIDE_GO && may_read(c)) ||
           (c->wr == SIDE_GO && (c->flushing || c->shut == SHUT_WANTED)) || drained_due(c) ||
           c->poked || end_due(c);
}

static void turn(struct conn *c);

static void on_wake(void *arg)
{
    struct conn *c = arg;
    c->woken = false;
    if (c->state != ST_CLOSED)
        turn(c);
}

static void wake_if_due(struct conn *c)
{
    if (c->in_turn || c->woken || !work_due(c))
        return;
    c->woken = true;
    loop_defer(c->loop, on_wake, c);
}

/* --- reading --- */

/* Nothing can be read or written any more; s.failure says why. */
static void give_up(struct conn *c)
{
    if (iobuf_len(&c->out) > 0)
        c->write_failed = true;
    c->rd = c->wr = SIDE_END;
    c->flushing = c->was_full = false;
    iobuf_fini(&c->out);
}

static enum side side_after(enum stream_io stopped)
{
    return stopped == STREAM_WANT_READ    ? SIDE_WAIT_READ
           : stopped == STREAM_WANT_WRITE ? SIDE_WAIT_WRITE
                                          : SIDE_END;
}

static void read_stopped(struct conn *c, enum stream_io why)
{
    c->rd = side_after(why);
    c->eof = why == STREAM_END;
    if (why == STREAM_FAILED)
        give_up(c);
}

/* Reads until the socket is empty, the buffer is full or the budget is used up. */
static void fill(struct conn *c)
{
    while (c->rd == SIDE_GO && c->budget > 0) {
        size_t room = iobuf_room(&c->in, c->lim.in_bytes);
        if (room < READ_LEAST_BYTES)
            room = iobuf_reserve(&c->in, c->read_bytes, c->lim.in_bytes);
        if (room == 0)
            return;
        size_t want = room < c->budget ? room : c->budget;
        size_t got = 0;
        uint64_t rx = c->s.rx;
        enum stream_io r = stream_read(&c->s, c->in.p + c->in.tail, want, &got);
        iobuf_filled(&c->in, got);
        c->bytes_in += got;
        c->budget -= got;
        if (got == room)
            c->read_bytes = READ_BULK_BYTES;
        if (c->wr == SIDE_WAIT_READ && c->s.rx != rx)
            c->wr = SIDE_GO; /* what TLS output waited for may just have been read */
        if (r != STREAM_OK)
            read_stopped(c, r);
    }
}

static void pull(struct conn *c)
{
    if (c->turn_no != loop_turn(c->loop)) {
        c->turn_no = loop_turn(c->loop);
        c->budget = READ_BUDGET_BYTES;
    }
    while (c->state == ST_OPEN && c->rd == SIDE_GO && may_read(c) && c->budget > 0) {
        uint64_t before = c->bytes_in;
        fill(c);
        if (c->bytes_in == before)
            return;
        if (c->bytes_in - before < READ_FIRST_BYTES)
            c->read_bytes = READ_FIRST_BYTES;
        c->poked = false;
        tell(c, CONN_READABLE);
    }
}

/* Nobody will read, so nobody would meet a reset: look. Once bytes are known to wait, a reset waits
 * behind them. */
static void look_for_reset(struct conn *c)
{
    bool unwatched = c->rd == SIDE_END || (c->paused && !c->unread && iobuf_len(&c->in) == 0);
    if (c->state != ST_OPEN || c->s.failure != NET_OK || !unwatched)
        return;
    enum stream_peek seen = stream_peek(&c->s);
    if (seen == STREAM_BYTES)
        c->unread = true;
    else if (seen == STREAM_DEAD)
        give_up(c);
}

/* --- writing --- */

static void write_stopped(struct conn *c, enum stream_io why)
{
    c->wr = side_after(why);
    if (why == STREAM_FAILED) {
        enum side rd = c->rd == SIDE_END ? SIDE_END : SIDE_GO;
        give_up(c);
        c->rd = rd;
        c->write_failed = true;
    }
}

/* Hands bytes to the stream until it stops; returns how many it took. */
static size_t put(struct conn *c, struct slice s)
{
    size_t done = 0;
    while (done < s.n && c->wr == SIDE_GO) {
        size_t n = 0;
        uint64_t tx = c->s.tx;
        enum stream_io r = stream_write(&c->s, s.p + done, s.n - done, &n);
        done += n;
        c->bytes_out += n;
        if (c->rd == SIDE_WAIT_WRITE && c->s.tx != tx)
            c->rd = SIDE_GO; /* what TLS input waited for may just have been sent */
        if (r != STREAM_OK)
            write_stopped(c, r);
    }
    return done;
}

/* Sends what is to be sent, as far as the socket takes it. No callbacks. */
static void push(struct conn *c)
{
    if (c->flushing) {
        size_t done = put(c, iobuf_slice(&c->out));
        if (c->s.failure != NET_OK)
            return;
        iobuf_drop(&c->out, done);
        c->flushing = iobuf_len(&c->out) > 0;
    }
    if (c->shut == SHUT_WANTED && !c->flushing && c->wr == SIDE_GO) {
        enum stream_io r = stream_shutdown(&c->s);
        if (r != STREAM_OK) {
            write_stopped(c, r);
            return;
        }
        c->shut = SHUT_DONE;
        c->wr = SIDE_END;
    }
}

/* --- the turn --- */

static void break_off(struct conn *c)
{
    give_up(c);
    set_state(c, ST_BROKEN);
    event_del(c->ev);
    lazytimer_set(&c->deadline, 0);
    tell(c, CONN_BROKEN);
}

static void shake(struct conn *c)
{
    if (c->rd != SIDE_GO)
        return;
    enum stream_io r = stream_handshake(&c->s);
    if (r == STREAM_FAILED) {
        break_off(c);
    } else if (r != STREAM_OK) {
        read_stopped(c, r);
    } else {
        set_state(c, ST_OPEN);
        c->wr = SIDE_GO; /* and reading: records may have come along with the handshake */
        tell(c, CONN_UP);
    }
}

static void tell_eof(struct conn *c)
{
    c->eof_told = true;
    tell(c, CONN_EOF);
}

static void tell_again(struct conn *c)
{
    c->poked = false;
    if (iobuf_len(&c->in) > 0)
        tell(c, CONN_READABLE);
    else if (c->eof && c->s.failure == NET_OK)
        tell_eof(c);
}

/* Everything there is to do. Any callback may change the state, so each step asks for it. */
static void turn(struct conn *c)
{
    c->in_turn = true;
    if (c->state == ST_HANDSHAKE)
        shake(c);
    if (c->state == ST_OPEN)
        push(c);
    if (c->state == ST_OPEN && drained_due(c)) {
        c->was_full = false;
        tell(c, CONN_DRAINED);
    }
    if (c->state == ST_OPEN)
        pull(c);
    if (c->state == ST_OPEN && c->poked)
        tell_again(c);
    if (c->state == ST_OPEN && end_due(c))
        (c->s.failure != NET_OK ? break_off : tell_eof)(c);
    c->in_turn = false;
    wake_if_due(c);
}

static void on_event(int fd, short what, void *arg)
{
    (void)fd;
    struct conn *c = arg;
    loop_tick(c->loop);
    enum side *const sides[] = {&c->rd, &c->wr};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        if ((*sides[i] == SIDE_WAIT_READ && what & EV_READ) ||
            (*sides[i] == SIDE_WAIT_WRITE && what & EV_WRITE))
            *sides[i] = SIDE_GO;
    }
    if (what & EV_READ)
        look_for_reset(c);
    turn(c);
}

/* --- life --- */

static void on_deadline(void *arg)
{
    tell(arg, CONN_TIMEOUT);
}

struct conn *conn_new(struct loop *l, int fd, const struct conn_limits *lim, conn_fn *fn, void *arg)
{
    struct conn *c = xcalloc(1, sizeof *c);
    c->loop = l;
    c->lim = *lim;
    c->fn = fn;
    c->arg = arg;
    c->rd = SIDE_WAIT_READ; /* registering reports what is there already */
    c->read_bytes = READ_FIRST_BYTES;
    c->turn_no = UINT64_MAX;
    stream_init(&c->s, fd);
    addrtext_peer(fd, c->peer);
    lazytimer_init(&c->deadline, l, on_deadline, c);
    c->ev = loop_watch(l, fd, EV_READ | EV_WRITE | EV_ET | EV_PERSIST, on_event, c);
    if (event_add(c->ev, NULL) != 0) {
        stream_fail(&c->s, NET_STARVED, strerror(errno));
        give_up(c);
        wake_if_due(c);
    }
    return c;
}

void conn_set_owner(struct conn *c, conn_fn *fn, void *arg)
{
    c->fn = fn;
    c->arg = arg;
}

void conn_set_limits(struct conn *c, const struct conn_limits *lim)
{
    c->lim = *lim;
    c->was_full = c->was_full || conn_out_full(c);
}

static void on_free(void *arg)
{
    struct conn *c = arg;
    stream_fini(&c->s);
    iobuf_fini(&c->in);
    iobuf_fini(&c->out);
    free(c);
}

/* Last words. False: output was lost, which must not look like an orderly end (D5). */
static bool say_goodbye(struct conn *c)
{
    if (c->state != ST_OPEN || c->s.failure != NET_OK)
        return iobuf_len(&c->out) == 0 && iobuf_len(&c->s.late) == 0;
    c->flushing = iobuf_len(&c->out) > 0;
    if (c->s.ssl && c->shut == SHUT_NONE)
        c->shut = SHUT_WANTED;
    push(c);
    return c->s.failure == NET_OK && iobuf_len(&c->out) == 0;
}

void conn_close(struct conn *c, bool abort)
{
    ASSERT(c->state != ST_CLOSED);
    bool cut = abort || !say_goodbye(c);
    set_state(c, ST_CLOSED);
    event_free(c->ev);
    lazytimer_fini(&c->deadline);
    stream_hang_up(&c->s, cut);
    if (c->left)
        c->left(c->left_arg);
    loop_defer(c->loop, on_free, c);
}

void conn_start_tls(struct conn *c, SSL *ssl)
{
    ASSERT(c->shut == SHUT_NONE);
    if (c->state == ST_BROKEN || c->s.failure != NET_OK) {
        SSL_free(ssl); /* CONN_BROKEN was told or is on its way */
        wake_if_due(c);
        return;
    }
    c->bytes_in -= iobuf_len(&c->in);
    c->bytes_out += iobuf_len(&c->out);
    stream_start_tls(&c->s, ssl, &c->in, &c->out);
    set_state(c, ST_HANDSHAKE);
    c->rd = SIDE_GO;
    c->flushing = false; /* what was plain output is sent ahead of the handshake */
    c->eof = c->eof_told = c->poked = false;
    wake_if_due(c);
}

bool conn_is_tls(const struct conn *c)
{
    return c->s.ssl != NULL;
}

/* --- input --- */

struct slice conn_in(const struct conn *c)
{
    return iobuf_slice(&c->in);
}

void conn_consume(struct conn *c, size_t n)
{
    iobuf_drop(&c->in, n);
    wake_if_due(c);
}

bool conn_in_full(const struct conn *c)
{
    return iobuf_len(&c->in) >= c->lim.in_bytes;
}

void conn_pause_read(struct conn *c)
{
    c->paused = true;
}

void conn_resume_read(struct conn *c)
{
    c->paused = c->unread = false;
    wake_if_due(c);
}

void conn_poke(struct conn *c)
{
    c->poked = true;
    wake_if_due(c);
}

bool conn_at_eof(const struct conn *c)
{
    return c->eof_told;
}

bool conn_quiet(struct conn *c)
{
    return c->state == ST_OPEN && c->s.failure == NET_OK && !c->eof && iobuf_len(&c->in) == 0 &&
           iobuf_len(&c->out) == 0 && stream_peek(&c->s) == STREAM_SILENT;
}

/* --- output --- */

void conn_write(struct conn *c, struct slice s)
{
    ASSERT(c->shut == SHUT_NONE && c->state != ST_CLOSED);
    bool direct = c->state == ST_OPEN && iobuf_len(&c->out) == 0 && s.n >= DIRECT_WRITE_BYTES;
    size_t done = direct ? put(c, s) : 0;
    if (c->s.failure != NET_OK) {
        c->write_failed = true; /* CONN_BROKEN was told, or is now */
        wake_if_due(c);
        return;
    }
    iobuf_append(&c->out, slice_of(s.p + done, s.n - done));
    size_t mark = c->lim.out_high < FLUSH_BYTES ? c->lim.out_high : FLUSH_BYTES;
    if (direct || iobuf_len(&c->out) > mark)
        conn_flush(c);
    if (conn_out_full(c))
        c->was_full = true;
}

void conn_flush(struct conn *c)
{
    c->flushing = iobuf_len(&c->out) > 0;
    if (c->state == ST_OPEN)
        push(c);
    wake_if_due(c);
}

size_t conn_out_pending(const struct conn *c)
{
    return iobuf_len(&c->out) + iobuf_len(&c->s.late);
}

bool conn_out_full(const struct conn *c)
{
    return iobuf_len(&c->out) > c->lim.out_high;
}

void conn_shutdown_write(struct conn *c)
{
    if (c->wr == SIDE_END)
        return;
    c->shut = SHUT_WANTED;
    conn_flush(c);
}

/* --- the rest --- */

void conn_deadline(struct conn *c, int64_t at_ns)
{
    if (c->state == ST_OPEN || c->state == ST_HANDSHAKE)
        lazytimer_set(&c->deadline, at_ns);
}

enum net_fail conn_failure(const struct conn *c)
{
    return c->s.failure;
}

const char *conn_detail(const struct conn *c)
{
    return c->s.detail ? c->s.detail : "";
}

uint64_t conn_bytes_in(const struct conn *c)
{
    return c->bytes_in;
}

uint64_t conn_bytes_out(const struct conn *c)
{
    return c->bytes_out;
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}

void conn_set_guest(struct conn *c, const char *name, void (*left)(void *arg), void *arg)
{
    snprintf(c->peer, sizeof c->peer, "%s", name);
    c->left = left;
    c->left_arg = arg;
}

bool conn_peer_gone(const struct conn *c)
{
    return peerprobe(c->s.fd) == PEER_GONE;
}
