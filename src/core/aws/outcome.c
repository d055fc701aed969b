/* What a response means, from its head and what is held of its body. What was held tells what for:
 * a body of a status from 300 up may bear a code, one of a 200 a root element, and of either a
 * checksum. Nothing held, nothing read. */
#include "core/aws/outcome.h"

#include "core/aws/coding.h"
#include "core/aws/crc32.h"
#include "core/aws/sigtime.h"
#include "core/base/units.h"
#include "core/retry/backoff.h"

bool aws_error_in_200(const struct aws_target *t, const struct aws_options *o)
{
    return t->error_in_200 || (o->s3_more && t->xml_in_200);
}

bool aws_checksummed(const struct http_resp *resp, const struct aws_target *t,
                     const struct aws_options *o)
{
    return o->crc32 && t->service && (t->service->quirks & AWS_QUIRK_CRC32) &&
           header_has(&resp->fields, SLICE("x-amz-crc32"));
}

/* The value of a header that stands there once. */
static bool only(const struct header_list *fields, struct slice name, struct slice *value)
{
    *value = header_get(fields, name);
    return header_count(fields, name) == 1;
}

static bool server_date(const struct header_list *fields, int64_t *out_s)
{
    return sigtime_parse_http(header_get(fields, SLICE("date")), out_s);
}

/* Seconds that are not negative; the distance of two dates can be more than nanoseconds can tell.
 */
static int64_t ns_of(int64_t s)
{
    return s < INT64_MAX / NS_PER_S ? s * NS_PER_S : INT64_MAX;
}

static void read_http_after(const struct header_list *fields, int64_t now_s,
                            struct retry_outcome *out)
{
    struct slice value;
    int64_t at_s, from_s;
    if (!only(fields, SLICE("retry-after"), &value))
        return;
    if (backoff_parse_retry_seconds(value, &out->http_after_ns)) {
        out->http_after = RETRY_HTTP_AFTER_SECONDS;
        return;
    }
    if (!sigtime_parse_http(value, &at_s))
        return;
    if (!server_date(fields, &from_s))
        from_s = now_s;
    if (from_s == 0)
        return;
    out->http_after = RETRY_HTTP_AFTER_DATE;
    out->http_after_ns = ns_of(at_s > from_s ? at_s - from_s : 0);
}

void aws_retry_after(const struct header_list *fields, int64_t now_s, struct retry_outcome *out)
{
    struct slice value;
    out->has_retry_after = only(fields, SLICE("x-amz-retry-after"), &value) &&
                           backoff_parse_retry_after(value, &out->retry_after_ns);
    read_http_after(fields, now_s, out);
}

static int64_t date_skew_ns(const struct header_list *fields, int64_t now_s)
{
    int64_t date_s;
    if (now_s == 0 || !server_date(fields, &date_s))
        return 0;
    return ns_of(date_s > now_s ? date_s - now_s : now_s - date_s);
}

static bool is_bodiless(const struct aws_response *r)
{
    const struct http_resp *head = r->head;
    return r->held.n == 0 && (r->whole || head->framing == HTTP_BODY_NONE ||
                              (head->framing == HTTP_BODY_LENGTH && head->content_length == 0));
}

/* An error inside a 200: its root says so, or the document is none or not whole. One that our own
 * bounds cut off is given the benefit of the doubt (§3.6). */
static bool has_error_root(const struct aws_response *r, enum xml_root *root)
{
    struct strbuf mem;
    bool complete;
    enum coding coding = coding_of(&r->head->fields);
    *root = XML_ROOT_NONE;
    if (coding == CODING_UNKNOWN)
        return false;
    strbuf_init(&mem, CODING_OUT_MAX);
    struct coding_text doc = coding_undo(coding, r->held, r->whole, &mem);
    *root = errcode_xml_root(doc.text, &complete);
    bool cut = !r->whole || (!doc.whole && doc.text.n == CODING_OUT_MAX);
    strbuf_fini(&mem);
    return *root == XML_ROOT_ERROR || (!cut && !complete);
}

/* S3 sends blanks while it works: they are not part of what is looked at for a code. */
static struct slice without_blanks(struct slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\r' || s.p[0] == '\t'))
        s = slice_of(s.p + 1, s.n - 1);
    return s;
}

static bool has_text(const struct aws_response *r, struct slice wanted)
{
    struct strbuf mem;
    strbuf_init(&mem, CODING_OUT_MAX);
    struct slice text = coding_undo(coding_of(&r->head->fields), r->held, r->whole, &mem).text;
    bool found = text.n > 0 && memmem(text.p, text.n, wanted.p, wanted.n) != NULL;
    strbuf_fini(&mem);
    return found;
}

static enum retry_body body_kind(const struct aws_response *r, const struct errcode *e)
{
    if (is_bodiless(r))
        return RETRY_BODY_EMPTY;
    return e->format == ERRCODE_FORMAT_JSON && e->parsed ? RETRY_BODY_JSON : RETRY_BODY_OTHER;
}

void aws_outcome(const struct aws_response *r, const struct aws_target *t,
                 const struct aws_options *o, struct arena *a, struct aws_reading *out)
{
    const struct http_resp *head = r->head;
    struct retry_outcome *outcome = &out->outcome;
    enum xml_root root = XML_ROOT_NONE;
    *out = (struct aws_reading){.outcome = {.status = head->status}};
    aws_retry_after(&head->fields, r->now_s, outcome);
    outcome->date_skew_ns = date_skew_ns(&head->fields, r->now_s);
    if (head->status == 200 && r->held.n > 0 && aws_error_in_200(t, o))
        outcome->error_in_200 = has_error_root(r, &root);
    if (head->status >= 300)
        errcode_read(head, r->held, r->whole, true, a, &out->error);
    else if (root == XML_ROOT_ERROR)
        errcode_read(head, without_blanks(r->held), r->whole, true, a, &out->error);
    outcome->code = out->error.code;
    outcome->body = body_kind(r, &out->error);
    if (o->socket_message && head->status >= 400)
        outcome->socket_message = has_text(r, SLICE(RETRY_SOCKET_MESSAGE));
    if (r->whole && r->held.n > 0 && aws_checksummed(head, t, o) && crc32_mismatch(head, r->held))
        outcome->failure = RETRY_FAIL_CHECKSUM;
}
