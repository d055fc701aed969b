/* ClientHellos. The first byte chooses a cut; the rest is what a client sends.
 *
 * Oracles: the verdict on a prefix is MORE or the final one, whole, cut once and byte by byte; the
 * same message in records of one size means the same; a name is one that can be written in a log.
 */
#include "core/base/attr.h"
#include "core/tls/opening.h"

#include <stdlib.h>

enum { BY_BYTE_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* Reads a copy of exactly n bytes, so that a read behind them is noticed. */
static enum hello_read read_copy(struct slice wire, size_t n, struct clienthello *h)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, wire.p, n);
    enum hello_read r = clienthello_read(slice_of(copy, n), h);
    free(copy);
    return r;
}

static void same(const struct clienthello *a, const struct clienthello *b)
{
    ASSERT(slice_eq(slice_str(a->name), slice_str(b->name)));
    ASSERT(a->alpn == b->alpn && a->ech == b->ech && a->modern == b->modern);
}

static void check_name(const struct clienthello *h)
{
    for (const char *p = h->name; *p != '\0'; p++)
        ASSERT((*p >= 'a' && *p <= 'z') || ascii_is_digit(*p) || strchr("-_.:", *p) != NULL);
    ASSERT(strlen(h->name) <= HELLO_NAME_MAX);
    struct opening o = opening_of(h, SLICE("sts.amazonaws.com"));
    ASSERT((o.kind == OPENING_OPEN) == (o.reason == NULL));
}

static void check_prefix(struct slice wire, size_t n, enum hello_read last,
                         const struct clienthello *h)
{
    struct clienthello part;
    enum hello_read r = read_copy(wire, n, &part);
    ASSERT(r == HELLO_MORE || r == last);
    if (r == HELLO_WHOLE)
        same(&part, h);
}

static void add_byte(char *out, size_t *n, char byte)
{
    memcpy(out + *n, "\x16\x03\x01\x00\x01", 5);
    out[*n + 5] = byte;
    *n += 6;
}

/* The same message, each byte in a record of its own. */
static void check_records(struct slice wire, const struct clienthello *h)
{
    const unsigned char *p = (const unsigned char *)wire.p;
    char *out = malloc(wire.n * 6);
    unsigned char head[4];
    size_t n = 0, got = 0, at = 0;
    while (got < 4 || got < 4 + ((size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3])) {
        size_t end = at + 5 + ((size_t)p[at + 3] << 8 | p[at + 4]);
        for (at += 5; at < end; at++) {
            if (got < 4)
                head[got] = p[at];
            got++;
            add_byte(out, &n, wire.p[at]);
        }
    }
    struct clienthello again;
    if (n <= HELLO_WIRE_MAX) {
        ASSERT(clienthello_read(slice_of(out, n), &again) == HELLO_WHOLE);
        same(&again, h);
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size < 1)
        return 0;
    struct slice wire = slice_of((const char *)input + 1, size - 1);
    struct clienthello whole;
    enum hello_read r = read_copy(wire, wire.n, &whole);
    check_prefix(wire, input[0] % (wire.n + 1), r, &whole);
    for (size_t n = 0; n < wire.n && wire.n <= BY_BYTE_MAX; n++)
        check_prefix(wire, n, r, &whole);
    if (r == HELLO_WHOLE) {
        check_name(&whole);
        check_records(wire, &whole);
    }
    return 0;
}
