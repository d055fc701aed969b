/* Lookups against a name server of our own: answers, cache, sharing, deadlines, cancelling. */
#include "dns_stub.h"
#include "io/net/dnscache.h"

struct asker {
    struct loop *l;
    struct dns_query *q;
    struct dns_answer a;
    int n; /* callbacks */
    int *left;
};

static void on_answer(void *arg, const struct dns_answer *a)
{
    struct asker *k = arg;
    k->a = *a;
    k->n++;
    ck_assert((a->n == 0) == (a->problem != NULL));
    if (--*k->left == 0)
        loop_stop(k->l);
}

struct fixture {
    struct loop *l;
    struct dns *d;
    struct dns_stub stub;
    int left;
};

static void start(struct fixture *f, int64_t timeout_ns)
{
    struct err err;
    memset(f, 0, sizeof *f);
    f->l = make_loop();
    dns_stub_start(&f->stub, f->l);
    f->d = dns_new(f->l, timeout_ns, &err);
    ck_assert_ptr_nonnull(f->d);
    ck_assert(dns_use_servers(f->d, f->stub.server));
}

static void finish(struct fixture *f)
{
    dns_free(f->d);
    dns_stub_end(&f->stub);
    loop_free(f->l);
}

static void ask(struct fixture *f, struct asker *k, const char *name)
{
    *k = (struct asker){.l = f->l, .left = &f->left};
    f->left++;
    k->q = dns_lookup(f->d, name, on_answer, k);
    ck_assert_ptr_nonnull(k->q);
    ck_assert_int_eq(k->n, 0);
}

static void ask_and_wait(struct fixture *f, struct asker *k, const char *name)
{
    ask(f, k, name);
    run(f->l);
    ck_assert_int_eq(k->n, 1);
}

static bool is_v4(const struct sockaddr_storage *sa, const char *text)
{
    char buf[64] = "";
    inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, buf, sizeof buf);
    return sa->ss_family == AF_INET && strcmp(buf, text) == 0;
}

START_TEST(test_addresses)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "good.test");
    ck_assert_uint_eq(k.a.n, 1);
    ck_assert(is_v4(&k.a.addr[0], "127.0.0.1"));
    ck_assert_uint_eq(((struct sockaddr_in *)&k.a.addr[0])->sin_port, 0);
    ask_and_wait(&f, &k, "six.test");
    ck_assert_uint_eq(k.a.n, 1);
    ck_assert_int_eq(k.a.addr[0].ss_family, AF_INET6);
    ask_and_wait(&f, &k, "both.test");
    ck_assert_uint_eq(k.a.n, 2);
    ask_and_wait(&f, &k, "many.test");
    ck_assert_uint_eq(k.a.n, DNS_MAX_ADDRESSES);
    finish(&f);
}
END_TEST

START_TEST(test_failures)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "missing.test");
    ck_assert_str_eq(k.a.problem, "no such name");
    ask_and_wait(&f, &k, "blank.test");
    ck_assert_str_eq(k.a.problem, "the name has no address");
    ask_and_wait(&f, &k, "broken.test");
    ck_assert_uint_eq(k.a.n, 0);
    finish(&f);
}
END_TEST

START_TEST(test_hosts_file)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "localhost");
    ck_assert_uint_ge(k.a.n, 1);
    ck_assert_uint_eq(f.stub.asked, 0);
    finish(&f);
}
END_TEST

START_TEST(test_literals_and_bad_names_are_not_asked)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "192.0.2.7");
    ck_assert_uint_eq(k.a.n, 1);
    ck_assert(is_v4(&k.a.addr[0], "192.0.2.7"));
    ask_and_wait(&f, &k, "2001:db8::1");
    ck_assert_uint_eq(k.a.n, 1);
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[254] = '\0';
    const char *const bad[] = {"",      ".",           "127.1",   "2130706433", "0x7f.1",
                               "a.0x7", "0x7f000001.", "a.b.123", "1.2.3.4.",   longest};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask_and_wait(&f, &k, bad[i]);
        ck_assert_str_eq(k.a.problem, "not a host name");
    }
    ck_assert_uint_eq(f.stub.asked, 0);
    finish(&f);
}
END_TEST

/* I6: cache. */
START_TEST(test_cache)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "good.test");
    ask_and_wait(&f, &k, "good.test");
    ck_assert_uint_eq(k.a.n, 1);
    ck_assert_uint_eq(f.stub.asked, 1);
    ask_and_wait(&f, &k, "missing.test");
    unsigned asked = f.stub.asked; /* search domains may have been tried as well */
    ask_and_wait(&f, &k, "missing.test");
    ck_assert_str_eq(k.a.problem, "no such name");
    ck_assert_uint_eq(f.stub.asked, asked);
    ask_and_wait(&f, &k, "broken.test"); /* a failure is not an answer */
    asked = f.stub.asked;
    ask_and_wait(&f, &k, "broken.test");
    ck_assert_uint_gt(f.stub.asked, asked);
    finish(&f);
}
END_TEST

START_TEST(test_ttl_of_zero_is_a_second)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "zero.test");
    ask_and_wait(&f, &k, "zero.test");
    ck_assert_uint_eq(f.stub.asked, 1);
    run_for(f.l, 1100 * NS_PER_MS);
    ask_and_wait(&f, &k, "zero.test");
    ck_assert_uint_eq(f.stub.asked, 2);
    finish(&f);
}
END_TEST

START_TEST(test_same_name_is_asked_once)
{
    struct fixture f;
    struct asker k[5];
    start(&f, 5 * NS_PER_S);
    for (int i = 0; i < 5; i++)
        ask(&f, &k[i], "good.test");
    dns_cancel(k[2].q);
    f.left--;
    run(f.l);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(k[i].n, i != 2);
    ck_assert_uint_eq(f.stub.asked, 1);
    finish(&f);
}
END_TEST

/* I6: deadline and a live zone beside a dead one. */
START_TEST(test_deadline_and_a_live_zone_beside_a_dead_one)
{
    struct fixture f;
    static struct asker dead[300];
    struct asker good;
    char name[64];
    start(&f, 300 * NS_PER_MS);
    loop_tick(f.l);
    int64_t began = loop_now_ns(f.l);
    for (int i = 0; i < 300; i++) { /* more than may be asked at a time */
        snprintf(name, sizeof name, "n%d.silent.test", i);
        ask(&f, &dead[i], name);
    }
    run(f.l);
    ck_assert_int_ge(loop_now_ns(f.l) - began, 300 * NS_PER_MS);
    ck_assert_int_lt(loop_now_ns(f.l) - began, 2 * NS_PER_S);
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(dead[i].n, 1);
        ck_assert_uint_eq(dead[i].a.n, 0);
    }
    ask_and_wait(&f, &good, "good.test"); /* the dead ones hold no place */
    ck_assert_uint_eq(good.a.n, 1);
    finish(&f);
}
END_TEST

/* I6: queue is bounded. */
/* I6: a zone whose servers are silent takes half of the places; a lookup elsewhere is answered
 * while all of those are taken and many more wait. */
START_TEST(test_a_dead_zone_leaves_room_at_once)
{
    enum { DEAD = 1000 };
    struct fixture f;
    struct asker *dead = xcalloc(DEAD, sizeof *dead), good, other;
    char name[64];
    start(&f, 5 * NS_PER_S);
    for (int i = 0; i < DEAD; i++) {
        snprintf(name, sizeof name, "n%d.silent.test", i);
        ask(&f, &dead[i], name);
    }
    loop_tick(f.l);
    int64_t began = loop_now_ns(f.l);
    f.left = 0;
    ask_and_wait(&f, &good, "good.test");
    ask_and_wait(&f, &other, "missing.example");
    loop_tick(f.l);
    ck_assert_uint_eq(good.a.n, 1);
    ck_assert_str_eq(other.a.problem, "no such name");
    ck_assert_int_lt(loop_now_ns(f.l) - began, 3 * NS_PER_S);
    for (int i = 0; i < DEAD; i++)
        ck_assert_int_eq(dead[i].n, 0);
    finish(&f);
    free(dead);
}
END_TEST

/* I6: what is remembered, and for how long. */
START_TEST(test_times_to_live)
{
    static const struct {
        const char *name;
        int ttl_s;
    } table[] = {{"good.test", 30},   {"long.test", 60}, {"zero.test", 1},
                 {"missing.test", 5}, {"blank.test", 5}, {"broken.test", 0}};
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ask_and_wait(&f, &k, table[i].name);
        ck_assert_int_eq(k.a.ttl_s, table[i].ttl_s);
    }
    finish(&f);
}
END_TEST

static struct sockaddr_in v4(const char *text)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(443)};
    ck_assert_int_eq(inet_pton(AF_INET, text, &sa.sin_addr), 1);
    return sa;
}

START_TEST(test_the_winner_stands_in_front)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k, "many.test");
    ck_assert(is_v4(&k.a.addr[0], "127.0.0.1") && is_v4(&k.a.addr[2], "127.0.0.3"));
    struct sockaddr_in third = v4("127.0.0.3"), nobody = v4("192.0.2.1");
    dns_prefer(f.d, "many.test", (struct sockaddr *)&third);
    dns_prefer(f.d, "many.test", (struct sockaddr *)&nobody);
    dns_prefer(f.d, "unknown.test", (struct sockaddr *)&third);
    ask_and_wait(&f, &k, "many.test");
    ck_assert_uint_eq(k.a.n, DNS_MAX_ADDRESSES);
    ck_assert(is_v4(&k.a.addr[0], "127.0.0.3") && is_v4(&k.a.addr[1], "127.0.0.1"));
    ck_assert(is_v4(&k.a.addr[2], "127.0.0.2") && is_v4(&k.a.addr[3], "127.0.0.4"));
    finish(&f);
}
END_TEST

START_TEST(test_queue_is_bounded)
{
    struct fixture f;
    struct asker *k = xcalloc(4200, sizeof *k);
    char name[64];
    start(&f, 100 * NS_PER_MS);
    for (int i = 0; i < 4200; i++) {
        snprintf(name, sizeof name, "n%d.silent.test", i);
        ask(&f, &k[i], name);
    }
    struct asker good; /* the other half is for others */
    ask(&f, &good, "good.test");
    run(f.l);
    ck_assert_uint_eq(good.a.n, 1);
    ck_assert_str_eq(k[4199].a.problem, "too many lookups under way");
    ck_assert_uint_eq(k[0].a.n, 0);
    finish(&f);
    free(k);
}
END_TEST

START_TEST(test_cancel)
{
    struct fixture f;
    struct asker k;
    start(&f, 5 * NS_PER_S);
    ask(&f, &k, "good.test"); /* on its way */
    dns_cancel(k.q);
    settle(f.l);
    ck_assert_int_eq(k.n, 0);
    ask(&f, &k, "good.test"); /* known, to be told at the end of the turn */
    dns_cancel(k.q);
    settle(f.l);
    ck_assert_int_eq(k.n, 0);
    ck_assert_uint_eq(f.stub.asked, 1);
    finish(&f);
}
END_TEST

START_TEST(test_free_with_queries_under_way)
{
    struct fixture f;
    struct asker k[3];
    start(&f, 5 * NS_PER_S);
    ask_and_wait(&f, &k[0], "good.test");
    ask(&f, &k[0], "good.test");
    ask(&f, &k[1], "silent.test");
    ask(&f, &k[2], "missing.test");
    dns_free(f.d);
    f.d = NULL;
    settle(f.l);
    ck_assert_int_eq(k[0].n + k[1].n + k[2].n, 0);
    finish(&f);
}
END_TEST

static struct dns_result *cached(struct dnscache *c, const char *name, int64_t now)
{
    return dnscache_get(c, name, now);
}

START_TEST(test_cache_bound_and_order)
{
    struct dnscache *c = dnscache_new((struct hash_key){1, 2}, 3);
    struct dns_result *r[4];
    const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        r[i] = dns_result_new();
    for (int i = 0; i < 3; i++)
        dnscache_put(c, names[i], r[i], 100);
    ck_assert_ptr_eq(cached(c, "a", 0), r[0]); /* used: now b is the oldest */
    dnscache_put(c, "d", r[3], 100);
    ck_assert_ptr_null(cached(c, "b", 0));
    ck_assert_ptr_eq(cached(c, "a", 99), r[0]);
    ck_assert_ptr_null(cached(c, "a", 100));
    dnscache_put(c, "c", r[1], 200); /* replaces */
    ck_assert_ptr_eq(cached(c, "c", 150), r[1]);
    dnscache_free(c);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(r[i]->refs, 1);
        dns_result_unref(r[i]);
    }
}
END_TEST

static TCase *tcase_dns(void)
{
    TCase *tc = tcase_create("dns");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, test_addresses);
    tcase_add_test(tc, test_failures);
    tcase_add_test(tc, test_hosts_file);
    tcase_add_test(tc, test_literals_and_bad_names_are_not_asked);
    tcase_add_test(tc, test_cache);
    tcase_add_test(tc, test_ttl_of_zero_is_a_second);
    tcase_add_test(tc, test_same_name_is_asked_once);
    tcase_add_test(tc, test_deadline_and_a_live_zone_beside_a_dead_one);
    tcase_add_test(tc, test_a_dead_zone_leaves_room_at_once);
    tcase_add_test(tc, test_times_to_live);
    tcase_add_test(tc, test_the_winner_stands_in_front);
    tcase_add_test(tc, test_queue_is_bounded);
    tcase_add_test(tc, test_cancel);
    tcase_add_test(tc, test_free_with_queries_under_way);
    tcase_add_test(tc, test_cache_bound_and_order);
    return tc;
}

UNIT_MAIN("dns", tcase_dns)
