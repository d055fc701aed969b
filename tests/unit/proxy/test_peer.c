/* Peers: what they are called, who is the same, how many connections of one. */
#include "proxy/peer.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct peer at(const char *text, uint16_t port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct peer p;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        peer_named(&p, (struct sockaddr *)&v4);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
        peer_named(&p, (struct sockaddr *)&v6);
    }
    return p;
}

START_TEST(an_address_is_one_in_both_spellings)
{
    struct peer a = at("192.0.2.1", 1), b = at("::ffff:192.0.2.1", 2), c = at("192.0.2.2", 1);
    ck_assert(a.has_address && !a.has_user);
    ck_assert_mem_eq(a.address, b.address, 16);
    ck_assert_mem_ne(a.address, c.address, 16);
    ck_assert_str_eq(a.text, "192.0.2.1:1");
}
END_TEST

START_TEST(a_unix_socket_has_a_user)
{
    int sv[2];
    char text[32];
    struct peer p;
    const struct sockaddr none = {.sa_family = AF_UNIX};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    peer_of(&p, sv[0], &none);
    ck_assert(p.has_user && !p.has_address);
    ck_assert_uint_eq(p.user, getuid());
    snprintf(text, sizeof text, "uid=%u", getuid());
    ck_assert_str_eq(p.text, text);
    close(sv[0]);
    close(sv[1]);
}
END_TEST

START_TEST(each_peer_has_a_bound)
{
    struct peers t;
    struct peer_count *of_a[3], *of_b;
    struct peer a = at("192.0.2.1", 1), b = at("2001:db8::1", 1), user = {.has_user = true};
    bool ok;
    peers_init(&t, (struct hash_key){1, 2});
    for (unsigned i = 0; i < 3; i++) {
        of_a[i] = peers_enter(&t, &a, 3, &ok);
        ck_assert(ok);
    }
    ck_assert_ptr_eq(peers_enter(&t, &a, 3, &ok), of_a[0]);
    ck_assert(!ok);
    of_b = peers_enter(&t, &b, 3, &ok);
    ck_assert(ok);
    struct peer_count *of_user = peers_enter(&t, &user, 3, &ok);
    ck_assert(ok);
    ck_assert_ptr_ne(of_user, of_b);
    peers_leave(of_a[0]);
    ck_assert_ptr_eq(peers_enter(&t, &a, 3, &ok), of_a[0]);
    ck_assert(ok);
    for (unsigned i = 0; i < 3; i++)
        peers_leave(of_a[0]);
    peers_leave(of_b);
    for (size_t i = 0; i < PEERS_BUCKETS; i++)
        ck_assert(list_empty(&t.bucket[i]) || t.bucket[i].next == &of_user->link);
    peers_leave(of_user);
}
END_TEST

START_TEST(many_peers)
{
    enum { MANY = 20000 };
    static struct peer_count *c[MANY];
    struct peers t;
    bool ok;
    peers_init(&t, (struct hash_key){3, 4});
    for (unsigned i = 0; i < MANY; i++) {
        struct peer p = {.has_address = true};
        memcpy(p.address, &i, sizeof i);
        c[i] = peers_enter(&t, &p, 1, &ok);
        ck_assert(ok);
    }
    size_t longest = 0;
    for (size_t i = 0; i < PEERS_BUCKETS; i++) {
        size_t n = 0;
        for (struct list *l = t.bucket[i].next; l != &t.bucket[i]; l = l->next)
            n++;
        longest = n > longest ? n : longest;
    }
    ck_assert_uint_lt(longest, 60); /* about 20 each */
    for (unsigned i = 0; i < MANY; i++)
        peers_leave(c[i]);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("peer");
    tcase_add_test(tc, an_address_is_one_in_both_spellings);
    tcase_add_test(tc, a_unix_socket_has_a_user);
    tcase_add_test(tc, each_peer_has_a_bound);
    tcase_add_test(tc, many_peers);
    return tc;
}

UNIT_MAIN("peer", cases)
