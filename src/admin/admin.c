/* Connections of the admin interface. Each is bounded in time and in bytes, and so is their number;
 * whoever comes beyond it waits in the queue of the socket. */
#include "admin/admin.h"
#include "admin/dump.h"
#include "core/base/list.h"
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "core/http/h1_head.h"
#include "core/http/uri.h"
#include "io/net/conn.h"
#include "io/net/listener.h"
#include "io/obs/log.h"
#include "io/shm/budgets.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 8,
    HEAD_BYTES = 8 * 1024,
    ANSWER_BYTES = 4 * 1024 * 1024, /* some ten thousand budgets */
    KEY_BYTES = 64,
};

#define DEADLINE_NS (10 * NS_PER_S)

static const struct h1_limits head_limits = {
    .head_bytes = HEAD_BYTES, .target_bytes = 1024, .fields = 64};
static const struct conn_limits limits = {
    .in_bytes = HEAD_BYTES + KIB, .out_high = 64 * KIB, .out_low = 16 * KIB};

struct admin {
    struct loop *loop;
    struct listener *listener;
    const struct region *region;
    struct list clients;
    unsigned n_clients;
    bool draining;
};

struct client {
    struct list link;
    struct admin *admin;
    struct conn *conn;
    struct arena arena;
    struct h1_head head;
    bool may_change; /* by whom the peer is */
    bool answered;
};

static void end(struct client *c, bool abort)
{
    struct admin *a = c->admin;
    list_remove(&c->link);
    conn_close(c->conn, abort);
    arena_fini(&c->arena);
    free(c);
    if (a->n_clients-- == CLIENTS_MAX)
        listener_pause(a->listener, false);
}

/* --- answers --- */

static void answer(struct client *c, const char *status, const char *extra, struct slice body)
{
    struct strbuf head;
    strbuf_init(&head, 1024);
    strbuf_printf(&head,
                  "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                  "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s"
                  "Connection: close\r\n\r\n",
                  status, body.n, extra);
    conn_write(c->conn, strbuf_slice(&head));
    strbuf_fini(&head);
    while (body.n > 0) {
        size_t n = body.n < 65536 ? body.n : 65536;
        conn_write(c->conn, slice_of(body.p, n));
        body = slice_of(body.p + n, body.n - n);
    }
    conn_flush(c->conn);
    conn_shutdown_write(c->conn);
    c->answered = true;
}

static void refuse(struct client *c, const char *status, const char *extra, const char *why)
{
    struct strbuf body;
    strbuf_init(&body, 1024);
    strbuf_put(&body, SLICE("{\"error\":"));
    dump_string(&body, slice_str(why));
    strbuf_put(&body, SLICE("}\n"));
    answer(c, status, extra, strbuf_slice(&body));
    strbuf_fini(&body);
}

static void show_health(struct client *c, struct slice query)
{
    (void)query;
    if (c->admin->draining)
        answer(c, "503 Service Unavailable", "", SLICE("{\"status\":\"draining\"}\n"));
    else
        answer(c, "200 OK", "", SLICE("{\"status\":\"ok\"}\n"));
}

static void show_budgets(struct client *c, struct slice query)
{
    struct strbuf body;
    (void)query;
    strbuf_init(&body, ANSWER_BYTES);
    dump_budgets(&body, c->admin->region, loop_now_ns(c->admin->loop));
    answer(c, "200 OK", "", strbuf_slice(&body));
    strbuf_fini(&body);
}

/* Percent-decodes; false when it is not well formed or too long. */
static bool decode(struct slice s, char out[KEY_BYTES], size_t *n)
{
    uint64_t byte;
    for (*n = 0; s.n > 0; (*n)++) {
        size_t used = s.p[0] == '%' ? 3 : 1;
        if (*n == KEY_BYTES || used > s.n ||
            (used == 3 && !num_hex_u64(slice_of(s.p + 1, 2), 2, 0xff, &byte)))
            return false;
        out[*n] = used == 3 ? (char)byte : s.p[0];
        s = slice_of(s.p + used, s.n - used);
    }
    return *n > 0;
}

static void reset_budget(struct client *c, struct slice query)
{
    char key[KEY_BYTES];
    size_t n;
    if (!c->may_change) {
        refuse(c, "403 Forbidden", "", "only retryd's own user and root may do this");
        return;
    }
    if (!decode(query_param(query, SLICE("key")), key, &n)) {
        refuse(c, "400 Bad Request", "", "give key=ID or key=CLIENT");
        return;
    }
    unsigned found = budgets_reset(c->admin->region, slice_of(key, n));
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "budget_reset");
    log_str(&l, "key", slice_of(key, n));
    log_int(&l, "budgets", found);
    log_end(&l);
    if (found == 0) {
        refuse(c, "404 Not Found", "", "no such budget");
        return;
    }
    struct strbuf body;
    strbuf_init(&body, 64);
    strbuf_printf(&body, "{\"reset\":%u}\n", found);
    answer(c, "200 OK", "", strbuf_slice(&body));
    strbuf_fini(&body);
}

/* --- requests --- */

static const struct resource {
    struct slice path;
    enum http_method method;
    const char *allow;
    void (*serve)(struct client *c, struct slice query);
} resources[] = {
    {{"/healthz", 8}, HTTP_GET, "Allow: GET\r\n", show_health},
    {{"/budgets", 8}, HTTP_GET, "Allow: GET\r\n", show_budgets},
    {{"/budgets/reset", 14}, HTTP_POST, "Allow: POST\r\n", reset_budget},
};

/* A page in a browser could be made to ask under any name that leads here: only local names are
 * answered, and no page is. */
static bool is_local(const struct http_req *req)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    struct authority host;
    const char *why;
    if (header_has(&req->fields, SLICE("Origin")))
        return false;
    struct slice text = header_get(&req->fields, SLICE("Host"));
    if (text.n == 0)
        return true;
    if (!authority_parse(text, 80, &host, &why))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq(slice_str(host.host), slice_str(names[i])))
            return true;
    return false;
}

static void serve(struct client *c, const struct http_req *req)
{
    struct target t;
    const char *why;
    if (!is_local(req)) {
        refuse(c, "403 Forbidden", "", "Host is not local, or the request comes from a page");
        return;
    }
    if (req->framing == HTTP_BODY_CHUNKED || req->content_length > 0) {
        refuse(c, "413 Content Too Large", "", "no body is wanted");
        return;
    }
    if (target_parse(req->target, false, &t, &why) != TARGET_ORIGIN) {
        refuse(c, "400 Bad Request", "", "give a path");
        return;
    }
    struct slice path = target_path(t.path_query);
    for (const struct resource *r = resources; r < resources + ARRAY_LEN(resources); r++) {
        if (!slice_eq(path, r->path))
            continue;
        if (req->method_id == r->method)
            r->serve(c, target_query(t.path_query));
        else
            refuse(c, "405 Method Not Allowed", r->allow, "not with this method");
        return;
    }
    refuse(c, "404 Not Found", "", "there are /healthz, /budgets and /budgets/reset");
}

static void read_head(struct client *c)
{
    struct slice in = conn_in(c->conn);
    struct http_req req = {0};
    if (c->answered) {
        conn_consume(c->conn, in.n);
        return;
    }
    switch (h1_parse_request(&c->head, in.p, in.n, &head_limits, &c->arena, &req)) {
    case PARSE_MORE:
        break;
    case PARSE_BAD:
        refuse(c, "400 Bad Request", "", c->head.problem);
        break;
    case PARSE_OK:
        conn_consume(c->conn, c->head.consumed);
        serve(c, &req);
        break;
    }
}

static void on_conn(struct conn *conn, enum conn_event ev, void *arg)
{
    struct client *c = arg;
    (void)conn;
    switch (ev) {
    case CONN_READABLE:
        read_head(c);
        break;
    case CONN_EOF:
        if (!c->answered || conn_out_pending(c->conn) == 0)
            end(c, false);
        break;
    case CONN_BROKEN:
    case CONN_TIMEOUT:
        end(c, true);
        break;
    case CONN_DRAINED:
        if (conn_at_eof(c->conn) && conn_out_pending(c->conn) == 0)
            end(c, false);
        break;
    case CONN_UP:
        break;
    }
}

static bool may_change(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void on_accept(void *arg, int fd, const struct sockaddr *peer)
{
    struct admin *a = arg;
    (void)peer;
    struct client *c = xcalloc(1, sizeof *c);
    c->admin = a;
    c->may_change = may_change(fd);
    arena_init(&c->arena);
    list_push_back(&a->clients, &c->link);
    c->conn = conn_new(a->loop, fd, &limits, on_conn, c);
    conn_deadline(c->conn, loop_now_ns(a->loop) + DEADLINE_NS);
    if (++a->n_clients == CLIENTS_MAX)
        listener_pause(a->listener, true);
}

struct admin *admin_new(struct loop *loop, int listen_fd, const struct region *region,
                        struct err *err)
{
    struct admin *a = xcalloc(1, sizeof *a);
    a->loop = loop;
    a->region = region;
    list_init(&a->clients);
    a->listener = listener_adopt(loop, listen_fd, on_accept, a, err);
    if (a->listener != NULL)
        return a;
    free(a);
    return NULL;
}

void admin_drain(struct admin *a)
{
    a->draining = true;
}

void admin_free(struct admin *a)
{
    struct list *l = a->clients.next;
    while (l != &a->clients) {
        struct client *c = list_entry(l, struct client, link);
        l = l->next;
        end(c, true);
    }
    listener_close(a->listener);
    free(a);
}
