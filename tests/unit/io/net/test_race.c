/* Happy eyeballs (RFC 8305): the order of addresses, the pace of attempts, who wins, what is told.
 * Times have a floor that the rules give and a ceiling that a busy machine keeps. */
#include "io/net/addrtext.h"
#include "io/net/race.h"
#include "net_test.h"
#include <dirent.h>

enum { PLENTY_MS = 5000 };

struct fixture {
    struct loop *l;
    struct addr_range allow[2];
    struct addr_policy policy;
    struct race_rules rules;
    struct race race;
    uint16_t port; /* somebody listens on 127.0.0.1 */
    int listening, silent;
    int fill[4];
    uint16_t silent_port;
    struct sockaddr_storage v[DNS_MAX_ADDRESSES];
    unsigned n;
    /* outcome */
    int told, fd;
    enum net_fail failure;
    char detail[512], peer[ADDRTEXT_BYTES];
    int64_t took_ms;
};

static void on_race(void *arg, int fd, const struct sockaddr *peer, enum net_fail failure,
                    const char *detail)
{
    struct fixture *f = arg;
    f->told++;
    f->fd = fd;
    f->failure = failure;
    snprintf(f->detail, sizeof f->detail, "%s", detail);
    ck_assert((fd >= 0) == (failure == NET_OK) && (fd >= 0) == (peer != NULL));
    if (peer)
        addrtext(peer, f->peer);
    loop_stop(f->l);
}

/* A listener whose queue is full drops SYNs: a black hole on loopback. */
static void dig_hole(struct fixture *f)
{
    f->silent = listen_on_loopback(&f->silent_port);
    ck_assert_int_eq(listen(f->silent, 0), 0);
    struct sockaddr_in sa = loopback(f->silent_port);
    for (size_t i = 0; i < 4; i++) {
        f->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(f->fill[i], (struct sockaddr *)&sa, sizeof sa);
    }
    settle(f->l);
}

static void start(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->l = make_loop();
    f->listening = listen_on_loopback(&f->port);
    dig_hole(f);
    /* 127.0.0.0/24 and ::1 */
    memcpy(f->allow[0].addr, (unsigned char[16]){[10] = 0xff, 0xff, 127, 0, 0, 0}, 16);
    f->allow[0].prefix = 120;
    memcpy(f->allow[1].addr, (unsigned char[16]){[15] = 1}, 16);
    f->allow[1].prefix = 128;
    f->policy = (struct addr_policy){.allow = f->allow, .n_allow = 2};
    f->rules = (struct race_rules){.loop = f->l, .policy = &f->policy, .timeout_ns = 10 * NS_PER_S};
    f->fd = -1;
}

static void finish(struct fixture *f)
{
    if (f->fd >= 0)
        close(f->fd);
    close(f->listening);
    close(f->silent);
    for (size_t i = 0; i < 4; i++)
        close(f->fill[i]);
    loop_free(f->l);
}

static void add(struct fixture *f, const char *address, uint16_t port)
{
    struct sockaddr_storage *sa = &f->v[f->n++];
    struct sockaddr_in *v4 = (struct sockaddr_in *)sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)sa;
    memset(sa, 0, sizeof *sa);
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, address, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    }
}

static void race(struct fixture *f)
{
    loop_tick(f->l);
    int64_t began = loop_now_ns(f->l);
    f->told = 0;
    race_init(&f->race, &f->rules, on_race, f);
    race_start(&f->race, f->v, f->n);
    ck_assert_int_eq(f->told, 0);
    run(f->l);
    ck_assert_int_eq(f->told, 1);
    loop_tick(f->l);
    f->took_ms = (loop_now_ns(f->l) - began) / NS_PER_MS;
    race_fini(&f->race);
    settle(f->l); /* nothing is told twice */
    ck_assert_int_eq(f->told, 1);
    f->n = 0;
}

static uint16_t nobody(void)
{
    uint16_t port;
    close(listen_on_loopback(&port));
    return port;
}

static void expect(struct fixture *f, enum net_fail kind, const char *text)
{
    ck_assert_int_eq(f->failure, kind);
    ck_assert_msg(strstr(f->detail, text) != NULL, "\"%s\" not in \"%s\"", text, f->detail);
}

START_TEST(families_take_turns)
{
    static const struct {
        const char *in, *out; /* 6 and 4, each with a number of its own */
    } table[] = {
        {"", ""},
        {"4a", "4a"},
        {"6a6b", "6a6b"},
        {"6a4a", "6a4a"},
        {"4a6a", "4a6a"}, /* the resolver's first family leads */
        {"6a6b6c4a4b", "6a4a6b4b6c"},
        {"6a4a4b4c", "6a4a4b4c"},
        {"4a4b4c4d6a6b", "4a6a4b6b4c4d"},
        {"6a6b6c6d6e6f6g6h4a4b4c4d4e4f4g4h", "6a4a6b4b6c4c6d4d6e4e6f4f6g4g6h4h"},
    };
    struct sockaddr_storage v[DNS_MAX_ADDRESSES];
    char got[64] = "";
    unsigned n = (unsigned)strlen(table[_i].in) / 2;
    for (unsigned i = 0; i < n; i++) {
        memset(&v[i], 0, sizeof v[i]);
        v[i].ss_family = table[_i].in[(size_t)2 * i] == '6' ? AF_INET6 : AF_INET;
        ((struct sockaddr_in *)&v[i])->sin_port = (in_port_t)table[_i].in[2 * i + 1];
    }
    race_interleave(v, n);
    for (unsigned i = 0; i < n; i++) {
        got[(size_t)2 * i] = v[i].ss_family == AF_INET6 ? '6' : '4';
        got[2 * i + 1] = (char)((struct sockaddr_in *)&v[i])->sin_port;
    }
    ck_assert_str_eq(got, table[_i].out);
}
END_TEST

START_TEST(the_next_begins_after_a_quarter_of_a_second)
{
    struct fixture f;
    start(&f);
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_ge(f.took_ms, 250);
    ck_assert_int_lt(f.took_ms, PLENTY_MS); /* and not after the connect timeout */
    char want[32];
    snprintf(want, sizeof want, "127.0.0.1:%u", f.port);
    ck_assert_str_eq(f.peer, want);
    close(f.fd);
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_ge(f.took_ms, 500);
    ck_assert_int_lt(f.took_ms, PLENTY_MS);
    finish(&f);
}
END_TEST

START_TEST(the_next_begins_at_once_after_a_failure)
{
    struct fixture f;
    start(&f);
    uint16_t unused = nobody();
    for (int i = 0; i < 14; i++) /* waiting for each would take 3.5 s */
        add(&f, i % 2 ? "127.0.0.1" : "::1", unused);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_lt(f.took_ms, 3000);
    finish(&f);
}
END_TEST

/* A first attempt that hangs does not hold up what follows a failure of the second. */
START_TEST(a_failure_beside_a_silent_one)
{
    struct fixture f;
    start(&f);
    add(&f, "127.0.0.1", f.silent_port);
    for (int i = 0; i < 12; i++)
        add(&f, "127.0.0.1", nobody());
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_ge(f.took_ms, 250);
    ck_assert_int_lt(f.took_ms, 2500);
    finish(&f);
}
END_TEST

static int open_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

START_TEST(the_losers_are_closed)
{
    struct fixture f;
    start(&f);
    int before = open_descriptors();
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(open_descriptors(), before + 1);
    close(f.fd);
    f.fd = -1;
    /* given up in the middle */
    f.n = 0;
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.silent_port);
    f.told = 0;
    race_init(&f.race, &f.rules, on_race, &f);
    race_start(&f.race, f.v, f.n);
    run_for(f.l, 300 * NS_PER_MS);
    ck_assert_int_gt(open_descriptors(), before);
    race_fini(&f.race);
    run_for(f.l, 300 * NS_PER_MS);
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_int_eq(f.told, 0);
    finish(&f);
}
END_TEST

START_TEST(nobody_answers)
{
    struct fixture f;
    start(&f);
    f.rules.timeout_ns = 400 * NS_PER_MS;
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.silent_port);
    race(&f);
    expect(&f, NET_CONNECT_TIMEOUT, "no connection in time (2 addresses)");
    ck_assert_int_ge(f.took_ms, 650); /* both at the same time, not one after the other */
    ck_assert_int_lt(f.took_ms, PLENTY_MS);
    /* A timeout below the pace: the next begins when the first is given up. */
    f.rules.timeout_ns = 50 * NS_PER_MS;
    add(&f, "127.0.0.1", f.silent_port);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_ge(f.took_ms, 50);
    finish(&f);
}
END_TEST

START_TEST(the_most_telling_failure_is_told)
{
    struct fixture f;
    start(&f);
    uint16_t unused = nobody();
    add(&f, "127.0.0.1", unused);
    add(&f, "169.254.169.254", 80); /* a denial beside a real failure does not hide it */
    race(&f);
    expect(&f, NET_REFUSED, "127.0.0.1:");
    add(&f, "169.254.169.254", 80);
    add(&f, "240.0.0.1", 80);
    race(&f);
    expect(&f, NET_DENIED, "240.0.0.1:80: reserved (2 addresses)");
    add(&f, "169.254.169.254", 80);
    race(&f);
    ck_assert_str_eq(f.detail, "169.254.169.254:80: metadata");
    finish(&f);
}
END_TEST

/* I3: an address that the rules forbid sees no connection, also among good ones. */
START_TEST(a_forbidden_address_is_never_dialled)
{
    struct fixture f;
    uint16_t canary_port;
    start(&f);
    f.policy.n_allow = 1;
    f.allow[0].prefix = 128;
    f.allow[0].addr[15] = 1; /* 127.0.0.1 only */
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    socklen_t len = sizeof sa;
    int canary = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(canary, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(canary, 4), 0);
    ck_assert_int_eq(getsockname(canary, (struct sockaddr *)&sa, &len), 0);
    canary_port = ntohs(sa.sin_port);
    add(&f, "127.0.0.2", canary_port);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    ck_assert_int_eq(accept(canary, NULL, NULL), -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(canary);
    finish(&f);
}
END_TEST

START_TEST(source_address_by_family)
{
    struct fixture f;
    struct race_source source = {.v4 = {.ss_family = AF_INET}};
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    start(&f);
    inet_pton(AF_INET, "127.0.0.9", &((struct sockaddr_in *)&source.v4)->sin_addr);
    f.rules.source = &source;
    add(&f, "127.0.0.1", f.port);
    race(&f);
    ck_assert_int_eq(f.failure, NET_OK);
    int got = accept(f.listening, (struct sockaddr *)&from, &len);
    ck_assert_int_ge(got, 0);
    ck_assert_uint_eq(ntohl(from.sin_addr.s_addr), 0x7f000009);
    close(got);
    close(f.fd);
    f.fd = -1;
    /* One that this machine does not have. */
    inet_pton(AF_INET, "192.0.2.1", &((struct sockaddr_in *)&source.v4)->sin_addr);
    add(&f, "127.0.0.1", f.port);
    race(&f);
    expect(&f, NET_LOCAL, strerror(EADDRNOTAVAIL));
    /* Without IPv6 that error is no fault of ours: nothing that would end the retries. */
    inet_pton(AF_INET6, "2001:db8::1", &((struct sockaddr_in6 *)&source.v6)->sin6_addr);
    source.v6.ss_family = AF_INET6;
    add(&f, "::1", f.port);
    add(&f, "240.0.0.1", 80);
    race(&f);
    expect(&f, NET_REFUSED, strerror(EADDRNOTAVAIL));
    source.v6.ss_family = AF_UNSPEC;
    /* It says nothing about the other family. */
    add(&f, "::1", nobody());
    race(&f);
    ck_assert_int_eq(f.failure, NET_REFUSED);
    finish(&f);
}
END_TEST

static TCase *tcase_race(void)
{
    TCase *tc = tcase_create("race");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, families_take_turns, 0, 9);
    tcase_add_test(tc, the_next_begins_after_a_quarter_of_a_second);
    tcase_add_test(tc, the_next_begins_at_once_after_a_failure);
    tcase_add_test(tc, a_failure_beside_a_silent_one);
    tcase_add_test(tc, the_losers_are_closed);
    tcase_add_test(tc, nobody_answers);
    tcase_add_test(tc, the_most_telling_failure_is_told);
    tcase_add_test(tc, a_forbidden_address_is_never_dialled);
    tcase_add_test(tc, source_address_by_family);
    return tc;
}

UNIT_MAIN("race", tcase_race)
