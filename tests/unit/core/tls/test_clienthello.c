/* ClientHellos put together by hand: every field, every way to be wrong, every way to be split. */
#include "unit.h"

#include "core/tls/clienthello.h"

#include <string.h>

struct bytes {
    unsigned char p[HELLO_WIRE_MAX + 1024];
    size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
    ck_assert_uint_le(b->n + n, sizeof b->p);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void put_number(struct bytes *b, size_t value, unsigned width)
{
    for (unsigned i = width; i-- > 0;) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        put(b, &byte, 1);
    }
}

static void put_extension(struct bytes *b, unsigned type, const void *p, size_t n)
{
    put_number(b, type, 2);
    put_number(b, n, 2);
    put(b, p, n);
}
#define EXT(b, type, lit) put_extension(b, type, lit, sizeof(lit) - 1)

static void put_name(struct bytes *b, const char *name)
{
    struct bytes e = {.n = 0};
    put_number(&e, strlen(name) + 3, 2);
    put_number(&e, 0, 1);
    put_number(&e, strlen(name), 2);
    put(&e, name, strlen(name));
    put_extension(b, 0, e.p, e.n);
}

/* The message with its head. */
static void put_message(struct bytes *b, unsigned version, const struct bytes *extensions)
{
    size_t n = 2 + 32 + 1 + 32 + 2 + 2 + 1 + 1 + (extensions ? 2 + extensions->n : 0);
    static const unsigned char zero[33];
    put_number(b, 1, 1);
    put_number(b, n, 3);
    put_number(b, version, 2);
    put(b, zero, 32);
    put_number(b, 32, 1);
    put(b, zero, 32);
    put(b, "\x00\x02\x13\x01", 4);
    put(b, "\x01\x00", 2);
    if (extensions != NULL) {
        put_number(b, extensions->n, 2);
        put(b, extensions->p, extensions->n);
    }
}

/* In records of at most `size` bytes each. */
static void put_records(struct bytes *b, const struct bytes *message, size_t size)
{
    for (size_t at = 0; at < message->n; at += size) {
        size_t n = message->n - at < size ? message->n - at : size;
        put(b, "\x16\x03\x01", 3);
        put_number(b, n, 2);
        put(b, message->p + at, n);
    }
}

/* Static: half a megabyte of them. */
static struct bytes extensions, message, wire;
static struct clienthello hello;

static void clear(void)
{
    extensions.n = message.n = wire.n = 0;
}

static enum hello_read read_wire(size_t n)
{
    return clienthello_read(slice_of((const char *)wire.p, n), &hello);
}

static enum hello_read read_hello(unsigned version)
{
    message.n = wire.n = 0;
    put_message(&message, version, &extensions);
    put_records(&wire, &message, 16384);
    return read_wire(wire.n);
}

START_TEST(nothing_offered)
{
    ck_assert_int_eq(read_hello(0x0303), HELLO_WHOLE);
    ck_assert_str_eq(hello.name, "");
    ck_assert(hello.alpn == HELLO_ALPN_NONE && !hello.ech && hello.modern);
    put_message((message.n = wire.n = 0, &message), 0x0301, NULL); /* without extensions at all */
    put_records(&wire, &message, 16384);
    ck_assert_int_eq(read_wire(wire.n), HELLO_WHOLE);
    ck_assert(!hello.modern);
}
END_TEST

static const struct {
    const char *sni, *name;
} names[] = {
    {"sts.amazonaws.com", "sts.amazonaws.com"},
    {"STS.AmazonAWS.com.", "sts.amazonaws.com"},
    {"a_b-1.example", "a_b-1.example"},
    {"10.0.0.1", "10.0.0.1"},
    {"2001:DB8::1", "2001:db8::1"},
    {"", NULL},
    {".", NULL},
    {"a b", NULL},
    {"a\xc3\xa4", NULL},
    {"a/b", NULL},
    {"*.example", NULL},
};

START_TEST(server_names)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        clear();
        put_name(&extensions, names[i].sni);
        ck_assert_int_eq(read_hello(0x0303), names[i].name ? HELLO_WHOLE : HELLO_BAD);
        if (names[i].name != NULL)
            ck_assert_str_eq(hello.name, names[i].name);
    }
    char longest[256];
    memset(longest, 'a', sizeof longest);
    for (size_t n = 252; n <= 255; n++) {
        clear();
        longest[n] = '\0';
        put_name(&extensions, longest);
        ck_assert_int_eq(read_hello(0x0303), n <= HELLO_NAME_MAX ? HELLO_WHOLE : HELLO_BAD);
        longest[n] = 'a';
    }
}
END_TEST

static const struct {
    const char *p;
    size_t n;
    enum hello_alpn alpn;
} alpns[] = {
#define A(lit, what)                                                                               \
    {                                                                                              \
        lit, sizeof(lit) - 1, what                                                                 \
    }
    A("\0\x09\x08http/1.1", HELLO_ALPN_HTTP11),
    A("\0\x0c\x02h2\x08http/1.1", HELLO_ALPN_HTTP11),
    A("\0\x0c\x08http/1.1\x02h2", HELLO_ALPN_HTTP11),
    A("\0\x03\x02h2", HELLO_ALPN_H2),
    A("\0\x06\x02h2\x02h3", HELLO_ALPN_H2),
    A("\0\x09\x08http/1.0", HELLO_ALPN_OTHER),
    A("\0\x05\x04imap", HELLO_ALPN_OTHER),
};

START_TEST(protocols)
{
    for (size_t i = 0; i < sizeof alpns / sizeof alpns[0]; i++) {
        clear();
        put_extension(&extensions, 16, alpns[i].p, alpns[i].n);
        ck_assert_int_eq(read_hello(0x0303), HELLO_WHOLE);
        ck_assert_int_eq(hello.alpn, alpns[i].alpn);
    }
}
END_TEST

START_TEST(versions)
{
    static const struct {
        unsigned legacy;
        const char *list;
        size_t n;
        bool modern;
    } v[] = {
        {0x0300, NULL, 0, false},
        {0x0302, NULL, 0, false},
        {0x0303, NULL, 0, true},
        {0x0303, "\x02\x03\x02", 3, false}, /* the list counts */
        {0x0301, "\x02\x03\x04", 3, true},
        {0x0303, "\x04\x7a\x7a\x03\x03", 5, true},  /* GREASE first */
        {0x0303, "\x04\x7a\x7a\x03\x05", 5, false}, /* of the future only */
    };
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        clear();
        if (v[i].list != NULL)
            put_extension(&extensions, 43, v[i].list, v[i].n);
        ck_assert_int_eq(read_hello(v[i].legacy), HELLO_WHOLE);
        ck_assert_int_eq(hello.modern, v[i].modern);
    }
}
END_TEST

START_TEST(encrypted_hello)
{
    EXT(&extensions, 0xfe0d, "\0 anything at all");
    put_name(&extensions, "public.example");
    ck_assert_int_eq(read_hello(0x0303), HELLO_WHOLE);
    ck_assert(hello.ech);
    ck_assert_str_eq(hello.name, "public.example");
}
END_TEST

static const struct {
    unsigned type;
    const char *p;
    size_t n;
} wrong[] = {
#define X(type, lit)                                                                               \
    {                                                                                              \
        type, lit, sizeof(lit) - 1                                                                 \
    }
    X(0, ""),
    X(0, "\0\0"),
    X(0, "\0\x04\x01\0\x01g"),        /* a type of name that there is not */
    X(0, "\0\x04\0\0\x02g"),          /* the name is longer than its list */
    X(0, "\0\x04\0\0\x01g!"),         /* the list ends before its extension */
    X(0, "\0\x08\0\0\x01g\0\0\x01h"), /* two */
    X(0, "\0\x06\0\0\x03g\0h"),       /* NUL */
    X(16, ""),
    X(16, "\0\0"),
    X(16, "\0\x01\0"), /* an empty protocol */
    X(16, "\0\x03\x03h2"),
    X(16, "\0\x04\x02h2"),
    X(43, ""),
    X(43, "\x01\x03"),
    X(43, "\x04\x03\x04"),
};

START_TEST(broken_extensions)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        clear();
        put_extension(&extensions, wrong[i].type, wrong[i].p, wrong[i].n);
        ck_assert_msg(read_hello(0x0303) == HELLO_BAD, "%zu", i);
    }
    for (size_t i = 0; i < 2; i++) {
        clear();
        EXT(&extensions, 16, "\0\x03\x02h2");
        EXT(&extensions, i ? 16 : 17, "\0\x03\x02h2"); /* twice what is read: not allowed */
        ck_assert_int_eq(read_hello(0x0303), i ? HELLO_BAD : HELLO_WHOLE);
    }
}
END_TEST

START_TEST(not_tls)
{
    static const struct {
        const char *text;
        enum hello_read want;
    } t[] = {
        {"", HELLO_MORE},
        {"G", HELLO_NOT_TLS},
        {"GET / HTTP/1.1\r\n", HELLO_NOT_TLS},
        {"SSH-2.0-x\r\n", HELLO_NOT_TLS},
        {"\x80\x2e\x01", HELLO_NOT_TLS}, /* SSL 2 */
        {"\x15\x03\x01", HELLO_NOT_TLS}, /* an alert */
        {"\x16", HELLO_MORE},
        {"\x16\x02", HELLO_NOT_TLS},
        {"\x16\xfe\xff", HELLO_NOT_TLS}, /* DTLS */
        {"\x16\x03", HELLO_MORE},
        {"\x16\x03\x01\x01\x02\x02", HELLO_BAD}, /* a ServerHello */
        {"\x16\x03\x01\x40\x01\x01", HELLO_BAD}, /* 16,385 bytes */
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        ck_assert_msg(clienthello_read(slice_str(t[i].text), &hello) == t[i].want, "%zu", i);
    ck_assert_int_eq(clienthello_read(slice_of("\x16\x03\x01\0\0", 5), &hello), HELLO_BAD);
    ck_assert_int_eq(clienthello_read(slice_of("\x16\x03\x01\0\x01\x01\x17\x03\x01", 9), &hello),
                     HELLO_BAD);
}
END_TEST

/* Whatever the records and however much has come: MORE until the last byte, then the same. */
START_TEST(split_anywhere)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 64, 16384};
    put_name(&extensions, "sts.amazonaws.com");
    EXT(&extensions, 16, "\0\x0c\x02h2\x08http/1.1");
    EXT(&extensions, 43, "\x04\x03\x04\x03\x03");
    put_message(&message, 0x0303, &extensions);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        wire.n = 0;
        put_records(&wire, &message, sizes[i]);
        for (size_t n = 0; n < wire.n; n++)
            ck_assert_int_eq(read_wire(n), HELLO_MORE);
        put(&wire, "\x17what comes next is not looked at", 33);
        for (size_t n = wire.n - 33; n <= wire.n; n++) {
            ck_assert_int_eq(read_wire(n), HELLO_WHOLE);
            ck_assert_str_eq(hello.name, "sts.amazonaws.com");
            ck_assert(hello.alpn == HELLO_ALPN_HTTP11 && hello.modern);
        }
    }
}
END_TEST

/* The message may not be cut short by its own lengths, nor go on in its last record. */
START_TEST(lengths_agree)
{
    put_name(&extensions, "sts.amazonaws.com");
    put_message(&message, 0x0303, &extensions);
    for (size_t n = 4; n < message.n; n++) {
        struct bytes *cut = &extensions;
        cut->n = 0;
        put(cut, message.p, n);
        cut->p[1] = 0;
        cut->p[2] = (unsigned char)((n - 4) >> 8);
        cut->p[3] = (unsigned char)(n - 4);
        wire.n = 0;
        put_records(&wire, cut, 16384);
        /* Where the extensions would begin is an end as well. */
        ck_assert_int_eq(read_wire(wire.n), n == 4 + 73 ? HELLO_WHOLE : HELLO_BAD);
    }
    put(&message, "\x01", 1);
    wire.n = 0;
    put_records(&wire, &message, 16384);
    ck_assert_int_eq(read_wire(wire.n), HELLO_BAD);
}
END_TEST

START_TEST(size_is_bounded)
{
    static const char filler[16384];
    put_extension(&extensions, 21, filler, sizeof filler);
    ck_assert_int_eq(read_hello(0x0303), HELLO_WHOLE);
    put_extension(&extensions, 22, filler, sizeof filler);
    ck_assert_int_eq(read_hello(0x0303), HELLO_BAD);
    /* Said at once, by the length in its head. */
    ck_assert_int_eq(read_wire(9), HELLO_BAD);
    /* A message of fair size in records of one byte each. */
    clear();
    put_extension(&extensions, 21, filler, 12000);
    put_message(&message, 0x0303, &extensions);
    message.n = HELLO_WIRE_MAX / 6;
    put_records(&wire, &message, 1);
    put(&wire, "\x16\x03\x01\x00\x01", 4);
    ck_assert_int_eq(read_wire(HELLO_WIRE_MAX - 1), HELLO_MORE);
    ck_assert_int_eq(read_wire(HELLO_WIRE_MAX), HELLO_BAD);
}
END_TEST

static TCase *reading(void)
{
    TCase *tc = tcase_create("clienthello");
    tcase_add_checked_fixture(tc, clear, NULL);
    tcase_add_test(tc, nothing_offered);
    tcase_add_test(tc, server_names);
    tcase_add_test(tc, protocols);
    tcase_add_test(tc, versions);
    tcase_add_test(tc, encrypted_hello);
    tcase_add_test(tc, broken_extensions);
    tcase_add_test(tc, not_tls);
    tcase_add_test(tc, split_anywhere);
    tcase_add_test(tc, lengths_agree);
    tcase_add_test(tc, size_is_bounded);
    return tc;
}

UNIT_MAIN("clienthello", reading)
