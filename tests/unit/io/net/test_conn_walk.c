/* Random walks: two connections under random writes, flushes, pauses, partial reads, then left to
 * themselves. Every byte must arrive in order, and both ends must be told, without anybody touching
 * them again: a lost edge or a forgotten byte hangs the walk. */
#include "core/base/rng.h"
#include "net_test.h"

enum { TOTAL_BYTES = 200 * 1000, PIECE = 60 * 1000, SEEDS = 40 };

struct walker {
    struct owner o;
    struct rng *rng;
    size_t written;
    bool wild, finished;
};

struct walk {
    struct loop *l;
    struct rng rng;
    struct walker w[2];
    int ticks;
};

static size_t below(struct rng *rng, size_t n)
{
    return (size_t)(rng_u64(rng) % n);
}

static void write_some(struct walker *w, size_t max)
{
    static char piece[PIECE];
    if (w->finished || conn_out_full(w->o.c))
        return;
    size_t n = max < TOTAL_BYTES - w->written ? max : TOTAL_BYTES - w->written;
    for (size_t i = 0; i < n; i++)
        piece[i] = pattern_at(w->written + i);
    conn_write(w->o.c, slice_of(piece, n));
    w->written += n;
    if (w->written == TOTAL_BYTES) {
        w->finished = true;
        conn_shutdown_write(w->o.c);
    }
}

/* Checks and takes the first n bytes of the input. */
static void take(struct walker *w, size_t n)
{
    struct slice in = conn_in(w->o.c);
    size_t right = 0;
    while (right < n && in.p[right] == pattern_at(w->o.n_got + right))
        right++;
    ck_assert_uint_eq(right, n);
    w->o.n_got += n;
    conn_consume(w->o.c, n);
}

static void act_wild(struct walker *w)
{
    switch (below(w->rng, 10)) {
    case 0:
        conn_pause_read(w->o.c);
        break;
    case 1:
        conn_resume_read(w->o.c);
        break;
    case 2:
        conn_poke(w->o.c);
        break;
    case 3:
        conn_flush(w->o.c);
        break;
    case 4:
    case 5:
        take(w, below(w->rng, conn_in(w->o.c).n + 1));
        break;
    case 6:
        write_some(w, 1 + below(w->rng, PIECE));
        break;
    default:
        write_some(w, 1 + below(w->rng, 2000));
        break;
    }
}

static void act_tame(struct walker *w)
{
    take(w, conn_in(w->o.c).n);
    while (!w->finished && !conn_out_full(w->o.c))
        write_some(w, PIECE);
    conn_flush(w->o.c);
}

static void on_step(struct owner *o, enum conn_event ev)
{
    struct walker *w = o->data;
    ck_assert_msg(ev != CONN_BROKEN, "%s", conn_detail(o->c));
    if (ev == CONN_READABLE && w->wild && below(w->rng, 4) == 0)
        conn_pause_read(o->c);
    if (w->wild)
        act_wild(w);
    else
        act_tame(w);
}

static void on_tick(void *arg)
{
    struct walk *k = arg;
    for (int i = 0; i < 2; i++) {
        struct walker *w = &k->w[i];
        if (k->ticks > 0) {
            act_wild(w);
        } else {
            w->wild = false;
            conn_resume_read(w->o.c);
            act_tame(w);
        }
    }
    if (k->ticks-- > 0)
        loop_defer(k->l, on_tick, k);
}

static void walk(uint64_t seed, int tls_version)
{
    struct walk k = {.l = make_loop()};
    int fd[2];
    rng_seed(&k.rng, (uint64_t[4]){seed, 2, 3, 4});
    if (seed % 3 == 0) {
        tcp_pair(fd);
        set_nonblocking(fd[1]);
    } else {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    }
    for (int i = 0; i < 2; i++) {
        int small = 4096;
        ck_assert_int_eq(setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
        struct conn_limits lim = {100 + below(&k.rng, 70000), 1 + below(&k.rng, 100000), 0};
        lim.out_low = below(&k.rng, lim.out_high);
        struct walker *w = &k.w[i];
        w->rng = &k.rng;
        w->wild = true;
        w->o = (struct owner){.keep = true, .also = on_step, .data = w, .stop = "E"};
        owner_start(&w->o, k.l, fd[i], &lim);
        if (tls_version)
            conn_start_tls(w->o.c, i == 0 ? client_ssl(tls_version, false) : server_ssl());
    }
    k.ticks = (int)below(&k.rng, 400);
    loop_defer(k.l, on_tick, &k);
    while (!conn_at_eof(k.w[0].o.c) || !conn_at_eof(k.w[1].o.c) || k.w[0].wild ||
           k.w[0].o.n_got < TOTAL_BYTES || k.w[1].o.n_got < TOTAL_BYTES) {
        memset(k.w[0].o.log, 0, sizeof k.w[0].o.log);
        memset(k.w[1].o.log, 0, sizeof k.w[1].o.log);
        run_for(k.l, NS_PER_MS);
        ck_assert_int_lt(loop_turn(k.l), 1000000);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(k.w[i].o.n_got, TOTAL_BYTES);
        ck_assert_uint_eq(conn_bytes_in(k.w[i].o.c), TOTAL_BYTES);
        ck_assert_uint_eq(conn_bytes_out(k.w[i].o.c), TOTAL_BYTES);
        ck_assert_uint_eq(conn_out_pending(k.w[i].o.c), 0);
    }
    owner_end(&k.w[0].o);
    owner_end(&k.w[1].o);
    loop_free(k.l);
}

START_TEST(test_plain)
{
    walk((uint64_t)_i, 0);
}
END_TEST

START_TEST(test_tls12)
{
    walk((uint64_t)_i, TLS1_2_VERSION);
}
END_TEST

START_TEST(test_tls13)
{
    walk((uint64_t)_i, TLS1_3_VERSION);
}
END_TEST

static TCase *tcase_walk(void)
{
    TCase *tc = tcase_create("walk");
    tcase_set_timeout(tc, 20);
    tcase_add_loop_test(tc, test_plain, 0, SEEDS);
    tcase_add_loop_test(tc, test_tls12, 0, SEEDS);
    tcase_add_loop_test(tc, test_tls13, 0, SEEDS);
    return tc;
}

UNIT_MAIN("conn_walk", tcase_walk)
