/* Dialling: every way to a connection, and every kind of failure. */
#include "dns_stub.h"
#include "io/net/dial.h"
#include <sys/resource.h>

struct fixture {
    struct loop *l;
    struct dns_stub stub;
    struct dialer dialer;
    struct tlsclient *tls;
    struct addr_range allow[2];
    int listening;
    uint16_t port;
    /* the outcome */
    int n;
    struct conn *conn;
    enum net_fail failure;
    char detail[256];
};

static void on_event(struct conn *c, enum conn_event ev, void *arg)
{
    (void)c;
    (void)ev;
    (void)arg;
}

static void on_dialled(void *arg, struct conn *conn, enum net_fail failure, const char *detail)
{
    struct fixture *f = arg;
    f->n++;
    f->conn = conn;
    f->failure = failure;
    snprintf(f->detail, sizeof f->detail, "%s", detail);
    ck_assert((conn != NULL) == (failure == NET_OK));
    if (conn)
        conn_set_owner(conn, on_event, f);
    loop_stop(f->l);
}

static void start(struct fixture *f)
{
    struct err err;
    memset(f, 0, sizeof *f);
    f->l = make_loop();
    dns_stub_start(&f->stub, f->l);
    f->listening = listen_on_loopback(&f->port);
    /* 127.0.0.1 only */
    memcpy(f->allow[0].addr, (unsigned char[16]){[10] = 0xff, 0xff, 127, 0, 0, 1}, 16);
    f->allow[0].prefix = 128;
    f->dialer = (struct dialer){.loop = f->l,
                                .dns = dns_new(f->l, 5 * NS_PER_S, &err),
                                .policy = {.allow = f->allow, .n_allow = 1},
                                .connect_timeout_ns = 300 * NS_PER_MS,
                                .tls_timeout_ns = 300 * NS_PER_MS,
                                .limits = LIMITS};
    ck_assert_ptr_nonnull(f->dialer.dns);
    ck_assert(dns_use_servers(f->dialer.dns, f->stub.server));
}

static void finish(struct fixture *f)
{
    if (f->conn)
        conn_close(f->conn, false);
    dns_free(f->dialer.dns);
    tlsclient_free(f->tls);
    close(f->listening);
    dns_stub_end(&f->stub);
    loop_free(f->l);
}

static void dial(struct fixture *f, struct dial_target t)
{
    f->n = 0;
    f->conn = NULL;
    ck_assert_ptr_nonnull(dial_start(&f->dialer, &t, on_dialled, f));
    ck_assert_int_eq(f->n, 0);
    run(f->l);
    ck_assert_int_eq(f->n, 1);
}

static void expect_failure(struct fixture *f, enum net_fail kind, const char *text)
{
    ck_assert_int_eq(f->failure, kind);
    ck_assert_msg(strstr(f->detail, text) != NULL, "\"%s\" not in \"%s\"", text, f->detail);
}

START_TEST(test_by_name_literal_and_resolve)
{
    struct fixture f;
    start(&f);
    dial(&f, (struct dial_target){.host = "good.test", .port = f.port});
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert(!conn_is_tls(f.conn));
    char want[32];
    snprintf(want, sizeof want, "127.0.0.1:%u", f.port);
    ck_assert_str_eq(conn_peer(f.conn), want);
    conn_close(f.conn, false);
    dial(&f, (struct dial_target){.host = "127.0.0.1", .is_ip = true, .port = f.port});
    ck_assert_int_eq(f.failure, NET_OK);
    conn_close(f.conn, false);
    /* `resolve` is allowed whatever the rules say, and its port counts. */
    f.dialer.policy.n_allow = 0;
    struct dial_target t = {.host = "nowhere.test", .port = 1};
    *(struct sockaddr_in *)&t.fixed = loopback(f.port);
    dial(&f, t);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_str_eq(conn_peer(f.conn), want);
    finish(&f);
}
END_TEST

START_TEST(test_next_address_is_tried)
{
    struct fixture f;
    start(&f);
    /* both.test is ::1 and 127.0.0.1; nobody listens on ::1. */
    memcpy(f.allow[1].addr, (unsigned char[16]){[15] = 1}, 16);
    f.allow[1].prefix = 128;
    f.dialer.policy.n_allow = 2;
    dial(&f, (struct dial_target){.host = "both.test", .port = f.port});
    ck_assert_int_eq(f.failure, NET_OK);
    conn_close(f.conn, false);
    f.conn = NULL;
    /* mixed.test: one address is forbidden, the other works. */
    dial(&f, (struct dial_target){.host = "mixed.test", .port = f.port});
    ck_assert_int_eq(f.failure, NET_OK);
    finish(&f);
}
END_TEST

START_TEST(test_refused)
{
    struct fixture f;
    uint16_t unused;
    start(&f);
    close(listen_on_loopback(&unused));
    dial(&f, (struct dial_target){.host = "good.test", .port = unused});
    expect_failure(&f, NET_REFUSED, "127.0.0.1:");
    /* A denial beside a real failure does not hide it. */
    dial(&f, (struct dial_target){.host = "mixed.test", .port = unused});
    expect_failure(&f, NET_REFUSED, "127.0.0.1:");
    finish(&f);
}
END_TEST

START_TEST(test_denied)
{
    struct fixture f;
    start(&f);
    f.dialer.policy.n_allow = 0;
    dial(&f, (struct dial_target){.host = "good.test", .port = f.port, .private_ok = true});
    expect_failure(&f, NET_DENIED, "127.0.0.1:");
    expect_failure(&f, NET_DENIED, "loopback");
    dial(&f, (struct dial_target){.host = "240.0.0.1", .is_ip = true, .port = 80});
    expect_failure(&f, NET_DENIED, "240.0.0.1:80: reserved");
    dial(&f, (struct dial_target){.host = "169.254.169.254", .is_ip = true, .port = 80});
    expect_failure(&f, NET_DENIED, "metadata");
    finish(&f);
}
END_TEST

START_TEST(test_own_listener_even_by_resolve)
{
    struct fixture f;
    start(&f);
    struct sockaddr_storage own = {0};
    *(struct sockaddr_in *)&own = loopback(f.port);
    f.dialer.policy.listeners = &own;
    f.dialer.policy.n_listeners = 1;
    dial(&f, (struct dial_target){.host = "good.test", .port = f.port, .fixed = own});
    expect_failure(&f, NET_DENIED, "own listener");
    finish(&f);
}
END_TEST

/* A listener whose queue is full drops SYNs: a black hole on loopback. */
START_TEST(test_connect_timeout)
{
    struct fixture f;
    start(&f);
    ck_assert_int_eq(listen(f.listening, 0), 0);
    struct sockaddr_in sa = loopback(f.port);
    int fill[4];
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&sa, sizeof sa);
    }
    settle(f.l);
    loop_tick(f.l);
    int64_t began = loop_now_ns(f.l);
    dial(&f, (struct dial_target){.host = "good.test", .port = f.port});
    expect_failure(&f, NET_CONNECT_TIMEOUT, "127.0.0.1:");
    ck_assert_int_ge(loop_now_ns(f.l) - began, 300 * NS_PER_MS);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    finish(&f);
}
END_TEST

START_TEST(test_no_such_name)
{
    struct fixture f;
    start(&f);
    dial(&f, (struct dial_target){.host = "missing.test", .port = f.port});
    expect_failure(&f, NET_DNS, "missing.test: no such name");
    dial(&f, (struct dial_target){.host = "nonsense", .is_ip = true, .port = f.port});
    expect_failure(&f, NET_DNS, "not an address");
    finish(&f);
}
END_TEST

START_TEST(test_out_of_descriptors)
{
    struct fixture f;
    start(&f);
    struct rlimit old;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0);
    close(next);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    dial(&f, (struct dial_target){.host = "127.0.0.1", .is_ip = true, .port = f.port});
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    expect_failure(&f, NET_STARVED, strerror(EMFILE));
    finish(&f);
}
END_TEST

static void trust(struct fixture *f, X509 *cert)
{
    char path[] = "/tmp/dial-test-XXXXXX";
    struct err err;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    ck_assert_int_eq(PEM_write_X509(file, cert), 1);
    fclose(file);
    f->tls = tlsclient_new(&(struct tlsclient_spec){.ca_file = path}, &err);
    ck_assert_msg(f->tls != NULL, "%s", err.text);
    unlink(path);
}

static void on_acceptable(int fd, short what, void *arg)
{
    (void)what;
    struct owner *o = arg;
    int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    ck_assert_int_ge(got, 0);
    o->c = conn_new(o->loop, got, &LIMITS, on_owner, o);
    conn_start_tls(o->c, o->data);
}

START_TEST(test_tls)
{
    struct fixture f;
    X509 *cert;
    start(&f);
    SSL_CTX *ctx = make_server_ctx(&cert);
    trust(&f, cert);
    struct owner server = {.loop = f.l, .data = SSL_new(ctx)};
    SSL_set_accept_state(server.data);
    struct event *ev = loop_watch(f.l, f.listening, EV_READ, on_acceptable, &server);
    event_add(ev, NULL);
    struct dial_target t = {
        .host = _i == 0 ? "localhost" : "good.test", .port = f.port, .tls = f.tls};
    *(struct sockaddr_in *)&t.fixed = loopback(f.port);
    dial(&f, t);
    if (_i == 0) {
        ck_assert_msg(f.failure == NET_OK, "%s", f.detail);
        ck_assert(conn_is_tls(f.conn));
        run_for(f.l, 400 * NS_PER_MS); /* no timer is left behind */
        ck_assert_int_eq(f.n, 1);
    } else {
        expect_failure(&f, NET_CERTIFICATE, "127.0.0.1:"); /* another name */
        settle(f.l);
    }
    event_free(ev);
    owner_end(&server);
    X509_free(cert);
    SSL_CTX_free(ctx);
    finish(&f);
}
END_TEST

START_TEST(test_tls_failures)
{
    struct fixture f;
    X509 *cert;
    start(&f);
    SSL_CTX_free(make_server_ctx(&cert));
    trust(&f, cert);
    X509_free(cert);
    struct dial_target t = {.host = "good.test", .port = f.port, .tls = f.tls};
    loop_tick(f.l);
    int64_t began = loop_now_ns(f.l);
    dial(&f, t); /* accepted by the kernel, and nobody answers */
    expect_failure(&f, NET_TLS_TIMEOUT, "127.0.0.1:");
    ck_assert_int_ge(loop_now_ns(f.l) - began, 300 * NS_PER_MS);
    close(accept(f.listening, NULL, NULL));
    f.n = 0;
    ck_assert_ptr_nonnull(dial_start(&f.dialer, &t, on_dialled, &f));
    settle(f.l);
    reset(accept(f.listening, NULL, NULL));
    run(f.l);
    expect_failure(&f, NET_TLS, "handshake: ");
    finish(&f);
}
END_TEST

START_TEST(test_cancel_at_every_stage)
{
    struct fixture f;
    X509 *cert;
    start(&f);
    SSL_CTX_free(make_server_ctx(&cert));
    trust(&f, cert);
    X509_free(cert);
    struct dial_target silent = {.host = "silent.test", .port = f.port};
    struct dial_target plain = {.host = "good.test", .port = f.port};
    struct dial_target tls = {.host = "good.test", .port = f.port, .tls = f.tls};
    dial_cancel(dial_start(&f.dialer, &plain, on_dialled, &f)); /* before it began */
    struct dial *d = dial_start(&f.dialer, &silent, on_dialled, &f);
    settle(f.l);
    dial_cancel(d); /* during the lookup */
    d = dial_start(&f.dialer, &tls, on_dialled, &f);
    settle(f.l);
    dial_cancel(d); /* during the handshake */
    ck_assert_int_eq(listen(f.listening, 0), 0);
    struct sockaddr_in sa = loopback(f.port);
    int fill[4];
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&sa, sizeof sa);
    }
    d = dial_start(&f.dialer, &plain, on_dialled, &f);
    settle(f.l);
    dial_cancel(d); /* during the connect */
    run_for(f.l, 400 * NS_PER_MS);
    ck_assert_int_eq(f.n, 0);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    finish(&f);
}
END_TEST

static TCase *tcase_dial(void)
{
    TCase *tc = tcase_create("dial");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_by_name_literal_and_resolve);
    tcase_add_test(tc, test_next_address_is_tried);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_denied);
    tcase_add_test(tc, test_own_listener_even_by_resolve);
    tcase_add_test(tc, test_connect_timeout);
    tcase_add_test(tc, test_no_such_name);
    tcase_add_test(tc, test_out_of_descriptors);
    tcase_add_loop_test(tc, test_tls, 0, 2);
    tcase_add_test(tc, test_tls_failures);
    tcase_add_test(tc, test_cancel_at_every_stage);
    return tc;
}

UNIT_MAIN("dial", tcase_dial)
