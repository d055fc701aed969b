/* Bodies inflated within bounds: in steps of a small buffer, so that what is allocated follows what
 * comes out, and no further than CODING_OUT_MAX, whatever a stream promises.
 *
 * Peers say gzip and send text, say deflate and mean either of two formats, and break off. What can
 * be read counts: a stream that yields nothing is taken for text, one that breaks gives what came
 * before. Raw deflate has no header by which to know it, and some text inflates to noise for a few
 * bytes: there one error makes it text. */
#include "core/aws/coding.h"

#define ZLIB_CONST
#include <zlib.h>

#include "core/base/attr.h"

enum { STEP_BYTES = 8 * 1024 };

/* windowBits of inflateInit2. */
enum { WINDOW_ZLIB = 15, WINDOW_GZIP = 15 + 16, WINDOW_RAW = -15 };

enum inflated {
    INFLATED_END,    /* the stream and its checks are complete */
    INFLATED_PREFIX, /* the input or the bound ended first */
    INFLATED_BROKEN, /* the rest is no such stream */
};

static enum coding coding_named(struct slice name)
{
    static const struct {
        struct slice name;
        enum coding coding;
    } codings[] = {
        {{"", 0}, CODING_IDENTITY},   {{"deflate", 7}, CODING_DEFLATE},
        {{"gzip", 4}, CODING_GZIP},   {{"identity", 8}, CODING_IDENTITY},
        {{"x-gzip", 6}, CODING_GZIP},
    };
    for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
        if (slice_eq_nocase(name, codings[i].name))
            return codings[i].coding;
    }
    return CODING_UNKNOWN;
}

enum coding coding_of(const struct header_list *fields)
{
    enum coding found = CODING_IDENTITY;
    for (size_t i = 0; i < fields->n; i++) {
        struct slice rest = fields->v[i].value, name;
        bool done = !slice_eq_nocase(fields->v[i].name, SLICE("content-encoding"));
        while (slice_next(&rest, ',', &name, &done)) {
            enum coding c = coding_named(slice_trim(name));
            if (c != CODING_IDENTITY)
                found = found == CODING_IDENTITY ? c : CODING_UNKNOWN;
        }
    }
    return found;
}

/* One turn of inflate; what comes out is appended. */
static int inflate_step(z_stream *z, struct strbuf *out)
{
    unsigned char step[STEP_BYTES];
    size_t room = CODING_OUT_MAX - out->n;
    z->next_out = step;
    z->avail_out = room < STEP_BYTES ? (uInt)room : STEP_BYTES;
    int rc = inflate(z, Z_SYNC_FLUSH);
    strbuf_put(out, slice_of((const char *)step, (size_t)(z->next_out - step)));
    return rc;
}

static enum inflated inflate_all(int window, struct slice body, struct strbuf *out)
{
    z_stream z = {.next_in = (const unsigned char *)body.p, .avail_in = (uInt)body.n};
    enum inflated result = INFLATED_PREFIX;
    if (body.n > UINT32_MAX || inflateInit2(&z, window) != Z_OK)
        return INFLATED_BROKEN;
    while (out->n < CODING_OUT_MAX) {
        int rc = inflate_step(&z, out);
        if (rc == Z_STREAM_END && window == WINDOW_GZIP && z.avail_in > 0) {
            /* A gzip file is a row of members (RFC 1952 2.2). */
            if (inflateReset(&z) != Z_OK)
                break;
            continue;
        }
        if (rc == Z_OK)
            continue;
        if (rc == Z_STREAM_END)
            result = z.avail_in == 0 ? INFLATED_END : INFLATED_BROKEN;
        else if (rc != Z_BUF_ERROR)
            result = INFLATED_BROKEN;
        break;
    }
    inflateEnd(&z);
    return result;
}

/* No stream at all: nothing came out of it, nor could more bytes change that. */
static bool is_text(enum inflated result, bool whole, const struct strbuf *out)
{
    return out->n == 0 && (result == INFLATED_BROKEN || (result == INFLATED_PREFIX && whole));
}

static enum inflated undo_deflate(struct slice body, bool whole, struct strbuf *out)
{
    enum inflated result = inflate_all(WINDOW_ZLIB, body, out);
    if (!is_text(result, whole, out))
        return result;
    result = inflate_all(WINDOW_RAW, body, out);
    bool cut = result == INFLATED_PREFIX && out->n < CODING_OUT_MAX;
    if (result == INFLATED_BROKEN || (whole && cut)) {
        strbuf_reset(out);
        return INFLATED_BROKEN;
    }
    return result;
}

struct coding_text coding_undo(enum coding c, struct slice body, bool whole, struct strbuf *mem)
{
    struct coding_text plain = {body, whole};
    if (c == CODING_UNKNOWN)
        return (struct coding_text){SLICE_NONE, false};
    if (c == CODING_IDENTITY || body.n == 0)
        return plain;
    strbuf_reset(mem);
    enum inflated result =
        c == CODING_GZIP ? inflate_all(WINDOW_GZIP, body, mem) : undo_deflate(body, whole, mem);
    if (is_text(result, whole, mem))
        return plain;
    return (struct coding_text){strbuf_slice(mem), whole && result == INFLATED_END};
}
