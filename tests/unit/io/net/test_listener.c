/* Listeners: what an accepted descriptor is like, pausing, want of descriptors. */
#include "io/net/listener.h"
#include "net_test.h"
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/un.h>

struct hall {
    struct loop *l;
    struct listener *ls;
    int n;
    int stop_at;
    bool close_it, pause_it;
    int fds[256];
    struct sockaddr_storage peer;
};

static void on_accept(void *arg, int fd, const struct sockaddr *peer)
{
    struct hall *h = arg;
    h->fds[h->n++] = fd;
    if (peer->sa_family == AF_INET)
        memcpy(&h->peer, peer, sizeof(struct sockaddr_in));
    if (h->pause_it)
        listener_pause(h->ls, true);
    if (h->close_it) {
        listener_close(h->ls);
        h->ls = NULL;
    }
    if (h->n == h->stop_at)
        loop_stop(h->l);
}

static void hall_open(struct hall *h)
{
    struct err err;
    struct sockaddr_in sa = loopback(0);
    h->l = make_loop();
    h->ls = listener_open(h->l, (struct sockaddr *)&sa, sizeof sa, on_accept, h, &err);
    ck_assert_ptr_nonnull(h->ls);
}

static void hall_end(struct hall *h)
{
    for (int i = 0; i < h->n; i++)
        close(h->fds[i]);
    listener_close(h->ls);
    loop_free(h->l);
}

static int knock(const struct sockaddr_storage *sa)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    int rc = connect(fd, (const struct sockaddr *)sa, sizeof(struct sockaddr_in));
    ck_assert(rc == 0 || errno == EINPROGRESS);
    return fd;
}

START_TEST(test_accepted_descriptor)
{
    struct hall h = {.stop_at = 1};
    hall_open(&h);
    const struct sockaddr_in *addr = (const void *)listener_addr(h.ls);
    ck_assert_int_ne(addr->sin_port, 0);
    int fd = knock(listener_addr(h.ls));
    run(h.l);
    int nodelay = 0;
    socklen_t len = sizeof nodelay;
    ck_assert_int_eq(getsockopt(h.fds[0], IPPROTO_TCP, TCP_NODELAY, &nodelay, &len), 0);
    ck_assert_int_ne(nodelay, 0);
    ck_assert(fcntl(h.fds[0], F_GETFL) & O_NONBLOCK);
    ck_assert(fcntl(h.fds[0], F_GETFD) & FD_CLOEXEC);
    ck_assert_uint_eq(((struct sockaddr_in *)&h.peer)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    close(fd);
    hall_end(&h);
}
END_TEST

START_TEST(test_many_at_once)
{
    struct hall h = {.stop_at = 100};
    int fds[100];
    hall_open(&h);
    for (int i = 0; i < 100; i++)
        fds[i] = knock(listener_addr(h.ls));
    run(h.l);
    ck_assert_int_eq(h.n, 100);
    for (int i = 0; i < 100; i++)
        close(fds[i]);
    hall_end(&h);
}
END_TEST

START_TEST(test_pause_inside_callback)
{
    struct hall h = {.pause_it = true};
    hall_open(&h);
    int a = knock(listener_addr(h.ls));
    int b = knock(listener_addr(h.ls));
    settle(h.l);
    ck_assert_int_eq(h.n, 1);
    h.pause_it = false;
    h.stop_at = 2;
    listener_pause(h.ls, false);
    run(h.l);
    ck_assert_int_eq(h.n, 2);
    close(a);
    close(b);
    hall_end(&h);
}
END_TEST

START_TEST(test_close_inside_callback)
{
    struct hall h = {.close_it = true, .stop_at = 1};
    hall_open(&h);
    int a = knock(listener_addr(h.ls));
    int b = knock(listener_addr(h.ls));
    run(h.l);
    ck_assert_int_eq(h.n, 1);
    close(a);
    close(b);
    hall_end(&h);
}
END_TEST

START_TEST(test_no_descriptors_left)
{
    struct hall h = {.stop_at = 1};
    hall_open(&h);
    int fd = knock(listener_addr(h.ls));
    struct rlimit old;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)fd + 1, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t before = loop_turn(h.l);
    settle(h.l);
    ck_assert_int_eq(h.n, 0);
    ck_assert_uint_lt(loop_turn(h.l) - before, 10); /* at rest, not spinning */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    loop_tick(h.l);
    int64_t start = loop_now_ns(h.l);
    run(h.l);
    ck_assert_int_eq(h.n, 1);
    ck_assert_int_gt(loop_now_ns(h.l) - start, 50 * NS_PER_MS);
    close(fd);
    hall_end(&h);
}
END_TEST

START_TEST(test_adopt)
{
    struct hall h = {.stop_at = 1};
    struct err err;
    uint16_t port;
    h.l = make_loop();
    int pair[2];
    tcp_pair(pair);
    ck_assert_ptr_null(listener_adopt(h.l, pair[0], on_accept, &h, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "not a listening socket"));
    close(pair[0]);
    close(pair[1]);
    h.ls = listener_adopt(h.l, listen_on_loopback(&port), on_accept, &h, &err);
    ck_assert_ptr_nonnull(h.ls);
    ck_assert_uint_eq(((const struct sockaddr_in *)listener_addr(h.ls))->sin_port, htons(port));
    int fd = knock(listener_addr(h.ls));
    run(h.l);
    ck_assert_int_eq(h.n, 1);
    close(fd);
    hall_end(&h);
}
END_TEST

START_TEST(test_port_in_use)
{
    struct hall h = {0};
    struct err err;
    hall_open(&h);
    struct sockaddr_in sa = *(const struct sockaddr_in *)listener_addr(h.ls);
    ck_assert_ptr_null(listener_open(h.l, (struct sockaddr *)&sa, sizeof sa, on_accept, &h, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "127.0.0.1:"));
    hall_end(&h);
}
END_TEST

START_TEST(test_unix_leftover_is_replaced)
{
    struct hall h = {.l = make_loop(), .stop_at = 1};
    struct err err;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "/tmp/listener-test.%d", (int)getpid());
    struct listener *first =
        listener_open(h.l, (struct sockaddr *)&sa, sizeof sa, on_accept, &h, &err);
    ck_assert_ptr_nonnull(first);
    /* In use: refused. Left over: replaced. */
    ck_assert_ptr_null(listener_open(h.l, (struct sockaddr *)&sa, sizeof sa, on_accept, &h, &err));
    listener_close(first);
    h.ls = listener_open(h.l, (struct sockaddr *)&sa, sizeof sa, on_accept, &h, &err);
    ck_assert_ptr_nonnull(h.ls);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    run(h.l);
    ck_assert_int_eq(h.n, 1);
    close(fd);
    unlink(sa.sun_path);
    hall_end(&h);
}
END_TEST

struct gate {
    bool open;
    int asked, accepted, overdue;
};

static bool may_accept(void *arg)
{
    struct gate *g = arg;
    g->asked++;
    return g->open;
}

static void accepted(void *arg, bool overdue)
{
    struct gate *g = arg;
    g->accepted++;
    g->overdue += overdue;
}

/* One that nobody else takes is accepted a moment later, and so is each one after it. */
START_TEST(test_gate_delays)
{
    struct hall h = {.stop_at = 2};
    struct gate g = {.open = false};
    hall_open(&h);
    listener_set_gate(h.ls, &(struct listener_gate){may_accept, accepted, &g});
    int a = knock(listener_addr(h.ls)), b = knock(listener_addr(h.ls));
    loop_tick(h.l);
    int64_t start = loop_now_ns(h.l);
    run(h.l);
    ck_assert_int_ge(loop_now_ns(h.l) - start, 4 * NS_PER_MS);
    ck_assert_int_eq(g.overdue, 2);
    g.open = true;
    h.stop_at = 3;
    int c = knock(listener_addr(h.ls));
    run(h.l);
    ck_assert_int_eq(h.n, 3);
    ck_assert_int_eq(g.accepted, 3);
    ck_assert_int_eq(g.overdue, 2);
    close(a);
    close(b);
    close(c);
    hall_end(&h);
}
END_TEST

/* What the other one, whose gate is open, takes meanwhile is not overdue here. */
START_TEST(test_gate_leaves_it_to_others)
{
    struct hall h = {.stop_at = 20}, other = {.stop_at = 20};
    struct gate g = {.open = false};
    struct err err;
    int fds[20];
    struct sockaddr_in sa = loopback(0);
    h.l = make_loop();
    other.l = h.l;
    int shared = listener_bind((struct sockaddr *)&sa, sizeof sa, &err);
    ck_assert_int_ge(shared, 0);
    h.ls = listener_adopt(h.l, dup(shared), on_accept, &h, &err);
    other.ls = listener_adopt(h.l, shared, on_accept, &other, &err);
    listener_set_gate(h.ls, &(struct listener_gate){may_accept, accepted, &g});
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = knock(listener_addr(h.ls));
    run(h.l);
    ck_assert_int_eq(other.n, ARRAY_LEN(fds));
    ck_assert_int_eq(h.n + g.accepted, 0);
    ck_assert_int_gt(g.asked, 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        close(fds[i]);
        close(other.fds[i]);
    }
    listener_close(other.ls);
    hall_end(&h);
}
END_TEST

static TCase *tcase_listener(void)
{
    TCase *tc = tcase_create("listener");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_accepted_descriptor);
    tcase_add_test(tc, test_many_at_once);
    tcase_add_test(tc, test_pause_inside_callback);
    tcase_add_test(tc, test_close_inside_callback);
    tcase_add_test(tc, test_no_descriptors_left);
    tcase_add_test(tc, test_gate_delays);
    tcase_add_test(tc, test_gate_leaves_it_to_others);
    tcase_add_test(tc, test_adopt);
    tcase_add_test(tc, test_port_in_use);
    tcase_add_test(tc, test_unix_leftover_is_replaced);
    return tc;
}

UNIT_MAIN("listener", tcase_listener)
