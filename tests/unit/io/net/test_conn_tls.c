/* TLS connections: handshake, bytes that came early, ends told apart, bytes that wait inside
 * OpenSSL. */
#include "net_test.h"
#include <openssl/err.h>
#include <pthread.h>

/* a: client, b: server, both conns on one loop. */
struct tls_pair {
    struct loop *l;
    struct owner a, b;
    SSL *client; /* the connections' own */
    SSL *server;
};

static void pair_start(struct tls_pair *p, const struct conn_limits *lim, int max_version)
{
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    p->l = make_loop();
    owner_start(&p->a, p->l, fd[0], lim);
    owner_start(&p->b, p->l, fd[1], lim);
    p->client = client_ssl(max_version, false);
    p->server = server_ssl();
    conn_start_tls(p->a.c, p->client);
    conn_start_tls(p->b.c, p->server);
}

static void until_up(struct tls_pair *p)
{
    p->a.stop = p->b.stop = "UB";
    while (!strchr(p->a.log, 'U') || !strchr(p->b.log, 'U')) {
        run(p->l);
        ck_assert(!strchr(p->a.log, 'B') && !strchr(p->b.log, 'B'));
    }
    p->a.stop = p->b.stop = NULL;
}

static void pair_end(struct tls_pair *p)
{
    owner_end(&p->a);
    owner_end(&p->b);
    loop_free(p->l);
}

static void conn_says(struct owner *o, const char *text)
{
    conn_write(o->c, slice_str(text));
    conn_flush(o->c);
}

static void wait_for(struct owner *o, size_t n)
{
    o->stop_at = n;
    while (o->n_got < n)
        run(o->loop);
    o->stop_at = 0;
}

static const int VERSIONS[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(test_echo)
{
    struct tls_pair p = {0};
    pair_start(&p, NULL, VERSIONS[_i]);
    conn_says(&p.a, "early"); /* before the handshake is done: held back, then encrypted */
    ck_assert_uint_eq(conn_out_pending(p.a.c), 5);
    ck_assert(conn_is_tls(p.a.c));
    until_up(&p);
    ck_assert_int_eq(SSL_version(p.client), VERSIONS[_i]);
    wait_for(&p.b, 5);
    ck_assert_str_eq(p.b.got, "early");
    conn_says(&p.b, "answer");
    wait_for(&p.a, 6);
    ck_assert_str_eq(p.a.got, "answer");
    ck_assert_uint_eq(conn_bytes_in(p.a.c), 6);
    ck_assert_uint_eq(conn_bytes_out(p.a.c), 5);
    settle(p.l);
    ck_assert(conn_quiet(p.a.c) && conn_quiet(p.b.c));
    pair_end(&p);
}
END_TEST

enum { PATTERN_BYTES = 1 << 20, PIECE = 50000 };

struct source {
    size_t written;
};

static void produce(struct owner *o, enum conn_event ev)
{
    struct source *src = o->data;
    static char piece[PIECE];
    (void)ev;
    while (src->written < PATTERN_BYTES && !conn_out_full(o->c)) {
        size_t n = src->written % 7 == 0 ? PIECE : 1000; /* past the buffer, and through it */
        if (n > PATTERN_BYTES - src->written)
            n = PATTERN_BYTES - src->written;
        for (size_t i = 0; i < n; i++)
            piece[i] = pattern_at(src->written + i);
        conn_write(o->c, slice_of(piece, n));
        src->written += n;
    }
    conn_flush(o->c);
}

START_TEST(test_bulk_both_ways)
{
    struct tls_pair p = {0};
    static const struct conn_limits tight = {20000, 60000, 10000};
    struct source sa = {0};
    struct source sb = {0};
    p.a.data = &sa;
    p.b.data = &sb;
    p.a.also = p.b.also = produce;
    pair_start(&p, _i % 2 ? &tight : &LIMITS, VERSIONS[_i / 2]);
    until_up(&p);
    p.a.stop_at = p.b.stop_at = PATTERN_BYTES;
    while (p.a.n_got < PATTERN_BYTES || p.b.n_got < PATTERN_BYTES)
        run(p.l);
    ck_assert_uint_eq(pattern_length(p.a.got, PATTERN_BYTES), PATTERN_BYTES);
    ck_assert_uint_eq(pattern_length(p.b.got, PATTERN_BYTES), PATTERN_BYTES);
    pair_end(&p);
}
END_TEST

START_TEST(test_bytes_inside_openssl_are_not_forgotten)
{
    struct tls_pair p = {0};
    static const struct conn_limits small = {4096, 60000, 10000};
    char data[16000]; /* one record, four buffers */
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = pattern_at(i);
    pair_start(&p, &small, VERSIONS[_i]);
    until_up(&p);
    p.b.keep = true;
    conn_write(p.a.c, slice_of(data, sizeof data));
    conn_flush(p.a.c);
    settle(p.l);
    ck_assert(conn_in_full(p.b.c));
    owner_take(&p.b);
    settle(p.l);
    ck_assert(conn_in_full(p.b.c));
    conn_pause_read(p.b.c);
    owner_take(&p.b);
    settle(p.l);
    ck_assert_uint_eq(conn_in(p.b.c).n, 0);
    ck_assert(!conn_quiet(p.b.c));
    p.b.keep = false;
    conn_resume_read(p.b.c);
    wait_for(&p.b, sizeof data);
    ck_assert(memcmp(p.b.got, data, sizeof data) == 0);
    pair_end(&p);
}
END_TEST

START_TEST(test_close_notify_is_an_end)
{
    struct tls_pair p = {0};
    pair_start(&p, NULL, VERSIONS[_i]);
    until_up(&p);
    conn_says(&p.a, "bye");
    owner_end(&p.a);
    p.a.got = NULL;
    p.b.stop = "EB";
    run(p.l);
    ck_assert_str_eq(p.b.log, "URE");
    ck_assert_str_eq(p.b.got, "bye");
    pair_end(&p);
}
END_TEST

START_TEST(test_half_close)
{
    struct tls_pair p = {0};
    pair_start(&p, NULL, VERSIONS[_i]);
    until_up(&p);
    conn_write(p.a.c, SLICE("request"));
    conn_shutdown_write(p.a.c);
    p.b.stop = "EB";
    run(p.l);
    ck_assert_str_eq(p.b.log, "URE");
    conn_says(&p.b, "answer");
    conn_shutdown_write(p.b.c);
    p.a.stop = "EB";
    run(p.l);
    ck_assert_str_eq(p.a.log, "URE");
    ck_assert_str_eq(p.a.got, "answer");
    pair_end(&p);
}
END_TEST

/* A blocking client of plain OpenSSL on the other side of a server conn. */
static SSL *blocking_client(int fd, int max_version)
{
    SSL *ssl = client_ssl(max_version, false);
    SSL_set_fd(ssl, fd);
    return ssl;
}

/* The loop and a blocking client have to run at the same time. */
struct client_job {
    pthread_t thread;
    SSL *ssl;
    const char *says;
};

static void *client_main(void *arg)
{
    struct client_job *job = arg;
    if (SSL_connect(job->ssl) == 1)
        SSL_write(job->ssl, job->says, (int)strlen(job->says));
    return NULL;
}

static void shake_hands(struct owner *o, int fd[2], struct client_job *job, int version)
{
    job->ssl = blocking_client(fd[1], version);
    ck_assert_int_eq(pthread_create(&job->thread, NULL, client_main, job), 0);
    conn_start_tls(o->c, server_ssl());
    wait_for(o, strlen(job->says));
    pthread_join(job->thread, NULL);
}

START_TEST(test_bare_fin_is_a_cut)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    struct client_job job = {.says = "half a mess"};
    owner_start(&a, l, fd[0], NULL);
    shake_hands(&a, fd, &job, VERSIONS[_i]);
    SSL_free(job.ssl);
    shutdown(fd[1], SHUT_WR);
    a.stop = "EB";
    run(l);
    ck_assert_str_eq(a.log, "URB");
    ck_assert_int_eq(conn_failure(a.c), NET_TRUNCATED);
    close(fd[1]);
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_reset_and_garbage)
{
    for (int garbage = 0; garbage < 2; garbage++) {
        struct loop *l = make_loop();
        int fd[2];
        tcp_pair(fd);
        struct owner a = {0};
        struct client_job job = {.says = "hello"};
        owner_start(&a, l, fd[0], NULL);
        shake_hands(&a, fd, &job, VERSIONS[_i]);
        if (garbage)
            send_all(fd[1], "this is not a TLS record", 24);
        SSL_free(job.ssl);
        if (!garbage)
            reset(fd[1]);
        a.stop = "EB";
        run(l);
        ck_assert_str_eq(a.log, "URB");
        ck_assert_int_eq(conn_failure(a.c), NET_RESET);
        ck_assert_str_ne(conn_detail(a.c), "");
        owner_end(&a);
        if (garbage)
            close(fd[1]);
        loop_free(l);
    }
}
END_TEST

START_TEST(test_answer_is_read_after_a_failed_write)
{
    struct tls_pair p = {0};
    pair_start(&p, NULL, VERSIONS[_i]);
    until_up(&p);
    settle(p.l);
    conn_pause_read(p.b.c);
    conn_says(&p.a, "body that nobody reads");
    conn_says(&p.b, "413");
    conn_close(p.b.c, false); /* with unread bytes: RST */
    p.b.c = NULL;
    conn_says(&p.a, "more");
    conn_says(&p.a, "and more");
    p.a.stop = "EB";
    run(p.l);
    ck_assert_str_eq(p.a.log, "URB");
    ck_assert_str_eq(p.a.got, "413");
    ck_assert_int_eq(conn_failure(p.a.c), NET_RESET);
    pair_end(&p);
}
END_TEST

/* The flow of CONNECT: plain head, plain answer, then TLS on the same bytes. The ClientHello may
 * have come with the head, whole or in part, or come later. */
static void proxy_connect(struct owner *o, enum conn_event ev)
{
    if (ev != CONN_READABLE || conn_is_tls(o->c))
        return;
    struct slice in = conn_in(o->c);
    if (in.n < 4 + *(size_t *)o->data)
        return;
    ck_assert(memcmp(in.p, "HEAD", 4) == 0);
    conn_consume(o->c, 4);
    conn_write(o->c, SLICE("OK"));
    conn_start_tls(o->c, server_ssl());
    ck_assert_uint_eq(conn_in(o->c).n, 0);
    o->keep = false;
}

START_TEST(test_start_tls_with_bytes_already_read)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    /* A ClientHello through memory. */
    SSL *client = client_ssl(TLS1_3_VERSION, false);
    BIO *rd = BIO_new(BIO_s_mem());
    BIO *wr = BIO_new(BIO_s_mem());
    SSL_set_bio(client, rd, wr);
    ck_assert_int_eq(SSL_do_handshake(client), -1);
    char *hello;
    size_t hello_bytes = (size_t)BIO_get_mem_data(wr, &hello);
    ck_assert_uint_gt(hello_bytes, 100);
    char *first = xmalloc(4 + hello_bytes);
    memcpy(first, "HEAD", 4);
    memcpy(first + 4, hello, hello_bytes);
    BIO_reset(wr);
    /* none, a piece, all of it before TLS starts */
    size_t with_head = _i == 0 ? 0 : _i == 1 ? 50 : hello_bytes;
    struct owner a = {.keep = true, .also = proxy_connect, .data = &with_head};
    owner_start(&a, l, fd[0], NULL);
    send_all(fd[1], first, 4 + with_head);
    settle(l);
    ck_assert(conn_is_tls(a.c));
    if (with_head < hello_bytes)
        send_all(fd[1], first + 4 + with_head, hello_bytes - with_head);
    free(first);
    char buf[8192];
    bool answered = false;
    while (!strchr(a.log, 'U')) {
        settle(l);
        ssize_t n = recv(fd[1], buf, sizeof buf, MSG_DONTWAIT);
        ck_assert_int_gt(n, 2);
        size_t skip = answered ? 0 : 2;
        if (!answered)
            ck_assert(memcmp(buf, "OK", 2) == 0);
        answered = true;
        BIO_write(rd, buf + skip, (int)n - (int)skip);
        int rc = SSL_do_handshake(client);
        if (rc == 1)
            ck_assert_int_eq(SSL_write(client, "inside", 6), 6);
        char *out;
        size_t out_bytes = (size_t)BIO_get_mem_data(wr, &out);
        if (out_bytes > 0)
            send_all(fd[1], out, out_bytes);
        BIO_reset(wr);
        settle(l);
    }
    wait_for(&a, 6);
    ck_assert_str_eq(a.got, "inside");
    /* Above TLS: neither the ClientHello nor its record headers count. */
    ck_assert_uint_eq(conn_bytes_in(a.c), 4 + 6);
    SSL_free(client);
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_handshake_failures)
{
    struct loop *l = make_loop();
    for (int i = 0; i < 3; i++) {
        int fd[2];
        tcp_pair(fd);
        struct owner a = {.stop = "UB"};
        owner_start(&a, l, fd[0], NULL);
        conn_start_tls(a.c, i == 0 ? server_ssl() : client_ssl(TLS1_3_VERSION, false));
        if (i == 0)
            send_all(fd[1], "GET / HTTP/1.1\r\n\r\n", 18);
        else if (i == 1)
            shutdown(fd[1], SHUT_WR);
        else
            reset(fd[1]);
        run(l);
        ck_assert_str_eq(a.log, "B");
        ck_assert_int_eq(conn_failure(a.c), NET_TLS);
        ck_assert_int_eq(strncmp(conn_detail(a.c), "handshake: ", 11), 0);
        owner_end(&a);
        if (i < 2)
            close(fd[1]);
    }
    loop_free(l);
}
END_TEST

START_TEST(test_untrusted_certificate)
{
    struct tls_pair p = {0};
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    p.l = make_loop();
    owner_start(&p.a, p.l, fd[0], NULL);
    owner_start(&p.b, p.l, fd[1], NULL);
    conn_start_tls(p.a.c, client_ssl(TLS1_3_VERSION, true));
    conn_start_tls(p.b.c, server_ssl());
    p.a.stop = "UB";
    run(p.l);
    ck_assert_str_eq(p.a.log, "B");
    ck_assert_int_eq(conn_failure(p.a.c), NET_CERTIFICATE);
    p.b.stop = "B"; /* told by alert */
    if (!strchr(p.b.log, 'B'))
        run(p.l);
    ck_assert_int_eq(conn_failure(p.b.c), NET_DISTRUSTED);
    pair_end(&p);
}
END_TEST

START_TEST(test_start_tls_on_a_dead_connection)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "B"};
    owner_start(&a, l, fd[0], NULL);
    reset(fd[1]);
    run(l);
    conn_start_tls(a.c, server_ssl());
    settle(l);
    ck_assert_str_eq(a.log, "B");
    owner_end(&a);
    loop_free(l);
}
END_TEST

/* A key update asks the other side to write while it reads. */
START_TEST(test_key_update_under_load)
{
    struct tls_pair p = {0};
    struct source sa = {0};
    struct source sb = {0};
    p.a.data = &sa;
    p.b.data = &sb;
    p.a.also = p.b.also = produce;
    pair_start(&p, NULL, TLS1_3_VERSION);
    until_up(&p);
    for (size_t at = 100000; at < PATTERN_BYTES; at += 150000) {
        p.b.stop_at = at;
        while (p.b.n_got < at)
            run(p.l);
        if (SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED) != 1)
            ERR_clear_error(); /* a record is half sent: not now */
    }
    p.a.stop_at = p.b.stop_at = PATTERN_BYTES;
    while (p.a.n_got < PATTERN_BYTES || p.b.n_got < PATTERN_BYTES)
        run(p.l);
    ck_assert_uint_eq(pattern_length(p.a.got, PATTERN_BYTES), PATTERN_BYTES);
    ck_assert_uint_eq(pattern_length(p.b.got, PATTERN_BYTES), PATTERN_BYTES);
    pair_end(&p);
}
END_TEST

static TCase *tcase_tls(void)
{
    TCase *tc = tcase_create("tls");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_echo, 0, 2);
    tcase_add_loop_test(tc, test_bulk_both_ways, 0, 4);
    tcase_add_loop_test(tc, test_bytes_inside_openssl_are_not_forgotten, 0, 2);
    tcase_add_loop_test(tc, test_start_tls_with_bytes_already_read, 0, 3);
    tcase_add_test(tc, test_key_update_under_load);
    return tc;
}

static TCase *tcase_ends(void)
{
    TCase *tc = tcase_create("ends");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_close_notify_is_an_end, 0, 2);
    tcase_add_loop_test(tc, test_half_close, 0, 2);
    tcase_add_loop_test(tc, test_bare_fin_is_a_cut, 0, 2);
    tcase_add_loop_test(tc, test_reset_and_garbage, 0, 2);
    tcase_add_loop_test(tc, test_answer_is_read_after_a_failed_write, 0, 2);
    tcase_add_test(tc, test_handshake_failures);
    tcase_add_test(tc, test_untrusted_certificate);
    tcase_add_test(tc, test_start_tls_on_a_dead_connection);
    return tc;
}

UNIT_MAIN("conn_tls", tcase_tls, tcase_ends)
