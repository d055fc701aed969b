/* Through a parent proxy: CONNECT and its answers, TLS inside, TLS around, TLS in TLS. */
#include "io/net/dial.h"
#include "net_test.h"
#include <event2/event.h>
#include <sys/wait.h>

struct fixture {
    struct loop *l;
    struct dialer dialer;
    struct addr_range allow;
    struct parent parent;
    int listening;
    struct event *ev;
    /* the parent */
    struct owner side;
    const char *answer; /* to CONNECT */
    SSL_CTX *outer_ctx, *inner_ctx;
    bool secure, opened;
    int accepted;
    /* the outcome */
    int told;
    struct conn *conn;
    enum net_fail failure;
    char detail[512];
    char got[256];
    struct loop_timer drip;
    size_t drops;
};

static void on_result(struct conn *c, enum conn_event ev, void *arg)
{
    struct fixture *f = arg;
    if (ev != CONN_READABLE)
        return;
    struct slice in = conn_in(c);
    size_t n = strlen(f->got);
    memcpy(f->got + n, in.p, in.n);
    f->got[n + in.n] = '\0';
    conn_consume(c, in.n);
    loop_stop(f->l);
}

static void on_dialled(void *arg, struct conn *conn, enum net_fail failure, const char *detail)
{
    struct fixture *f = arg;
    f->told++;
    f->conn = conn;
    f->failure = failure;
    snprintf(f->detail, sizeof f->detail, "%s", detail);
    if (conn) {
        conn_set_owner(conn, on_result, f);
        conn_poke(conn);
    }
    loop_stop(f->l);
}

static SSL *acceptor(SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_accept_state(ssl);
    return ssl;
}

/* The parent answers a whole head, and is the origin as well from then on. */
static void parent_acts(struct owner *o, enum conn_event ev)
{
    struct fixture *f = o->data;
    if (ev != CONN_READABLE || f->opened || f->answer == NULL || strstr(o->got, "\r\n\r\n") == NULL)
        return;
    f->opened = true;
    conn_write(o->c, slice_str(f->answer));
    conn_flush(o->c);
    if (f->inner_ctx)
        conn_start_tls(o->c, acceptor(f->inner_ctx));
}

static void on_acceptable(int fd, short what, void *arg)
{
    (void)what;
    struct fixture *f = arg;
    int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    ck_assert_int_ge(got, 0);
    f->accepted++;
    f->side.also = parent_acts;
    f->side.data = f;
    owner_start(&f->side, f->l, got, NULL);
    if (f->secure)
        conn_start_tls(f->side.c, acceptor(f->outer_ctx));
}

static struct tlsclient *trusting(X509 *cert)
{
    char path[] = "/tmp/parent-test-XXXXXX";
    struct err err;
    FILE *file = fdopen(mkstemp(path), "w");
    ck_assert_int_eq(PEM_write_X509(file, cert), 1);
    fclose(file);
    struct tlsclient *t = tlsclient_new(&(struct tlsclient_spec){.ca_file = path}, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    unlink(path);
    return t;
}

static void start(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->l = make_loop();
    f->parent = (struct parent){.host = "127.0.0.1", .is_ip = true};
    f->listening = listen_on_loopback(&f->parent.port);
    f->ev = loop_watch(f->l, f->listening, EV_READ | EV_PERSIST, on_acceptable, f);
    event_add(f->ev, NULL);
    f->dialer = (struct dialer){.loop = f->l,
                                .connect_timeout_ns = 300 * NS_PER_MS,
                                .tls_timeout_ns = 5 * NS_PER_S,
                                .limits = LIMITS};
    f->answer = "HTTP/1.1 200 OK\r\n\r\n";
}

static void hang_up(struct fixture *f)
{
    if (f->conn)
        conn_close(f->conn, false);
    f->conn = NULL;
    if (f->side.got)
        owner_end(&f->side);
    f->side = (struct owner){0};
    f->opened = false;
    f->got[0] = '\0';
    settle(f->l);
}

static void finish(struct fixture *f)
{
    hang_up(f);
    event_free(f->ev);
    close(f->listening);
    loop_free(f->l);
}

static void dial(struct fixture *f, struct dial_target t)
{
    t.parent = &f->parent;
    f->told = 0;
    ck_assert_ptr_nonnull(dial_start(&f->dialer, &t, on_dialled, f));
    ck_assert_int_eq(f->told, 0);
    run(f->l);
    ck_assert_int_eq(f->told, 1);
}

static void expect_failure(struct fixture *f, enum net_fail kind, const char *text)
{
    ck_assert_msg(f->failure == kind, "%s: %s", net_fail_name(f->failure), f->detail);
    ck_assert_msg(strstr(f->detail, text) != NULL, "\"%s\" not in \"%s\"", text, f->detail);
}

static const struct dial_target origin = {.host = "origin.test", .port = 443};

START_TEST(connect_request_as_sent)
{
    struct fixture f;
    start(&f);
    f.answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 Connection established\r\n"
               "Proxy-Agent: x\r\n\r\nfrom the origin";
    dial(&f, origin);
    ck_assert_msg(f.failure == NET_OK, "%s", f.detail);
    ck_assert_str_eq(f.side.got,
                     "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n");
    while (strlen(f.got) < 15)
        run(f.l);
    ck_assert_str_eq(f.got, "from the origin"); /* what followed the answer belongs to the origin */
    hang_up(&f);
    f.parent.authorization = "Basic dTpw";
    struct dial_target via = {.host = "origin.test", .port = 443, .via = "1.1 a, 1.1 b"};
    dial(&f, via);
    ck_assert_msg(strstr(f.side.got, "\r\nVia: 1.1 a, 1.1 b\r\n") != NULL, "%s", f.side.got);
    hang_up(&f);
    struct dial_target six = {.host = "2001:db8::1", .is_ip = true, .port = 8443};
    dial(&f, six);
    ck_assert_msg(f.failure == NET_OK, "%s", f.detail);
    ck_assert_str_eq(f.side.got,
                     "CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\n"
                     "Proxy-Authorization: Basic dTpw\r\n\r\n");
    finish(&f);
}
END_TEST

START_TEST(answers_that_are_no)
{
    static const struct {
        const char *answer;
        enum net_fail kind;
        const char *detail;
    } table[] = {
        {"HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n", NET_PARENT_REFUSED,
         "answered 407 to CONNECT"},
        {"HTTP/1.1 403 no\r\n\r\n", NET_PARENT_REFUSED, "answered 403"},
        {"HTTP/1.1 302 no\r\nLocation: x\r\n\r\n", NET_PARENT_REFUSED, "answered 302"},
        {"HTTP/1.1 101 no\r\n\r\n", NET_PARENT_REFUSED, "answered 101"},
        {"HTTP/1.1 508 no\r\n\r\n", NET_PARENT_REFUSED, "answered 508"},
        {"HTTP/1.1 502 no\r\n\r\n", NET_PARENT, "answered 502"},
        {"HTTP/1.1 503 no\r\n\r\n", NET_PARENT, "answered 503"},
        {"HTTP/1.1 429 no\r\n\r\n", NET_PARENT, "answered 429"},
        {"HTTP/1.1 200 OK\n\n\r\n\r\n", NET_PARENT, "no HTTP/1.1 answer"},
        {"SSH-2.0-x\r\n\r\n", NET_PARENT, "no HTTP/1.1 answer"},
        {"HTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\n"
         "HTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\n"
         "HTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 a\r\n\r\n",
         NET_PARENT, "too many interim"},
        {NULL, NET_PARENT, "no answer to CONNECT in time"},
    };
    struct fixture f;
    start(&f);
    f.parent.authorization = "Basic c2VjcmV0";
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        f.answer = table[i].answer;
        dial(&f, origin);
        expect_failure(&f, table[i].kind, table[i].detail);
        expect_failure(&f, table[i].kind, "parent proxy 127.0.0.1:");
        ck_assert_ptr_null(strstr(f.detail, "c2VjcmV0"));
        hang_up(&f);
    }
    finish(&f);
}
END_TEST

static void on_drop(void *arg)
{
    struct fixture *f = arg;
    static const char answer[] = "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nrest";
    size_t at = f->drops++;
    if (f->side.c == NULL || answer[at] == '\0')
        return;
    conn_write(f->side.c, slice_of(answer + at, 1));
    conn_flush(f->side.c);
    loop_timer_arm(&f->drip, 0);
}

START_TEST(an_answer_in_drops)
{
    struct fixture f;
    start(&f);
    f.answer = NULL;
    f.dialer.connect_timeout_ns = 5 * NS_PER_S;
    loop_timer_init(&f.drip, f.l, on_drop, &f);
    struct dial_target t = origin;
    t.parent = &f.parent;
    ck_assert_ptr_nonnull(dial_start(&f.dialer, &t, on_dialled, &f));
    settle(f.l);
    ck_assert_int_eq(f.told, 0);
    loop_timer_arm(&f.drip, 0);
    run(f.l);
    ck_assert_msg(f.told == 1 && f.failure == NET_OK, "%s", f.detail);
    while (strlen(f.got) < 4)
        run(f.l);
    ck_assert_str_eq(f.got, "rest");
    loop_timer_fini(&f.drip);
    finish(&f);
}
END_TEST

START_TEST(parent_is_away)
{
    struct fixture f;
    start(&f);
    uint16_t there = f.parent.port;
    close(listen_on_loopback(&f.parent.port));
    dial(&f, origin);
    expect_failure(&f, NET_PARENT, "parent proxy 127.0.0.1:");
    f.parent.host = "nonsense";
    dial(&f, origin);
    expect_failure(&f, NET_PARENT, "not an address");
    /* It ends where the answer should come. */
    f.parent.host = "127.0.0.1";
    f.parent.port = there;
    f.answer = NULL;
    f.side.close = "R";
    f.told = 0;
    struct dial_target t = origin;
    t.parent = &f.parent;
    ck_assert_ptr_nonnull(dial_start(&f.dialer, &t, on_dialled, &f));
    run(f.l); /* the close stops the loop, and so does the dial */
    if (!f.told)
        run(f.l);
    expect_failure(&f, NET_PARENT, "closed without an answer to CONNECT");
    finish(&f);
}
END_TEST

/* I3, I5: the parent is where the operator said, unless that is here; literal targets obey the
 * rules, and a refusal does not even reach the parent. */
START_TEST(address_rules)
{
    static const char *const forbidden[] = {"127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254",
                                            "::ffff:169.254.169.254"};
    struct fixture f;
    start(&f);
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        dial(&f, (struct dial_target){.host = forbidden[i], .is_ip = true, .port = 443});
        ck_assert_int_eq(f.failure, NET_DENIED);
    }
    ck_assert_int_eq(f.accepted, 0);
    struct dial_target near = {.host = "10.0.0.1", .is_ip = true, .port = 443};
    dial(&f, near);
    ck_assert_int_eq(f.failure, NET_DENIED);
    ck_assert_int_eq(f.accepted, 0);
    near.private_ok = true; /* as the listener allows */
    dial(&f, near);
    ck_assert_int_eq(f.failure, NET_OK);
    hang_up(&f);
    f.accepted = 0;
    struct sockaddr_storage own = {0};
    *(struct sockaddr_in *)&own = loopback(f.parent.port);
    f.dialer.policy.listeners = &own;
    f.dialer.policy.n_listeners = 1;
    dial(&f, origin);
    expect_failure(&f, NET_DENIED, "own listener");
    ck_assert_int_eq(f.accepted, 0);
    finish(&f);
}
END_TEST

/* Bit 0: TLS with the parent. Bit 1: TLS with the origin. */
START_TEST(tls_around_and_inside)
{
    struct fixture f;
    X509 *outer, *inner;
    start(&f);
    f.outer_ctx = make_server_ctx(&outer);
    SSL_CTX *ctx = make_server_ctx(&inner);
    struct tlsclient *to_parent = trusting(outer), *to_origin = trusting(inner);
    struct dial_target t = {.host = "localhost", .port = 443};
    f.parent.host = "127.0.0.1";
    if (_i & 1) {
        f.secure = true;
        f.parent.tls = to_parent;
        f.parent.host = "localhost";
        f.parent.is_ip = false;
        struct err err;
        f.dialer.dns = dns_new(f.l, NS_PER_S, &err);
        f.dialer.connect_timeout_ns = 5 * NS_PER_S;
    }
    if (_i & 2) {
        f.inner_ctx = ctx;
        t.tls = to_origin;
    }
    dial(&f, t);
    ck_assert_msg(f.failure == NET_OK, "%s", f.detail);
    ck_assert_int_eq(conn_is_tls(f.conn), _i != 0);
    /* Much in one direction, a little in the other. */
    enum { MUCH = 1 << 20 };
    char *bulk = xcalloc(1, MUCH);
    for (size_t i = 0; i < MUCH; i++)
        bulk[i] = pattern_at(i);
    size_t head = f.side.n_got;
    f.side.stop_at = head + MUCH;
    for (size_t at = 0; at < MUCH; at += 65536) {
        conn_write(f.conn, slice_of(bulk + at, 65536));
        conn_flush(f.conn);
        run_for(f.l, NS_PER_MS);
    }
    if (f.side.n_got < head + MUCH)
        run(f.l);
    ck_assert_uint_eq(pattern_length(f.side.got + head, MUCH), MUCH);
    free(bulk);
    conn_write(f.side.c, SLICE("thanks"));
    conn_flush(f.side.c);
    while (strlen(f.got) < 6)
        run(f.l);
    ck_assert_str_eq(f.got, "thanks");
    ck_assert(conn_quiet(f.conn));
    /* An orderly end is seen as one. */
    conn_close(f.conn, false);
    f.conn = NULL;
    f.side.stop = "EB";
    run(f.l);
    ck_assert_msg(strchr(f.side.log, 'E') != NULL, "%s", f.side.log);
    hang_up(&f);
    tlsclient_free(to_parent);
    tlsclient_free(to_origin);
    SSL_CTX_free(f.outer_ctx);
    SSL_CTX_free(ctx);
    X509_free(outer);
    X509_free(inner);
    if (f.dialer.dns)
        dns_free(f.dialer.dns);
    finish(&f);
}
END_TEST

static void on_end(struct conn *c, enum conn_event ev, void *arg)
{
    struct fixture *f = arg;
    if (ev == CONN_READABLE)
        conn_consume(c, conn_in(c).n);
    if (ev == CONN_EOF || ev == CONN_BROKEN) {
        snprintf(f->got, sizeof f->got, "%s",
                 ev == CONN_EOF ? "end" : net_fail_name(conn_failure(c)));
        loop_stop(f->l);
    }
}

/* A parent and the origin behind it, blocking and in OpenSSL's own terms; never returns. */
static void play_both(int listening, SSL_CTX *outer_ctx, SSL_CTX *inner_ctx, int how)
{
    char head[1024];
    int fd = accept(listening, NULL, NULL);
    SSL *outer = acceptor(outer_ctx), *inner = acceptor(inner_ctx);
    SSL_set_fd(outer, fd);
    if (SSL_accept(outer) != 1 || SSL_read(outer, head, sizeof head) <= 0 ||
        SSL_write(outer, "HTTP/1.1 200 OK\r\n\r\n", 19) != 19)
        _exit(1);
    BIO *between = BIO_new(BIO_f_ssl());
    BIO_set_ssl(between, outer, BIO_NOCLOSE);
    SSL_set_bio(inner, between, between);
    if (SSL_accept(inner) != 1 || SSL_write(inner, "x", 1) != 1)
        _exit(1);
    SSL_read(inner, head, 1); /* the test is ready */
    if (how == 0)
        SSL_shutdown(inner);
    if (how <= 1)
        SSL_shutdown(outer);
    if (how == 3)
        reset(fd);
    _exit(0);
}

/* D5: with two layers only the inner close_notify ends the stream in order. */
START_TEST(ends_of_tls_in_tls)
{
    static const char *const want[] = {"end", "truncated", "truncated", "reset"};
    struct fixture f;
    X509 *outer, *inner;
    start(&f);
    SSL_CTX *outer_ctx = make_server_ctx(&outer), *inner_ctx = make_server_ctx(&inner);
    struct tlsclient *to_parent = trusting(outer), *to_origin = trusting(inner);
    struct dial_target t = {.host = "localhost", .port = 443, .tls = to_origin};
    struct err err;
    f.parent.tls = to_parent;
    f.parent.host = "localhost";
    f.parent.is_ip = false;
    f.dialer.dns = dns_new(f.l, NS_PER_S, &err);
    f.dialer.connect_timeout_ns = 5 * NS_PER_S;
    event_del(f.ev);
    pid_t child = fork();
    if (child == 0)
        play_both(f.listening, outer_ctx, inner_ctx, _i);
    dial(&f, t);
    ck_assert_msg(f.failure == NET_OK, "%s", f.detail);
    conn_set_owner(f.conn, on_end, &f);
    conn_write(f.conn, SLICE("x"));
    conn_flush(f.conn);
    run(f.l);
    ck_assert_str_eq(f.got, want[_i]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    hang_up(&f);
    tlsclient_free(to_parent);
    tlsclient_free(to_origin);
    SSL_CTX_free(outer_ctx);
    SSL_CTX_free(inner_ctx);
    X509_free(outer);
    X509_free(inner);
    dns_free(f.dialer.dns);
    finish(&f);
}
END_TEST

/* The parent's certificate is verified like any other, and a bad one is final. */
START_TEST(parent_is_verified)
{
    struct fixture f;
    X509 *cert, *other;
    start(&f);
    f.outer_ctx = make_server_ctx(&cert);
    SSL_CTX_free(make_server_ctx(&other));
    struct tlsclient *t = trusting(other);
    f.secure = true;
    f.parent.tls = t;
    dial(&f, origin);
    expect_failure(&f, NET_CERTIFICATE, "parent proxy 127.0.0.1:");
    ck_assert_uint_eq(f.side.n_got, 0); /* the credentials stay here */
    hang_up(&f);
    tlsclient_free(t);
    SSL_CTX_free(f.outer_ctx);
    X509_free(cert);
    X509_free(other);
    finish(&f);
}
END_TEST

START_TEST(absolute_form_needs_no_connect)
{
    struct fixture f;
    start(&f);
    dial(&f, (struct dial_target){.host = "origin.test", .port = 80, .absolute = true});
    ck_assert_int_eq(f.failure, NET_OK);
    settle(f.l);
    ck_assert_int_eq(f.accepted, 1);
    ck_assert_uint_eq(f.side.n_got, 0);
    finish(&f);
}
END_TEST

static TCase *tcase_parent(void)
{
    TCase *tc = tcase_create("parent");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, connect_request_as_sent);
    tcase_add_test(tc, answers_that_are_no);
    tcase_add_test(tc, parent_is_away);
    tcase_add_test(tc, address_rules);
    tcase_add_loop_test(tc, tls_around_and_inside, 0, 4);
    tcase_add_loop_test(tc, ends_of_tls_in_tls, 0, 4);
    tcase_add_test(tc, an_answer_in_drops);
    tcase_add_test(tc, parent_is_verified);
    tcase_add_test(tc, absolute_form_needs_no_connect);
    return tc;
}

UNIT_MAIN("parent", tcase_parent)
