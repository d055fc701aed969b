/* llhttp reads. */
#include "llhttp_reading.h"

#include <llhttp.h>

void reading_line(struct reading *r, struct slice a, char sep, struct slice b)
{
    strbuf_put(&r->text, a);
    strbuf_putc(&r->text, sep);
    strbuf_put(&r->text, b);
    strbuf_putc(&r->text, '\n');
}

void reading_body(struct reading *r, struct slice data)
{
    r->body += data.n;
    strbuf_put(&r->text, data);
}

void reading_end(struct reading *r)
{
    strbuf_printf(&r->text, "\n%zu\n", r->body);
    r->body = 0;
    ASSERT(r->n < READING_ENDS_MAX);
    r->ends[r->n++] = r->text.n;
}

/* --- llhttp's
 * -------------------------------------------------------------------------------------------- */

struct theirs {
    struct reading *reading;
    struct strbuf name, value, target;
    bool in_body;
};

static int on_target(llhttp_t *p, const char *at, size_t n)
{
    struct theirs *t = p->data;
    strbuf_put(&t->target, slice_of(at, n));
    return 0;
}

static int on_name(llhttp_t *p, const char *at, size_t n)
{
    struct theirs *t = p->data;
    strbuf_put(&t->name, slice_of(at, n));
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct theirs *t = p->data;
    strbuf_put(&t->value, slice_of(at, n));
    return 0;
}

static int on_target_end(llhttp_t *p)
{
    struct theirs *t = p->data;
    reading_line(t->reading, slice_str(llhttp_method_name(p->method)), ' ',
                 strbuf_slice(&t->target));
    return 0;
}

static int on_status_end(llhttp_t *p)
{
    struct theirs *t = p->data;
    strbuf_printf(&t->reading->text, "%u\n", p->status_code);
    return 0;
}

/* Trailer fields are fields to llhttp; they are not compared. */
static int on_value_end(llhttp_t *p)
{
    struct theirs *t = p->data;
    if (!t->in_body)
        reading_line(t->reading, strbuf_slice(&t->name), ':', slice_trim(strbuf_slice(&t->value)));
    strbuf_reset(&t->name);
    strbuf_reset(&t->value);
    return 0;
}

/* What any caller of llhttp has to tell it: responses that have no body whatever their fields say
 * (RFC 9112 6.3). */
static int on_head_end(llhttp_t *p)
{
    struct theirs *t = p->data;
    const struct reading *r = t->reading;
    strbuf_putc(&t->reading->text, '\n');
    t->in_body = true;
    if (!r->response)
        return 0;
    if (r->answers == ANSWERS_CONNECT && p->status_code / 100 == 2)
        return 2;
    return r->answers == ANSWERS_HEAD || p->status_code < 200 || p->status_code == 204 ||
           p->status_code == 304;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct theirs *t = p->data;
    reading_body(t->reading, slice_of(at, n));
    return 0;
}

static int on_end(llhttp_t *p)
{
    struct theirs *t = p->data;
    reading_end(t->reading);
    t->in_body = false;
    strbuf_reset(&t->target);
    return 0;
}

bool reading_by_llhttp(struct reading *r, struct slice wire)
{
    const llhttp_settings_t settings = {.on_url = on_target,
                                        .on_header_field = on_name,
                                        .on_header_value = on_value,
                                        .on_url_complete = on_target_end,
                                        .on_status_complete = on_status_end,
                                        .on_header_value_complete = on_value_end,
                                        .on_headers_complete = on_head_end,
                                        .on_body = on_body,
                                        .on_message_complete = on_end};
    struct theirs t = {.reading = r};
    strbuf_init(&t.name, READING_TEXT_MAX);
    strbuf_init(&t.value, READING_TEXT_MAX);
    strbuf_init(&t.target, READING_TEXT_MAX);
    llhttp_t parser;
    llhttp_init(&parser, r->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    parser.data = &t;
    const char *at = wire.p, *end = wire.p + wire.n;
    llhttp_errno_t rc;
    /* A switch that the request asks for need not happen: the next message follows. */
    while ((rc = llhttp_execute(&parser, at, (size_t)(end - at))) == HPE_PAUSED_UPGRADE) {
        at = llhttp_get_error_pos(&parser);
        llhttp_resume_after_upgrade(&parser);
        if (at == end)
            break;
    }
    strbuf_fini(&t.name);
    strbuf_fini(&t.value);
    strbuf_fini(&t.target);
    return rc == HPE_PAUSED_UPGRADE || (rc == HPE_OK && llhttp_finish(&parser) == HPE_OK);
}
