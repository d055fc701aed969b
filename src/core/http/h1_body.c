/* Body framing. The chunked decoder is a byte machine over the chunk lines and a run over the data;
 * it buffers nothing but a trailer section, and that only when there is one. */
#include "core/http/h1_body.h"
#include "core/base/units.h"
#include "core/http/hopbyhop.h"

enum {
    SIZE_DIGITS_MAX = 16,
    EXT_BYTES_MAX = 256,
    TRAILER_BYTES_MAX = 8 * 1024,
    TRAILER_FIELDS_MAX = 64,
    OVERHEAD_PER_BYTE = 16,
};
#define OVERHEAD_FREE_BYTES (64 * KIB)

/* Inside ";" name [ "=" ( token / quoted-string ) ], repeated (RFC 9112 7.1.1, without the white
 * space that only bad senders generate). */
enum ext {
    EXT_NAME_FIRST,
    EXT_NAME,
    EXT_VALUE_FIRST,
    EXT_TOKEN,
    EXT_QUOTED,
    EXT_ESCAPED,
    EXT_QUOTE_END,
    EXT_BAD,
};

void h1_body_init(struct h1_body *b, enum http_framing framing, uint64_t content_length)
{
    *b = (struct h1_body){.framing = framing};
    if (framing == HTTP_BODY_LENGTH)
        b->left = content_length;
    b->done = framing == HTTP_BODY_NONE || (framing == HTTP_BODY_LENGTH && b->left == 0);
    strbuf_init(&b->trailer, TRAILER_BYTES_MAX);
}

void h1_body_fini(struct h1_body *b)
{
    strbuf_fini(&b->trailer);
}

static enum parse refuse(struct h1_body *b, const char *problem)
{
    b->problem = problem;
    return PARSE_BAD;
}

static enum parse expect(struct h1_body *b, char c, char want, enum h1_chunk_state next)
{
    if (c != want)
        return refuse(b, "chunk data or line not ended by CRLF");
    b->chunk = next;
    return PARSE_OK;
}

static int hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum parse size_byte(struct h1_body *b, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        /* Refused before the shift could reach 2^62. */
        if (++b->digits > SIZE_DIGITS_MAX || b->left >> 58 != 0)
            return refuse(b, "chunk size too large");
        b->left = b->left << 4 | (unsigned)digit;
        return PARSE_OK;
    }
    if (b->digits == 0)
        return refuse(b, "chunk size missing");
    if (c == ';') {
        b->chunk = H1_CHUNK_EXT;
        b->ext = EXT_NAME_FIRST;
        b->ext_bytes = 1;
        return PARSE_OK;
    }
    if (c != '\r')
        return refuse(b, "bad byte in the chunk size");
    b->chunk = H1_CHUNK_SIZE_LF;
    return PARSE_OK;
}

static enum ext ext_next(enum ext state, char c)
{
    unsigned char class = http_byte_class[(unsigned char)c];
    switch (state) {
    case EXT_NAME_FIRST:
        return class & HTTP_TCHAR ? EXT_NAME : EXT_BAD;
    case EXT_NAME:
        if (c == '=')
            return EXT_VALUE_FIRST;
        break;
    case EXT_VALUE_FIRST:
        if (c == '"')
            return EXT_QUOTED;
        return class & HTTP_TCHAR ? EXT_TOKEN : EXT_BAD;
    case EXT_QUOTED:
        if (c == '"')
            return EXT_QUOTE_END;
        if (c == '\\')
            return EXT_ESCAPED;
        return class & HTTP_TEXT ? EXT_QUOTED : EXT_BAD;
    case EXT_ESCAPED:
        return class & HTTP_TEXT ? EXT_QUOTED : EXT_BAD;
    case EXT_TOKEN:
    case EXT_QUOTE_END:
    case EXT_BAD:
        break;
    }
    if (c == ';')
        return EXT_NAME_FIRST;
    return state != EXT_QUOTE_END && (class & HTTP_TCHAR) ? state : EXT_BAD;
}

static enum parse ext_byte(struct h1_body *b, char c)
{
    bool complete = b->ext == EXT_NAME || b->ext == EXT_TOKEN || b->ext == EXT_QUOTE_END;
    if (c == '\r' && complete) {
        b->chunk = H1_CHUNK_SIZE_LF;
        return PARSE_OK;
    }
    if (++b->ext_bytes > EXT_BYTES_MAX)
        return refuse(b, "chunk extension too long");
    b->ext = ext_next(b->ext, c);
    return b->ext == EXT_BAD ? refuse(b, "bad chunk extension") : PARSE_OK;
}

/* The line is whole: b->left is the size of the chunk. */
static enum parse size_line_end(struct h1_body *b, char c)
{
    if (b->overhead > OVERHEAD_FREE_BYTES + OVERHEAD_PER_BYTE * b->total)
        return refuse(b, "chunk lines out of proportion to the data");
    b->digits = 0;
    return expect(b, c, '\n', b->left > 0 ? H1_CHUNK_DATA : H1_CHUNK_TRAILER);
}

static enum parse line_byte(struct h1_body *b, char c)
{
    b->overhead++;
    switch (b->chunk) {
    case H1_CHUNK_SIZE:
        return size_byte(b, c);
    case H1_CHUNK_EXT:
        return ext_byte(b, c);
    case H1_CHUNK_SIZE_LF:
        return size_line_end(b, c);
    case H1_CHUNK_DATA_CR:
        return expect(b, c, '\r', H1_CHUNK_DATA_LF);
    case H1_CHUNK_DATA_LF:
        return expect(b, c, '\n', H1_CHUNK_SIZE);
    case H1_CHUNK_END:
        b->done = c == '\n';
        return expect(b, c, '\n', H1_CHUNK_END);
    case H1_CHUNK_DATA:
    case H1_CHUNK_TRAILER:
        break;
    }
    ASSERT(false);
    return PARSE_BAD;
}

static void keep_trailers(struct h1_body *b, struct arena *a)
{
    struct header_list all = {0};
    h1_fields_split(arena_copy(a, strbuf_slice(&b->trailer)), b->scan.count, a, &all);
    for (size_t i = 0; i < all.n; i++)
        if (hopbyhop_trailer_allowed(all.v[i].name))
            header_add(&b->trailers, a, all.v[i].name, all.v[i].value);
}

/* Line by line into the trailer buffer, so that nothing behind the section is copied. */
static enum parse read_trailer(struct h1_body *b, const char *buf, size_t n, struct arena *a,
                               size_t *used)
{
    while (*used < n) {
        struct slice line = slice_of(buf + *used, n - *used);
        size_t lf = slice_index(line, '\n');
        if (lf < line.n)
            line.n = lf + 1;
        if (line.n > TRAILER_BYTES_MAX - b->trailer.n)
            line.n = TRAILER_BYTES_MAX - b->trailer.n;
        *used += line.n;
        if (!strbuf_put(&b->trailer, line) || line.n == 0)
            return refuse(b, "trailer section too large");
        enum parse p = h1_fields_scan(&b->scan, b->trailer.p, b->trailer.n, TRAILER_FIELDS_MAX);
        if (p == PARSE_BAD)
            return refuse(b, b->scan.problem);
        if (p == PARSE_OK) {
            keep_trailers(b, a);
            b->done = true;
            return PARSE_OK;
        }
    }
    return PARSE_MORE;
}

static struct slice take_data(struct h1_body *b, const char *buf, size_t n)
{
    size_t take = b->left < n ? (size_t)b->left : n;
    b->left -= take;
    b->total += take;
    return slice_of(buf, take);
}

static enum parse read_chunked(struct h1_body *b, const char *buf, size_t n, struct arena *a,
                               size_t *used, struct slice *data)
{
    while (*used < n) {
        char c = buf[*used];
        if (b->chunk == H1_CHUNK_DATA) {
            *data = take_data(b, buf + *used, n - *used);
            *used += data->n;
            if (b->left == 0)
                b->chunk = H1_CHUNK_DATA_CR;
            return PARSE_MORE;
        }
        if (b->chunk == H1_CHUNK_TRAILER) {
            if (c != '\r' || b->trailer.n > 0)
                return read_trailer(b, buf, n, a, used);
            b->chunk = H1_CHUNK_END;
            ++*used;
            continue;
        }
        enum parse p = line_byte(b, c);
        if (p != PARSE_OK)
            return p;
        ++*used;
        if (b->done)
            return PARSE_OK;
    }
    return PARSE_MORE;
}

enum parse h1_body_read(struct h1_body *b, const char *buf, size_t n, struct arena *a, size_t *used,
                        struct slice *data)
{
    *used = 0;
    *data = SLICE_NONE;
    if (b->problem)
        return PARSE_BAD;
    if (b->done)
        return PARSE_OK;
    switch (b->framing) {
    case HTTP_BODY_CHUNKED:
        return read_chunked(b, buf, n, a, used, data);
    case HTTP_BODY_LENGTH:
        *data = take_data(b, buf, n);
        b->done = b->left == 0;
        break;
    case HTTP_BODY_UNTIL_CLOSE:
        *data = slice_of(buf, n);
        b->total += n;
        break;
    case HTTP_BODY_NONE:
        break;
    }
    *used = data->n;
    return b->done ? PARSE_OK : PARSE_MORE;
}

bool h1_body_eof(struct h1_body *b)
{
    if (b->framing == HTTP_BODY_UNTIL_CLOSE)
        b->done = true;
    return b->done;
}

size_t h1_chunk_head(char out[H1_CHUNK_HEAD_MAX], uint64_t n)
{
    size_t digits = 1;
    while (digits < SIZE_DIGITS_MAX && n >> (4 * digits) != 0)
        digits++;
    for (size_t i = 0; i < digits; i++)
        out[i] = "0123456789abcdef"[n >> (4 * (digits - 1 - i)) & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}

bool h1_chunk_end(struct strbuf *out, const struct header_list *trailers)
{
    strbuf_put(out, SLICE("0\r\n"));
    for (size_t i = 0; trailers && i < trailers->n; i++) {
        strbuf_put(out, trailers->v[i].name);
        strbuf_put(out, SLICE(": "));
        strbuf_put(out, trailers->v[i].value);
        strbuf_put(out, SLICE("\r\n"));
    }
    strbuf_put(out, SLICE("\r\n"));
    return !out->overflow;
}
