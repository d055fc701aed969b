/* Content codings. The input once as a body that says it is coded, once as the text of a stream
 * that is; its first byte chooses the format and where the stream is cut.
 *
 * Oracles: never more than CODING_OUT_MAX; a whole result is what zlib gives in one piece; a stream
 * comes back as its text, a cut one as a prefix of it; text that only says gzip is read as it is.
 */
#include "core/aws/coding.h"
#include "core/base/attr.h"

#define ZLIB_CONST
#include <stdlib.h>
#include <zlib.h>

enum { INPUT_MAX = 32 * 1024 };

static const int windows[] = {15 + 16, 15, -15};

static enum coding coding_for(size_t format)
{
    return format == 0 ? CODING_GZIP : CODING_DEFLATE;
}

/* Is text the whole of the first member of body, in one of the formats of the coding? */
static bool inflates_to(struct slice body, size_t format, struct slice text)
{
    z_stream z = {.next_in = (const unsigned char *)body.p, .avail_in = (uInt)body.n};
    unsigned char *out = malloc(text.n + 1);
    ASSERT(inflateInit2(&z, windows[format]) == Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)text.n + 1;
    int rc = inflate(&z, Z_FINISH);
    bool same = rc == Z_STREAM_END && z.total_out <= text.n &&
                memcmp(out, text.p ? text.p : "", z.total_out) == 0 &&
                (format == 0 || z.total_out == text.n);
    inflateEnd(&z);
    free(out);
    return same;
}

static void read_as_body(struct slice body, size_t format, struct strbuf *mem)
{
    for (int whole = 0; whole <= 1; whole++) {
        struct coding_text t = coding_undo(coding_for(format), body, whole, mem);
        ASSERT(t.text.n <= CODING_OUT_MAX || t.text.p == body.p);
        ASSERT(whole || !t.whole);
        if (t.whole && t.text.p != body.p)
            ASSERT(format == 0 ? inflates_to(body, 0, t.text)
                               : inflates_to(body, 1, t.text) || inflates_to(body, 2, t.text));
        if (format == 0 && body.n > 1 && (body.p[0] != '\x1f' || body.p[1] != '\x8b'))
            ASSERT(t.text.p == body.p && t.text.n == body.n);
    }
}

static struct slice pack(struct slice text, size_t format, unsigned char *out, size_t size)
{
    z_stream z = {.next_in = (const unsigned char *)text.p, .avail_in = (uInt)text.n};
    ASSERT(deflateInit2(&z, 6, Z_DEFLATED, windows[format], 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)size;
    ASSERT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return slice_of((const char *)out, z.total_out);
}

static void read_as_text(struct slice text, size_t format, size_t cut, struct strbuf *mem)
{
    size_t size = text.n + text.n / 8 + 128;
    unsigned char *out = malloc(size);
    struct slice body = pack(text, format, out, size);
    struct coding_text t = coding_undo(coding_for(format), body, true, mem);
    ASSERT(t.whole && slice_eq(t.text, text));

    /* Two bytes at least: before, a stream does not show what it is. */
    struct slice head = slice_of(body.p, 2 + (body.n - 2) * cut / 64);
    t = coding_undo(coding_for(format), head, false, mem);
    ASSERT(!t.whole && slice_starts(text, t.text));
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct strbuf mem;
    struct slice rest = slice_of((const char *)data + 1, size - 1);
    size_t format = data[0] % ARRAY_LEN(windows);
    strbuf_init(&mem, CODING_OUT_MAX);
    read_as_body(rest, format, &mem);
    read_as_text(rest, format, data[0] / 4u, &mem);
    ASSERT(mem.cap <= CODING_OUT_MAX);
    strbuf_fini(&mem);
    return 0;
}
