/* Says what was refused, to the log and to the client; the id is the same in both. */
#include "proxy/refuse.h"
#include "io/obs/log.h"

/* Of the target only host and port: a path or a query may hold a signature. */
static void log_target(struct log_line *l, const struct client *c)
{
    bool connect = c->req.method_id == HTTP_CONNECT;
    struct target t;
    const char *why;
    if (c->intercepted)
        t.authority = c->scope;
    else if (c->req.method.n == 0 || target_parse(c->req.target, connect, &t, &why) == TARGET_BAD ||
             (t.form != TARGET_ABSOLUTE && t.form != TARGET_AUTHORITY))
        return;
    log_str(l, "host", slice_str(t.authority.host));
    log_int(l, "port", t.authority.port);
}

void refuse(struct client *c, enum reply_kind kind, const char *detail)
{
    static const struct aws_target nobody = {.is_aws = false};
    bool connect = c->req.method_id == HTTP_CONNECT;
    uint64_t xid = ++c->px->next_xid;
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "refused");
    log_xid(&l, xid);
    log_str(&l, "client", slice_str(conn_peer(c->conn)));
    log_str(&l, "listener", slice_str(c->listener->name));
    if (c->req.method.n > 0)
        log_str(&l, "method", c->req.method);
    log_target(&l, c);
    log_int(&l, "status", reply_status(kind));
    log_str(&l, "reason", slice_str(reply_word(kind)));
    if (detail[0] != '\0')
        log_str(&l, "detail", slice_str(detail));
    log_end(&l);
    enum aws_wire wire =
        c->req.method.n > 0 && !connect ? aws_wire_of(&c->req, &nobody) : AWS_WIRE_JSON;
    reply_write(c->conn, kind, wire, c->req.method_id == HTTP_HEAD, true, xid, detail);
    client_part(c);
}
