/* Lingering close. */
#include "proxy/linger.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "proxy/pace.h"

#include <stdlib.h>

enum { LINGER_MAX_BYTES = 1024 * 1024 };
#define LINGER_NS (2 * NS_PER_S)

struct farewell {
    struct list link;
    struct proxy *px;
    struct conn *conn;
    size_t dropped;
    uint64_t out_seen; /* conn_bytes_out at the last look */
    int64_t progress_ns;
    struct pace pace; /* at which the answer is taken (J5) */
};

static void linger_end(struct farewell *l)
{
    list_remove(&l->link);
    proxy_count(l->px, -1);
    conn_close(l->conn, false);
    proxy_check_drained(l->px);
    free(l);
}

/* Every 2 s: over when the answer is out and the peer still does not close, or when a reader that
 * has pending output takes none of it for the write timeout; after the end of a drain in any case.
 */
static void on_timeout(struct farewell *l)
{
    int64_t now = loop_now_ns(l->px->loop);
    bool parted = conn_at_eof(l->conn) && conn_out_pending(l->conn) == 0;
    bool slow =
        pace_too_slow(&l->pace, now, conn_bytes_out(l->conn), true, l->px->config->min_rate_bytes);
    if (parted || slow || l->px->cutting) {
        linger_end(l);
        return;
    }
    if (conn_bytes_out(l->conn) != l->out_seen) {
        l->out_seen = conn_bytes_out(l->conn);
        l->progress_ns = now;
    } else if (conn_out_pending(l->conn) == 0 ||
               now - l->progress_ns >= l->px->config->client_write_timeout_ns) {
        linger_end(l);
        return;
    }
    conn_deadline(l->conn, now + LINGER_NS);
}

static void on_conn(struct conn *conn, enum conn_event ev, void *arg)
{
    struct farewell *l = arg;
    switch (ev) {
    case CONN_READABLE:
        l->dropped += conn_in(conn).n;
        conn_consume(conn, conn_in(conn).n);
        if (l->dropped > LINGER_MAX_BYTES)
            linger_end(l);
        break;
    case CONN_DRAINED:
    case CONN_UP:
        break;
    case CONN_TIMEOUT:
        on_timeout(l);
        break;
    case CONN_EOF:
        if (conn_out_pending(conn) == 0)
            linger_end(l);
        break;
    case CONN_BROKEN:
        linger_end(l);
        break;
    }
}

void linger_start(struct proxy *px, struct conn *conn)
{
    conn_flush(conn);
    if (conn_at_eof(conn) && conn_out_pending(conn) == 0) {
        conn_close(conn, false);
        return;
    }
    struct farewell *l = xcalloc(1, sizeof *l);
    l->px = px;
    l->conn = conn;
    list_push_back(&px->lingers, &l->link);
    proxy_count(px, 1);
    l->out_seen = conn_bytes_out(conn);
    l->progress_ns = loop_now_ns(px->loop);
    pace_start(&l->pace, l->progress_ns, l->out_seen);
    conn_set_owner(conn, on_conn, l);
    conn_shutdown_write(conn);
    conn_consume(conn, conn_in(conn).n);
    conn_resume_read(conn);
    conn_deadline(conn, loop_now_ns(px->loop) + LINGER_NS);
}

void linger_close_all(struct proxy *px)
{
    struct list *l = px->lingers.next;
    while (l != &px->lingers) {
        struct farewell *f = list_entry(l, struct farewell, link);
        l = l->next;
        linger_end(f);
    }
}
