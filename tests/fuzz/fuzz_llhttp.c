/* Our parser against llhttp (security requirement M3): whatever we take for n complete messages,
 * llhttp must refuse or cut into the same n, with the same start lines, fields and bodies. Two
 * parsers in a chain that disagree about where a message ends are how requests are smuggled.
 *
 * The first byte chooses the side and the method that responses answer; the rest is one
 * connection's bytes. Of these llhttp gets what we accepted, up to where we would close or hand
 * over to a tunnel. It is built from Debian's sources, in strict mode: the other one drops in
 * silence what follows a message that closes.
 *
 * Explained differences:
 *   PRI             to llhttp the HTTP/2 preface, at which it pauses (that counts as a refusal); to
 *                   us a method like others
 *   "chunked" HTAB  to us white space around a value (RFC 9110 5.5), which is not sent on, since
 *                   Transfer-Encoding is written anew; llhttp takes the tab for a part of the
 *                   coding and reads a response until its end. Such heads are not compared
 *
 * With LLHTTP_RECORDS in the environment each comparison also goes to stdout, for llhttp_oracle.js.
 */
#include "core/base/attr.h"
#include "core/http/h1_body.h"
#include "core/http/h1_head.h"

#include "llhttp_reading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static struct {
    uint64_t compared, agreed, messages;
} counts;

static const enum http_method methods[] = {[ANSWERS_GET] = HTTP_GET,
                                           [ANSWERS_HEAD] = HTTP_HEAD,
                                           [ANSWERS_CONNECT] = HTTP_CONNECT,
                                           [ANSWERS_POST] = HTTP_POST};

struct message {
    struct arena arena;
    struct h1_head head;
    struct http_req req;
    struct http_resp resp;
    bool last; /* nothing on this connection is read as HTTP after it */
};

/* "chunked", blanks, and a tab among them. */
static bool has_tab_behind_chunked(struct slice head)
{
    static const struct slice word = {"chunked", 7};
    for (; head.n > word.n; head = slice_of(head.p + 1, head.n - 1)) {
        size_t i = word.n;
        while (i < head.n && head.p[i] == ' ')
            i++;
        if (i < head.n && head.p[i] == '\t' && slice_starts_nocase(head, word))
            return true;
    }
    return false;
}

static bool read_head(const struct reading *r, struct message *m, struct slice wire)
{
    enum parse p = r->response ? h1_parse_response(&m->head, wire.p, wire.n, &h1_response_limits,
                                                   methods[r->answers], &m->arena, &m->resp)
                               : h1_parse_request(&m->head, wire.p, wire.n, &h1_request_limits,
                                                  &m->arena, &m->req);
    m->last = r->response ? m->resp.close || m->resp.status == 101 ||
                                (r->answers == ANSWERS_CONNECT && m->resp.status / 100 == 2)
                          : m->req.close || m->req.method_id == HTTP_CONNECT;
    return p == PARSE_OK && !has_tab_behind_chunked(slice_of(wire.p, m->head.consumed));
}

static void put_head(struct reading *r, const struct message *m)
{
    const struct header_list *fields = r->response ? &m->resp.fields : &m->req.fields;
    if (r->response)
        strbuf_printf(&r->text, "%u\n", m->resp.status);
    else
        reading_line(r, m->req.method, ' ', m->req.target);
    for (size_t i = 0; i < fields->n; i++)
        reading_line(r, fields->v[i].name, ':', fields->v[i].value);
    strbuf_putc(&r->text, '\n');
}

/* Bytes of the body, or SIZE_MAX when it is bad or not whole. */
static size_t read_body(struct reading *r, struct message *m, struct slice wire)
{
    struct h1_body body;
    h1_body_init(&body, r->response ? m->resp.framing : m->req.framing,
                 r->response ? m->resp.content_length : m->req.content_length);
    size_t at = 0, used;
    enum parse p;
    do {
        struct slice data;
        p = h1_body_read(&body, wire.p + at, wire.n - at, &m->arena, &used, &data);
        reading_body(r, data);
        at += used;
    } while (p == PARSE_MORE && at < wire.n);
    bool whole = p == PARSE_OK || (p == PARSE_MORE && h1_body_eof(&body));
    h1_body_fini(&body);
    return whole ? at : SIZE_MAX;
}

/* Returns how many bytes the complete messages take. */
static size_t read_ours(struct reading *r, struct slice wire)
{
    size_t at = 0;
    for (bool last = false; !last && at < wire.n && r->n < READING_ENDS_MAX;) {
        struct message m = {0};
        struct slice rest = slice_of(wire.p + at, wire.n - at);
        size_t taken = SIZE_MAX;
        if (read_head(r, &m, rest)) {
            put_head(r, &m);
            rest = slice_of(rest.p + m.head.consumed, rest.n - m.head.consumed);
            taken = read_body(r, &m, rest);
        }
        last = m.last || taken == SIZE_MAX;
        if (taken != SIZE_MAX) {
            at += m.head.consumed + taken;
            reading_end(r);
        }
        arena_fini(&m.arena);
    }
    r->text.n = r->n > 0 ? r->ends[r->n - 1] : 0;
    return at;
}

/* By hand, for libFuzzer's timer interrupts what blocks. */
static void write_all(const void *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, p, n);
        if (done < 0 && errno != EINTR) {
            perror("records");
            exit(1);
        }
        size_t k = done > 0 ? (size_t)done : 0;
        p = (const char *)p + k;
        n -= k;
    }
}

/* Little-endian: u8 side and method, u32 bytes of the wire, u32 of our text, u32 messages; then
 * both. */
static void put_record(const struct reading *ours, uint8_t first, struct slice wire)
{
    unsigned char head[13] = {first & 7};
    const uint32_t sizes[3] = {(uint32_t)wire.n, (uint32_t)ours->text.n, (uint32_t)ours->n};
    for (size_t i = 0; i < 12; i++)
        head[1 + i] = (unsigned char)(sizes[i / 4] >> 8 * (i % 4));
    write_all(head, sizeof head);
    write_all(wire.p, wire.n);
    write_all(ours->text.p, ours->text.n);
}

static void compare(const struct reading *ours, const struct reading *theirs, bool refused)
{
    size_t n = theirs->n;
    if (n > ours->n || (!refused && n < ours->n) ||
        (n > 0 && (theirs->ends[n - 1] != ours->ends[n - 1] ||
                   memcmp(theirs->text.p, ours->text.p, ours->ends[n - 1]) != 0))) {
        fprintf(stderr, "--- ours: %zu messages\n%.*s\n--- llhttp: %zu messages%s\n%.*s\n", ours->n,
                SLICE_FMT(strbuf_slice(&ours->text)), n, refused ? ", then refused" : "",
                SLICE_FMT(strbuf_slice(&theirs->text)));
        abort();
    }
    counts.compared++;
    counts.agreed += !refused;
    counts.messages += n;
}

static void say_counts(void)
{
    fprintf(stderr,
            "llhttp: %" PRIu64 " inputs accepted by us, %" PRIu64
            " of them by llhttp, with %" PRIu64 " equal messages\n",
            counts.compared, counts.agreed, counts.messages);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return atexit(say_counts);
}

static void start(struct reading *r, uint8_t first)
{
    r->response = first & 1;
    r->answers = first >> 1 & 3;
    r->n = r->body = 0;
    strbuf_init(&r->text, READING_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct reading ours, theirs;
    static int records = -1;
    if (records < 0)
        records = getenv("LLHTTP_RECORDS") != NULL;
    if (size < 1 || size > READING_TEXT_MAX / 4)
        return 0;
    struct slice wire = slice_of((const char *)input + 1, size - 1);
    start(&ours, input[0]);
    start(&theirs, input[0]);
    wire.n = read_ours(&ours, wire);
    if (ours.n > 0) {
        bool refused = !reading_by_llhttp(&theirs, wire);
        compare(&ours, &theirs, refused);
        if (records)
            put_record(&ours, input[0], wire);
    }
    strbuf_fini(&ours.text);
    strbuf_fini(&theirs.text);
    return 0;
}
