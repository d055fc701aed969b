/* The pool: who is handed out, who is thrown away. */
#include "io/net/pool.h"
#include "net_test.h"

enum { MAX_CONNS = 16 };

struct fixture {
    struct loop *l;
    struct pool *p;
    int far[MAX_CONNS]; /* the origins' ends */
    struct conn *near[MAX_CONNS];
};

static void on_never(struct conn *c, enum conn_event ev, void *arg)
{
    (void)c;
    (void)ev;
    (void)arg;
    ck_abort_msg("an event of a connection that is in the pool");
}

static void start(struct fixture *f, unsigned per_origin, unsigned total, int64_t idle_ns)
{
    struct hash_key key = {1, 2};
    f->l = make_loop();
    f->p = pool_new(f->l, key, per_origin, total, idle_ns);
    for (int i = 0; i < MAX_CONNS; i++) {
        int fd[2];
        tcp_pair(fd);
        f->far[i] = fd[1];
        f->near[i] = conn_new(f->l, fd[0], &LIMITS, on_never, NULL);
    }
    settle(f->l);
}

static void put(struct fixture *f, const char *key, int i)
{
    pool_put(f->p, slice_str(key), f->near[i], false);
    f->near[i] = NULL;
}

static struct conn *take(struct fixture *f, const char *key)
{
    return pool_take(f->p, slice_str(key));
}

static bool far_is_closed(struct fixture *f, int i)
{
    char c;
    return recv(f->far[i], &c, 1, MSG_DONTWAIT) == 0;
}

static void finish(struct fixture *f)
{
    pool_free(f->p);
    for (int i = 0; i < MAX_CONNS; i++) {
        if (f->near[i])
            conn_close(f->near[i], false);
        if (f->far[i] >= 0)
            close(f->far[i]);
    }
    loop_free(f->l);
}

START_TEST(test_last_in_first_out)
{
    struct fixture f;
    start(&f, 8, 8, NS_PER_S);
    struct conn *a = f.near[0];
    struct conn *b = f.near[1];
    struct conn *other = f.near[2];
    put(&f, "s3", 0);
    put(&f, "s3", 1);
    put(&f, "sqs", 2);
    ck_assert_uint_eq(pool_idle(f.p), 3);
    ck_assert_ptr_eq(take(&f, "s3"), b);
    ck_assert_ptr_eq(take(&f, "s3"), a);
    ck_assert_ptr_null(take(&f, "s3"));
    ck_assert_ptr_null(take(&f, "sts"));
    ck_assert_ptr_eq(take(&f, "sqs"), other);
    ck_assert_uint_eq(pool_idle(f.p), 0);
    f.near[0] = a;
    f.near[1] = b;
    f.near[2] = other;
    finish(&f);
}
END_TEST

START_TEST(test_cap_of_an_origin)
{
    struct fixture f;
    start(&f, 2, 8, NS_PER_S);
    for (int i = 0; i < 3; i++)
        put(&f, "s3", i);
    put(&f, "sqs", 3);
    ck_assert_uint_eq(pool_idle(f.p), 3);
    settle(f.l);
    ck_assert(far_is_closed(&f, 0)); /* the oldest */
    ck_assert(!far_is_closed(&f, 1) && !far_is_closed(&f, 2) && !far_is_closed(&f, 3));
    finish(&f);
}
END_TEST

START_TEST(test_cap_of_all)
{
    struct fixture f;
    start(&f, 8, 3, NS_PER_S);
    put(&f, "a", 0);
    put(&f, "b", 1);
    put(&f, "c", 2);
    put(&f, "b", 3);
    ck_assert_uint_eq(pool_idle(f.p), 3);
    ck_assert(far_is_closed(&f, 0));
    ck_assert_ptr_null(take(&f, "a"));
    finish(&f);
}
END_TEST

START_TEST(test_no_pool_at_all)
{
    struct fixture f;
    start(&f, 0, 0, NS_PER_S);
    put(&f, "a", 0);
    ck_assert_uint_eq(pool_idle(f.p), 0);
    ck_assert(far_is_closed(&f, 0));
    finish(&f);
}
END_TEST

START_TEST(test_idle_end_bytes_and_reset)
{
    struct fixture f;
    start(&f, 8, 8, NS_PER_S);
    for (int i = 0; i < 4; i++)
        put(&f, "s3", i);
    send_all(f.far[0], "HTTP/1.1 408 x\r\n\r\n", 18);
    shutdown(f.far[1], SHUT_WR);
    reset(f.far[2]);
    f.far[2] = -1;
    settle(f.l);
    ck_assert_uint_eq(pool_idle(f.p), 1);
    ck_assert(!far_is_closed(&f, 3));
    finish(&f);
}
END_TEST

/* The same, before the loop had a chance to see it. */
START_TEST(test_take_asks_the_socket)
{
    struct fixture f;
    start(&f, 8, 8, NS_PER_S);
    struct conn *good = f.near[0];
    for (int i = 0; i < 4; i++)
        put(&f, "s3", i);
    send_all(f.far[3], "x", 1);
    shutdown(f.far[2], SHUT_WR);
    reset(f.far[1]);
    f.far[1] = -1;
    ck_assert_ptr_eq(take(&f, "s3"), good);
    ck_assert_uint_eq(pool_idle(f.p), 0);
    f.near[0] = good;
    settle(f.l);
    finish(&f);
}
END_TEST

START_TEST(test_unfit_are_not_taken_in)
{
    struct fixture f;
    start(&f, 8, 8, NS_PER_S);
    send_all(f.far[0], "x", 1); /* unread input */
    put(&f, "s3", 0);
    shutdown(f.far[1], SHUT_WR); /* ended */
    put(&f, "s3", 1);
    conn_write(f.near[2], SLICE("unsent")); /* unsent output */
    put(&f, "s3", 2);
    ck_assert_uint_eq(pool_idle(f.p), 0);
    finish(&f);
}
END_TEST

START_TEST(test_idle_too_long)
{
    struct fixture f;
    start(&f, 8, 8, 50 * NS_PER_MS);
    conn_pause_read(f.near[0]); /* the pool reads all the same */
    put(&f, "s3", 0);
    run_for(f.l, 25 * NS_PER_MS);
    ck_assert_uint_eq(pool_idle(f.p), 1);
    struct conn *c = take(&f, "s3");
    ck_assert_ptr_nonnull(c);
    pool_put(f.p, SLICE("s3"), c, true); /* a new life */
    run_for(f.l, 40 * NS_PER_MS);
    ck_assert_uint_eq(pool_idle(f.p), 1);
    run_for(f.l, 60 * NS_PER_MS);
    ck_assert_uint_eq(pool_idle(f.p), 0);
    ck_assert(far_is_closed(&f, 0));
    finish(&f);
}
END_TEST

START_TEST(test_taken_has_no_deadline)
{
    struct fixture f;
    start(&f, 8, 8, 10 * NS_PER_MS);
    put(&f, "s3", 0);
    struct conn *c = take(&f, "s3");
    conn_set_owner(c, on_never, NULL);
    f.near[0] = c;
    run_for(f.l, 40 * NS_PER_MS);
    finish(&f);
}
END_TEST

START_TEST(test_distrust)
{
    struct fixture f;
    start(&f, 8, 8, NS_PER_S);
    put(&f, "s3", 0);
    put(&f, "s3", 1);
    put(&f, "sqs", 2);
    pool_stale(f.p, SLICE("s3"));
    ck_assert_uint_eq(pool_idle(f.p), 3);
    struct conn *c = take(&f, "s3"); /* one that works: the count begins anew */
    pool_put(f.p, SLICE("s3"), c, true);
    pool_stale(f.p, SLICE("s3"));
    pool_stale(f.p, SLICE("sqs"));
    pool_stale(f.p, SLICE("unknown"));
    pool_stale(f.p, SLICE("unknown"));
    ck_assert_uint_eq(pool_idle(f.p), 3);
    put(&f, "s3", 3); /* a new one says nothing of those that idle */
    pool_stale(f.p, SLICE("s3"));
    ck_assert_uint_eq(pool_idle(f.p), 1);
    ck_assert(far_is_closed(&f, 0) && far_is_closed(&f, 1) && far_is_closed(&f, 3));
    ck_assert(!far_is_closed(&f, 2));
    finish(&f);
}
END_TEST

static TCase *tcase_pool(void)
{
    TCase *tc = tcase_create("pool");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_last_in_first_out);
    tcase_add_test(tc, test_cap_of_an_origin);
    tcase_add_test(tc, test_cap_of_all);
    tcase_add_test(tc, test_no_pool_at_all);
    tcase_add_test(tc, test_idle_end_bytes_and_reset);
    tcase_add_test(tc, test_take_asks_the_socket);
    tcase_add_test(tc, test_unfit_are_not_taken_in);
    tcase_add_test(tc, test_idle_too_long);
    tcase_add_test(tc, test_taken_has_no_deadline);
    tcase_add_test(tc, test_distrust);
    return tc;
}

UNIT_MAIN("pool", tcase_pool)
