/* The loop: timers, deferral, signals, the clock. */
#include "net_test.h"
#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

struct note {
    struct loop *l;
    char text[64];
    struct loop_timer timer;
    int left;
};

static void write_down(struct note *n, char c)
{
    n->text[strlen(n->text)] = c;
}

static void on_a(void *arg)
{
    write_down(arg, 'a');
}

static void on_b(void *arg)
{
    write_down(arg, 'b');
}

static void on_c_stops(void *arg)
{
    struct note *n = arg;
    write_down(n, 'c');
    loop_stop(n->l);
}

START_TEST(test_deferred_in_order)
{
    struct loop *l = make_loop();
    struct note n = {.l = l};
    loop_defer(l, on_a, &n);
    loop_defer(l, on_b, &n);
    loop_defer(l, on_c_stops, &n);
    ck_assert_str_eq(n.text, "");
    run(l);
    ck_assert_str_eq(n.text, "abc");
    loop_free(l);
}
END_TEST

static void on_chain(void *arg)
{
    struct note *n = arg;
    if (--n->left > 0)
        loop_defer(n->l, on_chain, n);
    else
        loop_stop(n->l);
}

START_TEST(test_deferred_chain_does_not_starve_timers)
{
    struct loop *l = make_loop();
    struct note n = {.l = l, .left = INT32_MAX};
    loop_timer_init(&n.timer, l, on_stop, l);
    loop_timer_arm(&n.timer, 5 * NS_PER_MS);
    uint64_t turn = loop_turn(l);
    loop_defer(l, on_chain, &n);
    run(l); /* ends by the timer */
    ck_assert_int_lt(n.left, INT32_MAX);
    ck_assert_uint_gt(loop_turn(l), turn + 1);
    n.left = 1;
    loop_timer_fini(&n.timer);
    loop_free(l);
}
END_TEST

/* A connection that is always ready, as all of them are under load: what was deferred runs all the
 * same, between two of its callbacks, also when deferred functions defer. */
static void on_always_ready(int fd, short what, void *arg)
{
    struct note *n = arg;
    (void)fd, (void)what;
    if (++n->left > 1000)
        loop_stop(n->l); /* starved */
}

static void on_deferred_again(void *arg)
{
    struct note *n = arg;
    write_down(n, 'd');
    loop_defer(n->l, on_c_stops, n);
}

START_TEST(test_load_does_not_starve_what_was_deferred)
{
    struct loop *l = make_loop();
    struct note n = {.l = l};
    int p[2];
    ck_assert_int_eq(pipe(p), 0);
    ck_assert_int_eq(write(p[1], "x", 1), 1);
    struct event *ev = loop_watch(l, p[0], EV_READ | EV_PERSIST, on_always_ready, &n);
    ck_assert_int_eq(event_add(ev, NULL), 0);
    loop_defer(l, on_deferred_again, &n);
    run(l);
    ck_assert_str_eq(n.text, "dc");
    ck_assert_int_le(n.left, 3);
    event_free(ev);
    loop_free(l);
    close(p[0]);
    close(p[1]);
}
END_TEST

START_TEST(test_free_runs_what_was_deferred)
{
    struct loop *l = make_loop();
    struct note n = {.l = l, .left = 3};
    loop_defer(l, on_a, &n);
    loop_defer(l, on_chain, &n);
    loop_free(l);
    ck_assert_str_eq(n.text, "a");
    ck_assert_int_eq(n.left, 0);
}
END_TEST

START_TEST(test_timer_never_early)
{
    struct loop *l = make_loop();
    struct loop_timer t;
    loop_timer_init(&t, l, on_stop, l);
    ck_assert(!loop_timer_armed(&t));
    for (int64_t delay = 0; delay < 5 * NS_PER_MS; delay += 700001) {
        loop_tick(l);
        int64_t start = loop_now_ns(l);
        loop_timer_arm(&t, delay);
        ck_assert(loop_timer_armed(&t));
        run(l);
        ck_assert(!loop_timer_armed(&t));
        ck_assert_int_ge(loop_now_ns(l) - start, delay);
    }
    loop_timer_fini(&t);
    loop_timer_fini(&t); /* twice is harmless */
    loop_free(l);
}
END_TEST

START_TEST(test_timer_rearm_and_disarm)
{
    struct loop *l = make_loop();
    struct note n = {.l = l};
    struct loop_timer a;
    struct loop_timer b;
    loop_timer_init(&a, l, on_a, &n);
    loop_timer_init(&b, l, on_b, &n);
    loop_timer_arm(&a, 1 * NS_PER_MS);
    loop_timer_arm(&a, 10 * NS_PER_S); /* replaces */
    loop_timer_arm(&b, 1 * NS_PER_MS);
    loop_timer_disarm(&b);
    settle(l);
    ck_assert_str_eq(n.text, "");
    loop_timer_arm(&a, 0);
    settle(l);
    ck_assert_str_eq(n.text, "a");
    loop_timer_fini(&a);
    loop_timer_fini(&b);
    loop_free(l);
}
END_TEST

static void on_fini_self(void *arg)
{
    struct note *n = arg;
    loop_timer_fini(&n->timer);
    loop_stop(n->l);
}

START_TEST(test_timer_may_end_itself)
{
    struct loop *l = make_loop();
    struct note n = {.l = l};
    loop_timer_init(&n.timer, l, on_fini_self, &n);
    loop_timer_arm(&n.timer, 0);
    run(l);
    ck_assert_ptr_null(n.timer.ev);
    loop_free(l);
}
END_TEST

static void on_sig(void *arg, int signo)
{
    struct note *n = arg;
    n->left = signo;
    loop_stop(n->l);
}

START_TEST(test_signal)
{
    struct loop *l = make_loop();
    struct note n = {.l = l};
    loop_on_signal(l, SIGUSR1, on_sig, &n);
    raise(SIGUSR1);
    ck_assert_int_eq(n.left, 0);
    run(l);
    ck_assert_int_eq(n.left, SIGUSR1);
    loop_free(l);
}
END_TEST

/* What a forked child does to its copy must not reach the parent's loop. */
START_TEST(test_child_leaves_the_parents_loop_alone)
{
    struct loop *l = make_loop();
    int fd[2];
    tcp_pair(fd);
    struct owner a = {.stop = "R"};
    owner_start(&a, l, fd[0], NULL);
    settle(l);
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = loop_after_fork(l);
        owner_end(&a);
        loop_free(l);
        _exit(ok ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    send_all(fd[1], "x", 1);
    run(l);
    ck_assert_str_eq(a.got, "x");
    owner_end(&a);
    close(fd[1]);
    loop_free(l);
}
END_TEST

static TCase *tcase_loop(void)
{
    TCase *tc = tcase_create("loop");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_load_does_not_starve_what_was_deferred);
    tcase_add_test(tc, test_deferred_in_order);
    tcase_add_test(tc, test_deferred_chain_does_not_starve_timers);
    tcase_add_test(tc, test_free_runs_what_was_deferred);
    tcase_add_test(tc, test_timer_never_early);
    tcase_add_test(tc, test_timer_rearm_and_disarm);
    tcase_add_test(tc, test_timer_may_end_itself);
    tcase_add_test(tc, test_signal);
    tcase_add_test(tc, test_child_leaves_the_parents_loop_alone);
    return tc;
}

UNIT_MAIN("loop", tcase_loop)
