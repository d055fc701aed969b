/* Plain connections: order of events, back-pressure, ends of all kinds, lifetime. */
#include "net_test.h"

static void conn_says(struct owner *o, const char *text)
{
    conn_write(o->c, slice_str(text));
    conn_flush(o->c);
}

START_TEST(test_two_conns_talk)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    struct owner a = {.stop_at = 4};
    struct owner b = {.stop_at = 4};
    owner_start(&a, l, fd[0], NULL);
    owner_start(&b, l, fd[1], NULL);
    ck_assert_int_eq(strncmp(conn_peer(a.c), "127.0.0.1:", 10), 0);
    ck_assert(!conn_is_tls(a.c));
    conn_says(&a, "ping");
    run(l);
    ck_assert_str_eq(b.got, "ping");
    conn_says(&b, "pong");
    run(l);
    ck_assert_str_eq(a.got, "pong");
    ck_assert_str_eq(a.log, "R");
    ck_assert_uint_eq(conn_bytes_in(a.c), 4);
    ck_assert_uint_eq(conn_bytes_out(a.c), 4);
    owner_end(&a);
    b.stop = "E";
    run(l);
    ck_assert_str_eq(b.log, "RE");
    ck_assert(conn_at_eof(b.c));
    owner_end(&b);
    loop_free(l);
}
END_TEST

static void on_left(void *arg)
{
    ++*(int *)arg;
}

/* Once, when the connection closes; not when its peer goes. */
START_TEST(test_a_guest_leaves_once)
{
    struct loop *l = make_loop();
    int fd[2], left = 0;
    tcp_pair(fd);
    struct owner a = {.stop = "E"};
    owner_start(&a, l, fd[0], NULL);
    conn_set_guest(a.c, "uid=7", on_left, &left);
    ck_assert_str_eq(conn_peer(a.c), "uid=7");
    close(fd[1]);
    run(l);
    ck_assert_int_eq(left, 0);
    owner_end(&a);
    ck_assert_int_eq(left, 1);
    loop_free(l);
    ck_assert_int_eq(left, 1);
}
END_TEST

START_TEST(test_write_waits_for_flush)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    conn_write(a.c, SLICE("head"));
    settle(l);
    char buf[16];
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, MSG_DONTWAIT), -1);
    ck_assert_uint_eq(conn_out_pending(a.c), 4);
    conn_flush(a.c);
    ck_assert_uint_eq(conn_out_pending(a.c), 0);
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, 0), 4);
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

/* Writes PATTERN_BYTES as fast as it may. */
enum { PATTERN_BYTES = 1 << 20, PIECE = 40000 };

struct source {
    size_t written;
};

static void produce(struct owner *o, enum conn_event ev)
{
    struct source *src = o->data;
    static char piece[PIECE];
    (void)ev;
    while (src->written < PATTERN_BYTES && !conn_out_full(o->c)) {
        size_t n = PATTERN_BYTES - src->written < PIECE ? PATTERN_BYTES - src->written : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = pattern_at(src->written + i);
        conn_write(o->c, slice_of(piece, n));
        src->written += n;
    }
    conn_flush(o->c);
}

START_TEST(test_bulk_both_ways)
{
    struct loop *l = make_loop();
    int fd[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    struct source sa = {0};
    struct source sb = {0};
    struct owner a = {.data = &sa, .also = produce, .stop_at = PATTERN_BYTES};
    struct owner b = {.data = &sb, .also = produce, .stop_at = PATTERN_BYTES};
    owner_start(&a, l, fd[0], NULL);
    owner_start(&b, l, fd[1], NULL);
    produce(&a, CONN_UP);
    produce(&b, CONN_UP);
    ck_assert(conn_out_full(a.c));
    ck_assert_uint_lt(conn_out_pending(a.c), LIMITS.out_high + PIECE);
    run(l);
    while (a.n_got < PATTERN_BYTES || b.n_got < PATTERN_BYTES)
        run(l);
    ck_assert_uint_eq(a.n_got, PATTERN_BYTES);
    ck_assert_uint_eq(b.n_got, PATTERN_BYTES);
    ck_assert_uint_eq(pattern_length(a.got, PATTERN_BYTES), PATTERN_BYTES);
    ck_assert_uint_eq(pattern_length(b.got, PATTERN_BYTES), PATTERN_BYTES);
    ck_assert_ptr_nonnull(strchr(a.log, 'D'));
    ck_assert_uint_eq(conn_bytes_in(a.c), PATTERN_BYTES);
    ck_assert_uint_eq(conn_bytes_out(a.c), PATTERN_BYTES);
    owner_end(&a);
    owner_end(&b);
    loop_free(l);
}
END_TEST

/* A tunnel narrows the bounds of a connection whose output waits: it is told when that is out. */
START_TEST(test_narrower_bounds_owe_a_drain)
{
    static const struct conn_limits narrow = {.in_bytes = 64 * 1024};
    static char piece[PIECE];
    struct loop *l = make_loop();
    int fd[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    struct owner a = {.stop = "D"};
    owner_start(&a, l, fd[0], NULL);
    while (conn_out_pending(a.c) == 0)
        conn_write(a.c, slice_of(piece, sizeof piece));
    ck_assert(!conn_out_full(a.c));
    conn_set_limits(a.c, &narrow);
    ck_assert(conn_out_full(a.c));
    struct owner b = {0};
    owner_start(&b, l, fd[1], NULL);
    run(l);
    ck_assert_uint_eq(conn_out_pending(a.c), 0);
    ck_assert_str_eq(a.log, "D");
    owner_end(&a);
    owner_end(&b);
    loop_free(l);
}
END_TEST

static void read_until_in(struct loop *l, const struct owner *o, size_t n)
{
    while (conn_in(o->c).n < n)
        settle(l);
}

/* A tunnel narrows the bounds of a connection whose buffer is larger than they are, or has more in
 * it: what is beyond them waits in the socket. */
START_TEST(test_narrower_bounds_of_what_is_read)
{
    enum { WIDE = 65 * 1024, NARROW = 64 * 1024, ALL = WIDE + 8 * 1024 };
    static const struct conn_limits wide = {.in_bytes = WIDE}, narrow = {.in_bytes = NARROW};
    static char data[ALL];
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = pattern_at(i);
    struct owner a = {.keep = true};
    owner_start(&a, l, fd[0], &wide);
    if (_i == 0) {
        send_all(fd[1], data, NARROW - 2048);
        read_until_in(l, &a, NARROW - 2048);
        conn_set_limits(a.c, &narrow);
        send_all(fd[1], data + NARROW - 2048, ALL - NARROW + 2048);
        settle(l);
        ck_assert_uint_le(conn_in(a.c).n, NARROW);
        read_until_in(l, &a, NARROW);
    } else {
        send_all(fd[1], data, ALL);
        read_until_in(l, &a, WIDE);
        conn_set_limits(a.c, &narrow);
        settle(l);
        ck_assert_uint_eq(conn_in(a.c).n, WIDE);
    }
    ck_assert(conn_in_full(a.c));
    ck_assert_uint_eq(pattern_length(conn_in(a.c).p, NARROW), NARROW);
    conn_consume(a.c, 2 * 1024);
    read_until_in(l, &a, NARROW);
    ck_assert_uint_eq(conn_in(a.c).n, NARROW);
    a.keep = false;
    a.stop_at = ALL - 2 * 1024;
    conn_poke(a.c);
    run(l);
    while (a.n_got < ALL - 2 * 1024)
        run(l);
    ck_assert(memcmp(a.got, data + 2 * 1024, ALL - 2 * 1024) == 0);
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_full_buffer_stops_reading)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    static const struct conn_limits small = {1000, 1000, 100};
    char data[2500];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = pattern_at(i);
    struct owner a = {.keep = true};
    owner_start(&a, l, fd[0], &small);
    send_all(fd[1], data, sizeof data);
    settle(l);
    ck_assert_uint_eq(conn_in(a.c).n, 1000);
    ck_assert(conn_in_full(a.c));
    conn_consume(a.c, 1);
    settle(l);
    ck_assert_uint_eq(conn_in(a.c).n, 1000);
    ck_assert(memcmp(conn_in(a.c).p, data + 1, 1000) == 0);
    a.keep = false;
    owner_take(&a);
    settle(l);
    ck_assert_uint_eq(a.n_got, 2499);
    ck_assert(memcmp(a.got, data + 1, 2499) == 0);
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

struct share {
    uint64_t turn, before, seen, worst;
};

static void note_share(struct owner *o, enum conn_event ev)
{
    struct share *s = o->data;
    if (ev != CONN_READABLE)
        return;
    if (s->turn != loop_turn(o->loop)) {
        s->turn = loop_turn(o->loop);
        s->before = s->seen;
    }
    s->seen = o->n_got;
    if (s->seen - s->before > s->worst)
        s->worst = s->seen - s->before;
}

/* J11: fair share of a turn. */
START_TEST(test_fair_share_of_a_turn)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    struct source src = {0};
    struct share share = {.turn = UINT64_MAX};
    struct owner a = {.data = &share, .also = note_share, .stop_at = PATTERN_BYTES};
    struct owner b = {.data = &src, .also = produce};
    static const struct conn_limits one_mib = {256 * 1024, 4 << 20, 1 << 20};
    owner_start(&a, l, fd[0], &one_mib);
    owner_start(&b, l, fd[1], &one_mib);
    produce(&b, CONN_UP);
    run(l);
    ck_assert_uint_gt(share.worst, 0);
    ck_assert_uint_le(share.worst, 64 * 1024);
    owner_end(&a);
    owner_end(&b);
    loop_free(l);
}
END_TEST

START_TEST(test_half_close)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "E"};
    owner_start(&a, l, fd[0], NULL);
    send_all(fd[1], "request", 7);
    shutdown(fd[1], SHUT_WR);
    run(l);
    ck_assert_str_eq(a.log, "RE");
    ck_assert_str_eq(a.got, "request");
    conn_says(&a, "answer");
    conn_shutdown_write(a.c);
    char buf[16];
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, MSG_WAITALL), 6);
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, 0), 0);
    settle(l);
    ck_assert_str_eq(a.log, "RE");
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_shutdown_after_pending_output)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    struct source src = {0};
    struct owner a = {.data = &src, .also = produce};
    struct owner b = {.stop = "E"};
    static const struct conn_limits roomy = {64 * 1024, 4 << 20, 1 << 20};
    owner_start(&a, l, fd[0], &roomy);
    produce(&a, CONN_UP);
    a.also = NULL;
    conn_shutdown_write(a.c);
    owner_start(&b, l, fd[1], NULL);
    run(l);
    ck_assert_uint_eq(b.n_got, PATTERN_BYTES);
    ck_assert_str_eq(b.log, "RE");
    owner_end(&a);
    owner_end(&b);
    loop_free(l);
}
END_TEST

START_TEST(test_end_waits_while_paused)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    conn_pause_read(a.c);
    send_all(fd[1], "last", 4);
    close(fd[1]);
    settle(l);
    ck_assert_str_eq(a.log, "");
    conn_resume_read(a.c);
    a.stop = "E";
    run(l);
    ck_assert_str_eq(a.log, "RE");
    ck_assert_str_eq(a.got, "last");
    owner_end(&a);
    loop_free(l);
}
END_TEST

static void pause_after_input(struct owner *o, enum conn_event ev)
{
    if (ev == CONN_READABLE)
        conn_pause_read(o->c);
}

START_TEST(test_end_waits_when_paused_by_the_last_bytes)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    send_all(fd[1], "last", 4);
    close(fd[1]);
    struct owner a = {.also = pause_after_input};
    owner_start(&a, l, fd[0], NULL);
    settle(l);
    ck_assert_str_eq(a.log, "R");
    ck_assert(!conn_at_eof(a.c));
    conn_resume_read(a.c);
    a.stop = "E";
    run(l);
    ck_assert_str_eq(a.log, "RE");
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_reset_after_data)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "B"};
    send_all(fd[1], "data", 4);
    reset(fd[1]);
    owner_start(&a, l, fd[0], NULL);
    run(l);
    ck_assert_str_eq(a.log, "RB");
    ck_assert_str_eq(a.got, "data");
    ck_assert_int_eq(conn_failure(a.c), NET_RESET);
    ck_assert_str_eq(conn_detail(a.c), strerror(ECONNRESET));
    conn_write(a.c, SLICE("nobody listens"));
    conn_flush(a.c);
    conn_shutdown_write(a.c);
    conn_deadline(a.c, 1);
    ck_assert_uint_eq(conn_out_pending(a.c), 0);
    settle(l);
    ck_assert_str_eq(a.log, "RB");
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_reset_after_end)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "E"};
    owner_start(&a, l, fd[0], NULL);
    shutdown(fd[1], SHUT_WR);
    run(l);
    reset(fd[1]);
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "EB");
    ck_assert_int_eq(conn_failure(a.c), NET_RESET);
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_paused_reader_notices_reset)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    settle(l);
    conn_pause_read(a.c);
    settle(l);
    reset(fd[1]);
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "B");
    ck_assert_int_eq(conn_failure(a.c), NET_RESET);
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_paused_reset_waits_for_unread_bytes)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    conn_pause_read(a.c);
    send_all(fd[1], "tail", 4);
    settle(l);
    reset(fd[1]);
    settle(l);
    ck_assert_str_eq(a.log, "");
    conn_resume_read(a.c);
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "RB");
    ck_assert_str_eq(a.got, "tail");
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_paused_reset_waits_for_the_buffer)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.keep = true, .also = pause_after_input, .stop = "R"};
    owner_start(&a, l, fd[0], NULL);
    send_all(fd[1], "tail", 4);
    reset(fd[1]);
    run(l);
    settle(l);
    ck_assert_str_eq(a.log, "R");
    conn_consume(a.c, 4);
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "RB");
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_writer_with_unread_input_learns_of_a_reset)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.keep = true, .also = pause_after_input, .stop = "R"};
    owner_start(&a, l, fd[0], NULL);
    send_all(fd[1], "next", 4);
    reset(fd[1]);
    run(l);
    settle(l);
    ck_assert_str_eq(a.log, "R");
    conn_says(&a, "answer");
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "RB");
    ck_assert_uint_eq(conn_in(a.c).n, 4);
    owner_end(&a);
    loop_free(l);
}
END_TEST

/* A server that answers before it has read the request, and closes: RST, and our writes fail. */
START_TEST(test_answer_is_read_after_a_failed_write)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    settle(l);
    conn_says(&a, "body that nobody reads");
    send_all(fd[1], "413", 3);
    close(fd[1]); /* with unread bytes: RST */
    conn_says(&a, "more body");
    conn_says(&a, "and more");
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "RB");
    ck_assert_str_eq(a.got, "413");
    ck_assert_int_eq(conn_failure(a.c), NET_RESET);
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_writer_blocked_by_a_dead_peer)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct source src = {0};
    struct owner a = {.data = &src};
    owner_start(&a, l, fd[0], NULL);
    conn_pause_read(a.c);
    while (!conn_out_full(a.c)) { /* nobody reads: the socket buffers fill, then ours */
        src.written = 0;
        produce(&a, CONN_UP);
    }
    settle(l);
    ck_assert_str_eq(a.log, "");
    reset(fd[1]);
    a.stop = "B";
    run(l);
    ck_assert_str_eq(a.log, "B");
    ck_assert(!conn_out_full(a.c));
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_deadline)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "T"};
    owner_start(&a, l, fd[0], NULL);
    loop_tick(l);
    int64_t start = loop_now_ns(l);
    conn_deadline(a.c, start + 10 * NS_PER_MS);
    conn_deadline(a.c, start + 60 * NS_PER_MS);
    run(l);
    ck_assert_int_ge(loop_now_ns(l) - start, 60 * NS_PER_MS);
    ck_assert_str_eq(a.log, "T");
    conn_deadline(a.c, loop_now_ns(l) + 10 * NS_PER_S);
    conn_deadline(a.c, loop_now_ns(l) + 10 * NS_PER_MS); /* sooner again */
    run(l);
    ck_assert_str_eq(a.log, "TT");
    conn_deadline(a.c, loop_now_ns(l) + 5 * NS_PER_MS);
    conn_deadline(a.c, 0);
    settle(l);
    ck_assert_str_eq(a.log, "TT");
    conn_deadline(a.c, 1); /* long past */
    run(l);
    ck_assert_str_eq(a.log, "TTT");
    conn_says(&a, "it still works");
    char buf[32];
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, 0), 14);
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_close_inside_readable)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.close = "R", .keep = true};
    send_all(fd[1], "data", 4);
    close(fd[1]); /* the end must not be told to a closed connection */
    owner_start(&a, l, fd[0], NULL);
    conn_poke(a.c);
    run(l);
    settle(l);
    ck_assert_str_eq(a.log, "R");
    owner_end(&a);
    loop_free(l);
}
END_TEST

START_TEST(test_close_inside_other_callbacks)
{
    struct loop *l = make_loop();
    int fd[2];
    const char *const cases[] = {"E", "B", "T"};
    for (size_t i = 0; i < 3; i++) {
        tcp_pair(fd);
        struct owner a = {.close = cases[i]};
        owner_start(&a, l, fd[0], NULL);
        if (i == 0)
            close(fd[1]);
        else if (i == 1)
            reset(fd[1]);
        else
            conn_deadline(a.c, 1);
        run(l);
        settle(l);
        ck_assert_str_eq(a.log, cases[i]);
        ck_assert_ptr_null(a.c);
        owner_end(&a);
        if (i == 2)
            close(fd[1]);
    }
    loop_free(l);
}
END_TEST

START_TEST(test_close_inside_drained)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    set_nonblocking(fd[1]);
    static const struct conn_limits roomy = {64 * 1024, 900 * 1024, 64 * 1024};
    struct source src = {0};
    struct owner a = {.data = &src, .close = "D"};
    struct owner b = {.stop = "EB"};
    owner_start(&a, l, fd[0], &roomy);
    while (!conn_out_full(a.c)) {
        src.written = 0;
        produce(&a, CONN_UP);
    }
    owner_start(&b, l, fd[1], NULL);
    run(l);
    ck_assert_str_eq(a.log, "D");
    owner_end(&a);
    owner_end(&b);
    loop_free(l);
}
END_TEST

START_TEST(test_close_sends_what_the_socket_takes)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    conn_write(a.c, SLICE("goodbye"));
    owner_end(&a);
    char buf[16];
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, MSG_WAITALL), 7);
    ck_assert_int_eq(recv(fd[1], buf, sizeof buf, 0), 0);
    close(fd[1]);
    loop_free(l);
}
END_TEST

/* Reads to the end; 0: FIN, else errno. */
static int how_it_ends(int fd)
{
    static char buf[65536];
    ssize_t n;
    do
        n = recv(fd, buf, sizeof buf, 0);
    while (n > 0);
    return n == 0 ? 0 : errno;
}

START_TEST(test_a_cut_is_visible)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {0};
    owner_start(&a, l, fd[0], NULL);
    conn_close(a.c, true);
    a.c = NULL;
    ck_assert_int_eq(how_it_ends(fd[1]), ECONNRESET);
    owner_end(&a);
    close(fd[1]);

    tcp_pair(fd);
    struct source src = {0};
    struct owner b = {.data = &src};
    owner_start(&b, l, fd[0], NULL);
    while (!conn_out_full(b.c)) {
        src.written = 0;
        produce(&b, CONN_UP);
    }
    owner_end(&b); /* output is lost */
    ck_assert_int_eq(how_it_ends(fd[1]), ECONNRESET);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_poke_and_new_owner)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.keep = true, .stop = "E"};
    owner_start(&a, l, fd[0], NULL);
    send_all(fd[1], "pipelined", 9);
    shutdown(fd[1], SHUT_WR);
    run(l);
    ck_assert_str_eq(a.log, "RE");
    struct owner b = {.loop = l, .c = a.c, .got = xcalloc(1, 1), .stop = "R"};
    conn_set_owner(a.c, on_owner, &b);
    settle(l);
    ck_assert_str_eq(b.log, "");
    conn_poke(b.c);
    ck_assert_str_eq(b.log, ""); /* never from within */
    run(l);
    ck_assert_str_eq(b.log, "R");
    ck_assert_str_eq(b.got, "pipelined");
    conn_poke(b.c);
    b.stop = "E";
    run(l);
    ck_assert_str_eq(b.log, "RE");
    ck_assert_str_eq(a.log, "RE");
    a.c = NULL;
    owner_end(&a);
    owner_end(&b);
    close(fd[1]);
    loop_free(l);
}
END_TEST

START_TEST(test_quiet)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.keep = true};
    owner_start(&a, l, fd[0], NULL);
    settle(l);
    ck_assert(conn_quiet(a.c));
    send_all(fd[1], "x", 1);
    ck_assert(!conn_quiet(a.c)); /* before the loop knows */
    settle(l);
    ck_assert(!conn_quiet(a.c)); /* in conn_in() */
    conn_consume(a.c, 1);
    ck_assert(conn_quiet(a.c));
    conn_write(a.c, SLICE("y"));
    ck_assert(!conn_quiet(a.c));
    conn_flush(a.c);
    ck_assert(conn_quiet(a.c));
    reset(fd[1]);
    ck_assert(!conn_quiet(a.c));
    a.stop = "B";
    run(l);
    ck_assert_int_eq(conn_failure(a.c), NET_RESET);
    owner_end(&a);
    loop_free(l);
}
END_TEST

static TCase *tcase_plain(void)
{
    TCase *tc = tcase_create("plain");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_two_conns_talk);
    tcase_add_test(tc, test_write_waits_for_flush);
    tcase_add_test(tc, test_bulk_both_ways);
    tcase_add_test(tc, test_narrower_bounds_owe_a_drain);
    tcase_add_loop_test(tc, test_narrower_bounds_of_what_is_read, 0, 2);
    tcase_add_test(tc, test_full_buffer_stops_reading);
    tcase_add_test(tc, test_fair_share_of_a_turn);
    tcase_add_test(tc, test_deadline);
    tcase_add_test(tc, test_poke_and_new_owner);
    tcase_add_test(tc, test_quiet);
    return tc;
}

static TCase *tcase_ends(void)
{
    TCase *tc = tcase_create("ends");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_half_close);
    tcase_add_test(tc, test_shutdown_after_pending_output);
    tcase_add_test(tc, test_end_waits_while_paused);
    tcase_add_test(tc, test_end_waits_when_paused_by_the_last_bytes);
    tcase_add_test(tc, test_reset_after_data);
    tcase_add_test(tc, test_reset_after_end);
    tcase_add_test(tc, test_paused_reader_notices_reset);
    tcase_add_test(tc, test_paused_reset_waits_for_unread_bytes);
    tcase_add_test(tc, test_paused_reset_waits_for_the_buffer);
    tcase_add_test(tc, test_writer_with_unread_input_learns_of_a_reset);
    tcase_add_test(tc, test_answer_is_read_after_a_failed_write);
    tcase_add_test(tc, test_writer_blocked_by_a_dead_peer);
    return tc;
}

static TCase *tcase_close(void)
{
    TCase *tc = tcase_create("close");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_close_inside_readable);
    tcase_add_test(tc, test_close_inside_other_callbacks);
    tcase_add_test(tc, test_close_inside_drained);
    tcase_add_test(tc, test_close_sends_what_the_socket_takes);
    tcase_add_test(tc, test_a_cut_is_visible);
    tcase_add_test(tc, test_a_guest_leaves_once);
    return tc;
}

UNIT_MAIN("conn", tcase_plain, tcase_ends, tcase_close)
