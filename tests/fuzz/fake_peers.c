/* Fake peers. Bodies of answers are one byte, 0x80 + the number of the answer, repeated: a client
 * can tell from any byte where it came from. */
#include "fake_peers.h"

#include "core/http/h1_body.h"
#include "core/http/h1_head.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_LETTER = 0x80, GOT_MAX = 4 << 20, BULK = 300 * 1000, WINDOW = 8192 };

/* --- sockets --- */

static int door(uint16_t *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof sa;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), window = WINDOW;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, n) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
        return -1;
    *port = ntohs(sa.sin_port);
    return fd;
}

bool fakes_open_doors(struct fakes_doors *d)
{
    d->client = door(&d->client_port);
    d->origin = door(&d->origin_port);
    return d->client >= 0 && d->origin >= 0;
}

/* With a reset: nothing stays in TIME_WAIT, thousands of times a second. */
static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* False: it cannot be said any more. What the socket does not take is a cut. */
static bool say(int fd, struct slice s)
{
    return fd >= 0 && send(fd, s.p, s.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)s.n;
}

/* Appends what there is. 1: all of it; 0: the end came; -1: a reset. */
static int hear(int fd, struct strbuf *out)
{
    char buf[16384];
    for (;;) {
        ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n <= 0)
            return n == 0 ? 0 : errno == EAGAIN ? 1 : -1;
        strbuf_put(out, slice_of(buf, (size_t)n));
    }
}

/* --- clients --- */

void fakes_init(struct fakes *p, const struct fakes_doors *doors)
{
    *p = (struct fakes){.doors = doors};
}

int fakes_connect(struct fakes *p)
{
    if (p->n_clients == FAKES_CLIENTS)
        return -1;
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons(p->doors->client_port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, window = WINDOW;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    ASSERT(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    p->client = p->n_clients++;
    struct fake_client *c = &p->clients[p->client];
    *c = (struct fake_client){.fd = fd};
    strbuf_init(&c->got, GOT_MAX);
    int theirs = accept4(p->doors->client, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ASSERT(theirs >= 0);
    return theirs;
}

#define AWS "s3.us-east-1.amazonaws.com"
#define DDB "dynamodb.us-east-1.amazonaws.com"
#define SQS "sqs.us-east-1.amazonaws.com"
#define HOST(name) "Host: " name "\r\n"

/* "#" stands for the number of the request; what follows "|" is sent later. */
static const struct {
    enum http_method method;
    const char *text;
    unsigned attempts;
    bool last;        /* the connection ends with it */
    const char *body; /* "B": BULK of them */
} requests[] = {
    {HTTP_GET, "GET http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "\r\n", 3, false, ""},
    {HTTP_PUT, "PUT http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "Content-Length: 5\r\n\r\nhello", 3,
     false, "hello"},
    {HTTP_POST,
     "POST http://" DDB
     "/q# HTTP/1.1\r\n" HOST(DDB) "X-Amz-Target: DynamoDB_20120810.GetItem\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
     4, false, "{}"},
    {HTTP_PUT,
     "PUT http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "Content-Length: 9\r\n\r\nhell|o you", 3,
     false, "hello you"},
    {HTTP_PUT,
     "PUT http://" AWS
     "/b/q# HTTP/1.1\r\n" HOST(AWS) "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n|hello",
     3, false, "hello"},
    {HTTP_HEAD, "HEAD http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "\r\n", 3, false, ""},
    {HTTP_GET, "GET http://" AWS "/b/q# HTTP/1.0\r\n\r\n", 3, true, ""},
    {HTTP_GET, "GET http://" AWS "/b/q# HTTP/1.1\r\nHo|st: " AWS "\r\n\r\n", 3, false, ""},
    {HTTP_GET, "GET http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "Connection: close\r\n\r\n", 3,
     true, ""},
    {HTTP_PUT,
     "PUT http://" AWS
     "/b/q# HTTP/1.1\r\n" HOST(AWS) "Transfer-Encoding: chunked\r\n\r\n5\r\nhel|lo\r\n0\r\n\r\n",
     3, false, "hello"},
    {HTTP_GET, "GET http://plain.test/q# HTTP/1.1\r\n" HOST("plain.test") "\r\n", 1, false, ""},
    {HTTP_POST,
     "POST http://plain.test/q# HTTP/1.1\r\n" HOST("plain.test") "Content-Length: 1\r\n\r\n|x", 1,
     false, "x"},
    {HTTP_PUT, "PUT http://" AWS "/b/q# HTTP/1.1\r\n" HOST(AWS) "Content-Length: 300000\r\n\r\n", 3,
     false, "B"},
    {HTTP_POST,
     "POST http://" AWS "/b/q#?uploads HTTP/1.1\r\n" HOST(AWS) "Content-Length: 0\r\n\r\n", 3,
     false, ""},
    {HTTP_OTHER,
     "OPTIONS http://plain.test/q# HTTP/1.1\r\n" HOST("plain.test") "Max-Forwards: 0\r\n\r\n", 1,
     true, ""},
    {HTTP_GET,
     "GET http://plain.test/q# HTTP/1.1\r\n" HOST(
         "plain.test") "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
     1, false, ""},
    {HTTP_POST,
     "POST http://" SQS "/q# HTTP/1.1\r\n" HOST(
         SQS) "X-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
              "Content-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}",
     3, false, "{}"},
};

/* As many of these bytes as the socket takes. */
static void pour(int fd, char byte, size_t *left)
{
    char text[16384];
    memset(text, byte, sizeof text);
    while (*left > 0) {
        size_t n = *left < sizeof text ? *left : sizeof text;
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            return;
        *left -= (size_t)sent;
    }
}

static void begin_request(struct fakes *p, struct fake_client *c, unsigned kind)
{
    char text[512];
    const char *from = requests[kind].text;
    if (p->n_sent == FAKES_REQUESTS || c->n_requests == FAKES_QUEUE || c->refusing)
        return;
    unsigned number = p->n_sent++;
    const char *hash = strchr(from, '#'), *bar = strchr(from, '|');
    size_t n = bar ? (size_t)(bar - from) : strlen(from);
    snprintf(text, sizeof text, "%.*s%u%.*s", (int)(hash - from), from, number,
             (int)(n - (size_t)(hash + 1 - from)), hash + 1);
    say(c->fd, slice_str(text));
    c->bulk = strstr(text, "300000") != NULL ? BULK : 0;
    p->kinds[number] = kind;
    p->allowed[number] = requests[kind].attempts;
    c->methods[c->n_requests++] = requests[kind].method;
    c->refusing = requests[kind].last;
    c->rest = bar ? slice_str(bar + 1) : SLICE_NONE;
}

void fakes_request(struct fakes *p, unsigned kind)
{
    struct fake_client *c = &p->clients[p->client];
    if (c->fd < 0 || c->bulk > 0)
        return;
    if (c->rest.n > 0) {
        say(c->fd, c->rest);
        c->rest = SLICE_NONE;
        return;
    }
    kind %= 2 * ARRAY_LEN(requests);
    begin_request(p, c, kind % ARRAY_LEN(requests));
    if (kind >= ARRAY_LEN(requests) && c->rest.n == 0 && c->bulk == 0) /* pipelined */
        begin_request(p, c, kind % 2);
}

void fakes_client_ends(struct fakes *p, unsigned how)
{
    struct fake_client *c = &p->clients[p->client];
    if (c->fd < 0)
        return;
    c->refusing = true;
    c->bulk = 0;
    if (how & 1) {
        reset(c->fd);
        c->fd = -1;
        c->cut = true;
    } else {
        shutdown(c->fd, SHUT_WR);
    }
}

/* --- the origin --- */

static struct fake_origin *present(struct fakes *p)
{
    return p->n_origins > 0 ? &p->origins[p->origin] : NULL;
}

/* The first byte of an answer makes an attempt of what was sent on a pooled connection. */
static bool answer_bytes(struct fakes *p, struct fake_origin *o, struct slice s)
{
    if (o->last >= 0 && !o->last_counts) {
        p->attempts[o->last]++;
        o->last_counts = true;
    }
    o->ended = o->ended || !say(o->fd, s);
    return !o->ended;
}

/* n letters of answer a, as one chunk or bare. */
static bool letters(struct fakes *p, struct fake_origin *o, unsigned a, size_t n, bool chunk)
{
    char text[256];
    size_t head = chunk && n > 0 ? (size_t)snprintf(text, 32, "%zx\r\n", n) : 0;
    memset(text + head, (int)(FIRST_LETTER + a), n);
    if (head > 0) {
        text[head + n] = '\r';
        text[head + n + 1] = '\n';
    }
    p->answers[a].left -= n;
    return answer_bytes(p, o, slice_of(text, head + n + (head > 0 ? 2 : 0)));
}

enum shape { NOTHING, LENGTH, CHUNKED, UNTIL_END };

static const struct {
    const char *head; /* up to the framing */
    enum shape shape;
    size_t n;    /* letters */
    size_t hold; /* of them said later */
    bool end;    /* the end of the chunks, or the last held letters, comes later */
} answers[] = {
    {"HTTP/1.1 200 OK\r\n", LENGTH, 10, 0, false},
    {"HTTP/1.1 200 OK\r\n", LENGTH, 10, 5, true},
    {"HTTP/1.1 200 OK\r\n", CHUNKED, 20, 0, false},
    {"HTTP/1.1 200 OK\r\n", CHUNKED, 20, 7, true},
    {"HTTP/1.1 200 OK\r\n", UNTIL_END, 30, 10, true},
    {"HTTP/1.1 503 Slow Down\r\n", LENGTH, 12, 0, false},
    {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.1 100 Continue\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.1 400 Bad\r\nx-amzn-ErrorType: ThrottlingException\r\n", LENGTH, 9, 0, false},
    {"HTTP/1.1 204 No\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.1 304 Not\r\nContent-Length: 7\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.1 503 Slow\r\nx-amz-retry-after: 100\r\n", LENGTH, 8, 8, true},
    {"HTTP/1.1 200 OK\r\nConnection: close\r\n", LENGTH, 11, 0, false},
    {"HTTP/1.1 200 OK\r\n", LENGTH, BULK, 0, false},
    {"HTTP/1.1 200 OK\r\n", LENGTH, BULK, 0, true},
    {"HTTP/1.1 200 OK\r\n", CHUNKED, 100, 1, true},
    {"HTTP/1.1 503 Slow Down\r\n", CHUNKED, 6, 0, true},
    {"HTTP/1.1 503 Slow Down\r\n", UNTIL_END, 6, 0, true},
    {"HTTP/1.1 103 Early\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.0 200 OK\r\n", UNTIL_END, 6, 0, true},
    {"HTTP/1.1 404 No\r\n", LENGTH, 6, 0, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", LENGTH, 6, 0, false},
    {"HTTP/1.1 101 Switch\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", NOTHING, 0, 0, false},
    {"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n", CHUNKED, 10, 0, false},
};

static void finish_answer(struct fakes *p, struct fake_origin *o)
{
    unsigned a = (unsigned)o->open;
    bool ok = letters(p, o, a, p->answers[a].left, o->chunked);
    if (o->chunked)
        ok = answer_bytes(p, o, SLICE("0\r\n\r\n"));
    if (o->until_end) /* whole when the end has come */
        return;
    p->answers[a].whole = ok;
    o->open = -1;
}

static void begin_answer(struct fakes *p, struct fake_origin *o, unsigned kind)
{
    char head[256];
    enum shape shape = answers[kind].shape;
    size_t n = answers[kind].n;
    if (p->n_answers == FAKES_ANSWERS)
        return;
    int at = snprintf(head, sizeof head, "%s", answers[kind].head);
    if (shape == LENGTH)
        at += snprintf(head + at, sizeof head - (size_t)at, "Content-Length: %zu\r\n", n);
    else if (shape == CHUNKED)
        at += snprintf(head + at, sizeof head - (size_t)at, "Transfer-Encoding: chunked\r\n");
    at += snprintf(head + at, sizeof head - (size_t)at, "\r\n");
    answer_bytes(p, o, slice_of(head, (size_t)at));
    if (shape == NOTHING)
        return;
    unsigned a = p->n_answers++;
    p->answers[a] = (struct fake_answer){.n = n, .left = n};
    o->open = (int)a;
    o->chunked = shape == CHUNKED;
    o->until_end = shape == UNTIL_END;
    o->bulk = n == BULK;
    if (o->bulk)
        return;
    letters(p, o, a, n - answers[kind].hold, o->chunked);
    if (!answers[kind].end)
        finish_answer(p, o);
}

void fakes_answer(struct fakes *p, unsigned kind)
{
    struct fake_origin *o = present(p);
    if (o == NULL || o->fd < 0 || o->ended)
        return;
    if (o->open >= 0 && !o->bulk)
        finish_answer(p, o);
    else if (o->open < 0)
        begin_answer(p, o, kind % ARRAY_LEN(answers));
}

static void origin_reset(struct fake_origin *o)
{
    if (o->fd >= 0)
        reset(o->fd);
    o->fd = -1;
    o->ended = true;
}

void fakes_origin_ends(struct fakes *p, unsigned how)
{
    struct fake_origin *o = present(p);
    if (o == NULL || o->fd < 0)
        return;
    if (how & 1) {
        origin_reset(o);
        return;
    }
    if (o->open >= 0 && o->until_end && !o->ended) {
        struct fake_answer *a = &p->answers[o->open];
        a->n -= a->left;
        a->left = 0;
        a->whole = true;
        o->open = -1;
    }
    shutdown(o->fd, SHUT_WR);
    o->ended = true;
}

/* Attempts by what arrived: "/q" NUMBER, up to a blank or "?". */
static void count_requests(struct fakes *p, struct fake_origin *o)
{
    const char *text = o->got.p;
    size_t i = o->scanned;
    for (; i + 12 < o->got.n; i++) {
        if (text[i] != '/' || text[i + 1] != 'q')
            continue;
        unsigned number = 0;
        size_t at = i + 2;
        while (at < o->got.n && text[at] >= '0' && text[at] <= '9')
            number = number * 10 + (unsigned)(text[at++] - '0');
        ASSERT(number < p->n_sent);
        o->last = (int)number;
        o->last_counts = o->n_requests++ == 0;
        if (o->last_counts)
            p->attempts[number]++;
    }
    o->scanned = i;
}

static void pour_answer(struct fakes *p, struct fake_origin *o)
{
    if (o->open < 0 || !o->bulk || o->ended)
        return;
    struct fake_answer *a = &p->answers[o->open];
    pour(o->fd, (char)(FIRST_LETTER + o->open), &a->left);
    if (a->left > 0)
        return;
    a->whole = true;
    o->bulk = false;
    o->open = -1;
}

static void accept_origins(struct fakes *p)
{
    int fd;
    while ((fd = accept4(p->doors->origin, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (p->n_origins == FAKES_ORIGINS || p->origin_gone) {
            reset(fd);
            continue;
        }
        p->origin = p->n_origins++;
        struct fake_origin *o = &p->origins[p->origin];
        *o = (struct fake_origin){.fd = fd, .open = -1, .last = -1};
        strbuf_init(&o->got, GOT_MAX);
    }
}

/* --- both --- */

void fakes_read(struct fakes *p)
{
    accept_origins(p);
    for (unsigned i = 0; i < p->n_origins; i++) {
        struct fake_origin *o = &p->origins[i];
        if (o->fd >= 0 && !p->origin_stalls && hear(o->fd, &o->got) < 0)
            o->ended = true;
        count_requests(p, o);
        pour_answer(p, o);
        if (p->origin_gone)
            origin_reset(o);
    }
    for (unsigned i = 0; i < p->n_clients; i++) {
        struct fake_client *c = &p->clients[i];
        if (c->bulk > 0)
            pour(c->fd, 'B', &c->bulk);
        if (p->clients_stall || c->fd < 0 || c->eof || c->cut)
            continue;
        int rc = hear(c->fd, &c->got);
        c->eof = rc == 0;
        c->cut = rc < 0;
    }
}

void fakes_raw(struct fakes *p, bool by_client, struct slice bytes)
{
    char text[16];
    for (size_t i = 0; i < bytes.n; i++)
        text[i] = bytes.p[i] == 'q' ? 'Q' : bytes.p[i];
    struct slice s = slice_of(text, bytes.n);
    if (by_client) {
        struct fake_client *c = &p->clients[p->client];
        c->unchecked = true;
        say(c->fd, s);
        return;
    }
    struct fake_origin *o = present(p);
    p->origin_raw = true;
    if (o != NULL && o->fd >= 0)
        answer_bytes(p, o, s);
}

void fakes_choose(struct fakes *p, unsigned who)
{
    if (p->n_clients > 0)
        p->client = (who & 3) % p->n_clients;
    if (p->n_origins > 0)
        p->origin = p->n_origins - 1 - (who >> 2) % p->n_origins;
}

void fakes_fini(struct fakes *p)
{
    fakes_read(p);
    for (unsigned i = 0; i < p->n_clients; i++) {
        if (p->clients[i].fd >= 0)
            reset(p->clients[i].fd);
        strbuf_fini(&p->clients[i].got);
    }
    for (unsigned i = 0; i < p->n_origins; i++) {
        origin_reset(&p->origins[i]);
        strbuf_fini(&p->origins[i].got);
    }
}

/* --- judgement --- */

struct fakes_totals fakes_totals;

static void judge_body(const struct fakes *p, struct slice body, bool complete)
{
    if (body.n == 0)
        return;
    if ((unsigned char)body.p[0] < FIRST_LETTER) { /* the proxy's own words */
        fakes_totals.own++;
        return;
    }
    unsigned a = (unsigned char)body.p[0] - FIRST_LETTER;
    ASSERT(a < p->n_answers);
    for (size_t i = 1; i < body.n; i++)
        ASSERT(body.p[i] == body.p[0]);
    ASSERT(body.n <= p->answers[a].n);
    if (complete)
        ASSERT(p->answers[a].whole && body.n == p->answers[a].n);
    fakes_totals.delivered += complete;
    fakes_totals.cut += !complete;
}

/* Reads one answer off *in; false: that was the last that can be read. */
static bool judge_answer(const struct fakes *p, const struct fake_client *c, enum http_method m,
                         struct slice *in, bool *interim)
{
    struct h1_head head = {0};
    struct http_resp resp;
    struct arena arena;
    struct h1_body body;
    struct strbuf data;
    arena_init(&arena);
    strbuf_init(&data, GOT_MAX);
    enum parse got = h1_parse_response(&head, in->p, in->n, &h1_response_limits, m, &arena, &resp);
    ASSERT(got != PARSE_BAD);
    bool more = got == PARSE_OK && resp.status != 101;
    if (more) {
        size_t at = head.consumed, used;
        struct slice piece;
        h1_body_init(&body, resp.framing, resp.content_length);
        do {
            got = h1_body_read(&body, in->p + at, in->n - at, &arena, &used, &piece);
            ASSERT(got != PARSE_BAD);
            strbuf_put(&data, piece);
            at += used;
        } while (got == PARSE_MORE && used > 0);
        bool complete = body.done || (c->eof && !p->faulted && h1_body_eof(&body));
        judge_body(p, strbuf_slice(&data), complete);
        h1_body_fini(&body);
        *in = slice_of(in->p + at, in->n - at);
        *interim = resp.status < 200;
        more = complete && !resp.close;
    }
    strbuf_fini(&data);
    arena_fini(&arena);
    return more;
}

static void judge_upload(const struct fakes *p, struct slice target, struct slice body,
                         bool complete)
{
    size_t q = slice_index(target, 'q');
    unsigned number = 0;
    for (size_t i = q + 1; i < target.n && target.p[i] >= '0' && target.p[i] <= '9'; i++)
        number = number * 10 + (unsigned)(target.p[i] - '0');
    ASSERT(number < p->n_sent);
    const char *sent = requests[p->kinds[number]].body;
    bool bulk = sent[0] == 'B';
    size_t n = bulk ? BULK : strlen(sent);
    ASSERT(complete ? body.n == n : body.n <= n);
    for (size_t i = 0; i < body.n; i++)
        ASSERT(body.p[i] == sent[bulk ? 0 : i]);
}

/* What the origin got on one connection: the requests as they were sent, whatever was repeated. */
static void judge_origin(const struct fakes *p, const struct fake_origin *o)
{
    struct slice in = strbuf_slice(&o->got);
    for (bool more = true; more && in.n > 0;) {
        struct h1_head head = {0};
        struct http_req req;
        struct arena arena;
        struct h1_body body;
        struct strbuf data;
        arena_init(&arena);
        strbuf_init(&data, GOT_MAX);
        enum parse got = h1_parse_request(&head, in.p, in.n, &h1_request_limits, &arena, &req);
        ASSERT(got != PARSE_BAD);
        more = got == PARSE_OK && !header_has(&req.fields, SLICE("Upgrade"));
        if (more) {
            size_t at = head.consumed, used;
            struct slice piece;
            h1_body_init(&body, req.framing, req.content_length);
            do {
                got = h1_body_read(&body, in.p + at, in.n - at, &arena, &used, &piece);
                ASSERT(got != PARSE_BAD);
                strbuf_put(&data, piece);
                at += used;
            } while (got == PARSE_MORE && used > 0);
            more = body.done;
            judge_upload(p, req.target, strbuf_slice(&data), more);
            h1_body_fini(&body);
            in = slice_of(in.p + at, in.n - at);
        }
        strbuf_fini(&data);
        arena_fini(&arena);
    }
}

void fakes_judge(const struct fakes *p)
{
    bool client_raw = false;
    for (unsigned i = 0; i < p->n_clients; i++)
        client_raw = client_raw || p->clients[i].unchecked;
    for (unsigned i = 0; i < p->n_origins && !client_raw; i++)
        judge_origin(p, &p->origins[i]);
    fakes_totals.requests += p->n_sent;
    for (unsigned i = 0; i < p->n_sent; i++) {
        /* Told that a pooled connection broke before the answer, the proxy repeats for nothing. */
        ASSERT(p->attempts[i] <= p->allowed[i] * (p->faulted ? 2 : 1));
        fakes_totals.attempts += p->attempts[i];
    }
    for (unsigned i = 0; i < p->n_clients && !p->origin_raw; i++) {
        const struct fake_client *c = &p->clients[i];
        struct slice in = strbuf_slice(&c->got);
        if (c->unchecked)
            continue;
        for (unsigned k = 0; k < c->n_requests && in.n > 0; k++) {
            bool interim = false, more;
            do
                more = judge_answer(p, c, c->methods[k], &in, &interim);
            while (more && interim && in.n > 0);
            if (!more)
                break;
        }
    }
}
