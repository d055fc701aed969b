/* A peer that left, one that half-closed, one that is there: told apart on real loopback sockets.
 */
#include "io/net/peerprobe.h"
#include "unit.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int server, client;
};

static struct pair connect_pair(void)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sin;
    int ls = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(ls, (struct sockaddr *)&sin, n), 0);
    ck_assert_int_eq(listen(ls, 1), 0);
    ck_assert_int_eq(getsockname(ls, (struct sockaddr *)&sin, &n), 0);
    struct pair p;
    p.client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(p.client, (struct sockaddr *)&sin, n), 0);
    p.server = accept(ls, NULL, NULL);
    ck_assert_int_ge(p.server, 0);
    close(ls);
    return p;
}

START_TEST(tells_them_apart)
{
    struct pair p = connect_pair();
    ck_assert_int_eq(peerprobe(p.server), PEER_OPEN);
    ck_assert_int_eq(shutdown(p.client, SHUT_WR), 0);
    char c;
    ck_assert_int_eq(read(p.server, &c, 1), 0); /* the FIN has arrived */
    ck_assert_int_eq(peerprobe(p.server), PEER_OPEN);
    close(p.client);
    ck_assert_int_eq(peerprobe(p.server), PEER_GONE);
    close(p.server);
}
END_TEST

START_TEST(tells_them_apart_on_unix_sockets)
{
    int sv[2];
    char c;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    ck_assert_int_eq(peerprobe(sv[0]), PEER_OPEN);
    ck_assert_int_eq(shutdown(sv[1], SHUT_WR), 0);
    ck_assert_int_eq(read(sv[0], &c, 1), 0);
    ck_assert_int_eq(peerprobe(sv[0]), PEER_OPEN);
    close(sv[1]);
    ck_assert_int_eq(peerprobe(sv[0]), PEER_GONE);
    close(sv[0]);
}
END_TEST

START_TEST(says_unknown_for_others)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(peerprobe(fds[0]), PEER_UNKNOWN);
    close(fds[0]);
    close(fds[1]);
    ck_assert_int_eq(peerprobe(fds[0]), PEER_UNKNOWN);
}
END_TEST

START_TEST(says_whose_it_is)
{
    struct pair p = connect_pair();
    uid_t uid = (uid_t)-1;
    ck_assert(peerprobe_user(p.server, &uid));
    ck_assert_uint_eq(uid, getuid());
    close(p.client);
    ck_assert(!peerprobe_user(p.server, &uid)); /* nobody's any more */
    close(p.server);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("peerprobe");
    tcase_add_test(tc, tells_them_apart);
    tcase_add_test(tc, tells_them_apart_on_unix_sockets);
    tcase_add_test(tc, says_unknown_for_others);
    tcase_add_test(tc, says_whose_it_is);
    return tc;
}

UNIT_MAIN("peerprobe", cases)
