/* The request of one attempt on its way: the head at once, then the body from the log, at the pace
 * of whoever is slower. It owns the clock of the request; once a response has begun, the response's
 * own clock rules. */
#include "proxy/upload.h"
#include "core/base/units.h"
#include "proxy/drive.h"

enum { SEND_TURN_BYTES = 256 * 1024 }; /* written per turn: other connections want theirs (J11) */
#define CONTINUE_WAIT_NS NS_PER_S      /* C11 */

/* The same for the request's side, 0: no clock. Once the response has begun its own clock rules,
 * also when the request is still being sent. */
static void expect_of_request(struct attempt *at, int64_t ns)
{
    int64_t whole = at->drive->route.effective.attempt_timeout_ns;
    int64_t at_ns = ns > 0 ? loop_now_ns(at->drive->px->loop) + ns : 0;
    if (at->phase != ATTEMPT_HEAD)
        return;
    if (whole > 0 && (at_ns == 0 || at->started_ns + whole < at_ns))
        at_ns = at->started_ns + whole;
    conn_deadline(at->conn, at_ns);
}

/* Everything is written: the response is due. */
static void sent(struct attempt *at)
{
    const struct client *c = at->drive->client;
    at->sending = false;
    if (c->req.framing == HTTP_BODY_CHUNKED) {
        struct strbuf end;
        strbuf_init(&end, 16 * KIB); /* trailers are at most 8 KiB as received */
        bool ok = h1_chunk_end(&end, &c->log.trailers);
        ASSERT(ok);
        conn_write(at->conn, strbuf_slice(&end));
        strbuf_fini(&end);
    }
    conn_flush(at->conn);
    expect_of_request(at, at->drive->px->config->response_timeout_ns);
    drive_event(at->drive, &(struct xch_event){.kind = XEV_SENT});
}

static void write_piece(struct attempt *at, struct slice piece)
{
    if (at->drive->client->req.framing != HTTP_BODY_CHUNKED) {
        conn_write(at->conn, piece);
        return;
    }
    char head[H1_CHUNK_HEAD_MAX];
    conn_write(at->conn, slice_of(head, h1_chunk_head(head, piece.n)));
    conn_write(at->conn, piece);
    conn_write(at->conn, SLICE("\r\n"));
}

/* Body from the log to the connection: while there is body, room, and a fair share of this turn. */
void upload_pump(struct attempt *at)
{
    struct client *c = at->drive->client;
    size_t turn = 0;
    if (!at->sending || at->awaiting_continue)
        return;
    while (!conn_out_full(at->conn) && turn < SEND_TURN_BYTES) {
        struct slice piece;
        if (!bodylog_peek(&c->log, &at->cur, &piece)) {
            attempt_failed(at, RETRY_FAIL_SEND, "the replay file cannot be read");
            return;
        }
        if (piece.n == 0)
            break;
        write_piece(at, piece);
        bodylog_advance(&c->log, &at->cur, piece.n);
        turn += piece.n;
    }
    if (bodylog_at_end(&c->log, &at->cur)) {
        sent(at);
        return;
    }
    conn_flush(at->conn);
    if (turn >= SEND_TURN_BYTES && !conn_out_full(at->conn))
        loop_timer_arm(&at->turn, 0);
    /* Waiting for the client is the client's clock; waiting for the upstream to take bytes is this
     * one. */
    expect_of_request(at,
                      conn_out_pending(at->conn) > 0 ? at->drive->px->config->read_timeout_ns : 0);
    client_body_wanted(c);
}

void upload_start(struct attempt *at)
{
    struct drive *d = at->drive;
    struct client *c = d->client;
    at->sending = true;
    conn_write(at->conn, strbuf_slice(&d->head));
    /* A client that waits for the word gets it from the upstream, or when the second is over; bytes
     * that are here already need no word. A replay that needs the rest of the body asks for it at
     * once (C11). */
    bool replay = d->xch.run.attempts > 0;
    at->awaiting_continue =
        c->req.expect_continue && c->log.end == 0 && !c->log.finished && !replay;
    if (at->awaiting_continue) {
        loop_timer_arm(&at->timer, CONTINUE_WAIT_NS);
        conn_flush(at->conn);
        expect_of_request(at, at->drive->px->config->response_timeout_ns);
        client_body_wanted(c);
        return;
    }
    if (c->req.expect_continue && replay)
        client_continue(c);
    upload_pump(at);
}

void upload_go_on(struct attempt *at)
{
    if (!at->awaiting_continue)
        return;
    at->awaiting_continue = false;
    loop_timer_disarm(&at->timer);
    client_continue(at->drive->client);
    upload_pump(at);
}

void upload_more(struct attempt *at)
{
    if (at->conn == NULL || !at->sending)
        return;
    /* The client did not wait: its body is the word. */
    if (at->awaiting_continue) {
        at->awaiting_continue = false;
        loop_timer_disarm(&at->timer);
    }
    upload_pump(at);
}
