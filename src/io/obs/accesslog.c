/* The lines "attempt" and "request". What is not a field of the two structs cannot get out (K2); of
 * the caller's key no more than the last four characters do, whatever was handed in. */
#include "io/obs/accesslog.h"

#include "core/base/fixtext.h"
#include "io/obs/log.h"

#define KEY_TAIL 4

static struct accesslog_tap tap;

void accesslog_set_tap(const struct accesslog_tap *t)
{
    tap = t ? *t : (struct accesslog_tap){NULL, NULL, NULL};
}

/* Empty fields are left out: a line says what there is to say. */
static void text(struct log_line *l, const char *key, struct slice value)
{
    if (value.n > 0)
        log_str(l, key, value);
}

static void number(struct log_line *l, const char *key, uint64_t value)
{
    if (value > 0)
        log_int(l, key, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void duration(struct log_line *l, const char *key, int64_t ns)
{
    if (ns > 0)
        log_ms(l, key, ns);
}

/* An empty quota is worth a word when something failed; of a healthy request it says nothing. */
static void quota(struct log_line *l, const struct access_attempt *a)
{
    bool failed = a->status == 0 || a->status >= 400;
    if (a->quota_before == 0 && a->quota_after == 0 && !failed)
        return;
    log_int(l, "quota_before", a->quota_before);
    log_int(l, "quota_after", a->quota_after);
}

void accesslog_attempt(const struct access_attempt *a)
{
    struct log_line l;
    char text_of[24];
    struct fixtext of = fixtext_in(text_of, sizeof text_of);
    fixtext_number(&of, a->attempt);
    fixtext_put(&of, SLICE("/"));
    fixtext_number(&of, a->max_attempts);
    log_begin(&l, LOG_LEVEL_INFO, "attempt");
    log_xid(&l, a->xid);
    text(&l, "host", a->host);
    text(&l, "service", a->service);
    text(&l, "op", a->operation);
    log_str(&l, "attempt", fixtext_slice(&of));
    number(&l, "status", a->status);
    text(&l, "failure", slice_str(a->failure));
    text(&l, "detail", slice_str(a->detail));
    text(&l, "code", a->code);
    text(&l, "class", slice_str(a->class_name));
    text(&l, "rule", slice_str(a->rule));
    text(&l, "decision", slice_str(a->decision));
    text(&l, "why", slice_str(a->why));
    duration(&l, "wait_ms", a->wait_ns);
    log_ms(&l, "took_ms", a->took_ns);
    quota(&l, a);
    if (a->reused)
        log_bool(&l, "reused", true);
    if (a->redialled)
        log_bool(&l, "redialled", true);
    log_end(&l);
    if (tap.attempt)
        tap.attempt(tap.arg, a);
}

static struct slice key_tail(struct slice key)
{
    return key.n <= KEY_TAIL ? key : slice_of(key.p + key.n - KEY_TAIL, KEY_TAIL);
}

void accesslog_request(const struct access_request *r)
{
    struct log_line l;
    log_begin(&l, LOG_LEVEL_INFO, "request");
    log_xid(&l, r->xid);
    text(&l, "method", r->method);
    text(&l, "host", r->host);
    text(&l, "service", r->service);
    text(&l, "op", r->operation);
    text(&l, "region", r->region);
    number(&l, "status", r->status);
    number(&l, "attempts", r->attempts);
    if (r->client_attempt > 1)
        number(&l, "client_attempt", r->client_attempt);
    text(&l, "end", slice_str(r->end));
    text(&l, "failure", slice_str(r->failure));
    text(&l, "detail", slice_str(r->detail));
    text(&l, "why", slice_str(r->why));
    log_ms(&l, "took_ms", r->took_ns);
    duration(&l, "waited_ms", r->waited_ns);
    number(&l, "body_in", r->body_in);
    number(&l, "body_out", r->body_out);
    text(&l, "client", r->client);
    text(&l, "user", r->user);
    text(&l, "key", key_tail(r->key));
    log_end(&l);
    if (tap.request)
        tap.request(tap.arg, r);
}
