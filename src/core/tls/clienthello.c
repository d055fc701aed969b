/* The hello lies in one or more records. A cursor walks over their contents as if there were no
 * borders, so nothing is copied but the few strings that matter. Lengths nest: each vector narrows
 * what the cursor may read, and must be used up exactly. */
#include "core/tls/clienthello.h"

enum {
    RECORD_HANDSHAKE = 22,
    RECORD_MAJOR = 3,
    RECORD_HEAD = 5,
    RECORD_MAX = 16384, /* RFC 8446 5.1 */
    CLIENT_HELLO = 1,
    MESSAGE_HEAD = 4,
    RANDOM_BYTES = 32,
    SESSION_ID_MAX = 32,
    TLS12 = 0x0303,
    TLS13 = 0x0304,
    HOST_NAME = 0,
    PROTOCOL_MAX = 255,
};

enum extension {
    EXT_SERVER_NAME = 0,
    EXT_ALPN = 16,
    EXT_SUPPORTED_VERSIONS = 43,
    EXT_ECH = 0xfe0d,
};

struct cursor {
    const unsigned char *p;
    size_t record; /* bytes left in the present record */
    size_t left;   /* bytes that may be read */
    bool ok;       /* false: something did not fit; stays so */
};

static unsigned char next(struct cursor *c)
{
    if (!c->ok || c->left == 0) {
        c->ok = false;
        return 0;
    }
    if (c->record == 0) { /* the records were looked through before: the next one has bytes */
        c->record = (size_t)c->p[3] << 8 | c->p[4];
        c->p += RECORD_HEAD;
    }
    c->record--;
    c->left--;
    return *c->p++;
}

static size_t number(struct cursor *c, unsigned bytes)
{
    size_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | next(c);
    return n;
}

static void skip(struct cursor *c, size_t n)
{
    if (n > c->left)
        c->ok = false;
    while (c->ok && n-- > 0)
        (void)next(c);
}

/* Opens a vector whose length stands in so many bytes. Returns what is left after it, for leave().
 */
static size_t enter(struct cursor *c, unsigned length_bytes)
{
    size_t n = number(c, length_bytes);
    if (n > c->left)
        c->ok = false;
    if (!c->ok)
        return 0;
    size_t after = c->left - n;
    c->left = n;
    return after;
}

static void leave(struct cursor *c, size_t after)
{
    if (c->left != 0)
        c->ok = false;
    c->left = after;
}

static void skip_vector(struct cursor *c, unsigned length_bytes)
{
    skip(c, number(c, length_bytes));
}

/* The rest of the present vector, at least one byte. */
static struct slice take(struct cursor *c, char *buf, size_t cap)
{
    size_t n = c->left;
    if (n == 0 || n > cap)
        c->ok = false;
    for (size_t i = 0; c->ok && i < n; i++)
        buf[i] = (char)next(c);
    return c->ok ? slice_of(buf, n) : SLICE_NONE;
}

static bool name_byte(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c) || c == '-' || c == '_' || c == '.' || c == ':';
}

/* One entry, of the one type there is. */
static void server_name(struct cursor *c, struct clienthello *h)
{
    char text[HELLO_NAME_MAX + 1]; /* the dot at the end has room */
    size_t after_list = enter(c, 2);
    if (number(c, 1) != HOST_NAME)
        c->ok = false;
    size_t after_name = enter(c, 2);
    struct slice name = take(c, text, sizeof text);
    leave(c, after_name);
    leave(c, after_list);
    if (name.n > 0 && name.p[name.n - 1] == '.')
        name.n--;
    if (name.n == 0 || name.n > HELLO_NAME_MAX)
        c->ok = false;
    for (size_t i = 0; c->ok && i < name.n; i++) {
        if (!name_byte(name.p[i]))
            c->ok = false;
        h->name[i] = ascii_lower(name.p[i]);
    }
}

static void alpn(struct cursor *c, struct clienthello *h)
{
    char text[PROTOCOL_MAX];
    size_t after = enter(c, 2);
    h->alpn = HELLO_ALPN_OTHER;
    if (c->left == 0)
        c->ok = false;
    while (c->ok && c->left > 0) {
        size_t after_one = enter(c, 1);
        struct slice protocol = take(c, text, sizeof text);
        leave(c, after_one);
        if (slice_eq(protocol, SLICE("http/1.1")))
            h->alpn = HELLO_ALPN_HTTP11;
        else if (slice_eq(protocol, SLICE("h2")) && h->alpn != HELLO_ALPN_HTTP11)
            h->alpn = HELLO_ALPN_H2;
    }
    leave(c, after);
}

/* It replaces the version in the hello's head; what is unknown in it may be GREASE (RFC 8701). */
static void supported_versions(struct cursor *c, struct clienthello *h)
{
    size_t after = enter(c, 1);
    h->modern = false;
    while (c->ok && c->left > 0) {
        size_t version = number(c, 2);
        h->modern = h->modern || version == TLS12 || version == TLS13;
    }
    leave(c, after);
}

static void encrypted_hello(struct cursor *c, struct clienthello *h)
{
    h->ech = true;
    skip(c, c->left);
}

static const struct {
    enum extension type;
    void (*read)(struct cursor *c, struct clienthello *h);
} readers[] = {
    {EXT_SERVER_NAME, server_name},
    {EXT_ALPN, alpn},
    {EXT_SUPPORTED_VERSIONS, supported_versions},
    {EXT_ECH, encrypted_hello},
};
enum { N_READERS = sizeof readers / sizeof readers[0] };

static void extensions(struct cursor *c, struct clienthello *h)
{
    unsigned seen = 0;
    size_t after = enter(c, 2);
    while (c->ok && c->left > 0) {
        size_t type = number(c, 2);
        size_t after_one = enter(c, 2);
        size_t i = 0;
        while (i < N_READERS && readers[i].type != type)
            i++;
        if (i == N_READERS) {
            skip(c, c->left);
        } else {
            if (seen & 1U << i)
                c->ok = false; /* RFC 8446 4.2: each at most once */
            seen |= 1U << i;
            readers[i].read(c, h);
        }
        leave(c, after_one);
    }
    leave(c, after);
}

static void message(struct cursor *c, struct clienthello *h)
{
    h->modern = number(c, 2) >= TLS12;
    skip(c, RANDOM_BYTES);
    size_t session_id = number(c, 1);
    if (session_id > SESSION_ID_MAX)
        c->ok = false;
    skip(c, session_id);
    skip_vector(c, 2); /* cipher suites */
    skip_vector(c, 1); /* compression methods */
    if (c->left > 0)   /* before TLS 1.2 there may be none */
        extensions(c, h);
}

/* Are the records whole and of the right kind as far as the message reaches? *body: its length,
 * once its head is there. */
static enum hello_read look_through(struct slice in, size_t *body)
{
    const unsigned char *p = (const unsigned char *)in.p;
    unsigned char head[MESSAGE_HEAD];
    size_t at = 0, got = 0, want = MESSAGE_HEAD;
    while (got < want) {
        size_t rest = in.n - at;
        if (rest >= 1 && p[at] != RECORD_HANDSHAKE)
            return at == 0 ? HELLO_NOT_TLS : HELLO_BAD;
        if (rest >= 2 && p[at + 1] != RECORD_MAJOR)
            return at == 0 ? HELLO_NOT_TLS : HELLO_BAD;
        if (rest < RECORD_HEAD)
            return HELLO_MORE;
        size_t n = (size_t)p[at + 3] << 8 | p[at + 4];
        if (n == 0 || n > RECORD_MAX)
            return HELLO_BAD;
        at += RECORD_HEAD;
        size_t have = n < in.n - at ? n : in.n - at;
        for (size_t i = 0; i < have && got + i < MESSAGE_HEAD; i++)
            head[got + i] = p[at + i];
        if (got + have > 0 && head[0] != CLIENT_HELLO)
            return HELLO_BAD;
        if (got + have >= MESSAGE_HEAD) {
            *body = (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
            want = MESSAGE_HEAD + *body;
            if (want > HELLO_MESSAGE_MAX || got + n > want)
                return HELLO_BAD; /* too long, or something behind it in its last record */
        }
        if (have < n)
            return HELLO_MORE;
        got += n;
        at += n;
    }
    return HELLO_WHOLE;
}

enum hello_read clienthello_read(struct slice in, struct clienthello *out)
{
    size_t body = 0;
    if (in.n > HELLO_WIRE_MAX)
        in.n = HELLO_WIRE_MAX;
    enum hello_read r = look_through(in, &body);
    if (r == HELLO_MORE && in.n == HELLO_WIRE_MAX)
        return HELLO_BAD;
    if (r != HELLO_WHOLE)
        return r;
    *out = (struct clienthello){.alpn = HELLO_ALPN_NONE};
    struct cursor c = {(const unsigned char *)in.p, 0, MESSAGE_HEAD, true};
    skip(&c, MESSAGE_HEAD);
    c.left = body;
    message(&c, out);
    leave(&c, 0);
    return c.ok ? HELLO_WHOLE : HELLO_BAD;
}
