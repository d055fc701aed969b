/* A name server on loopback with a few names of its own:
 *   good.test A 127.0.0.1 · six.test AAAA ::1 · both.test both · many.test 20 addresses · long.test
 * TTL 1 day · zero.test TTL 0 · mixed.test A 10.0.0.1 and A 127.0.0.1 · blank.test exists, without
 * addresses · broken.test SERVFAIL · silent.test and *.silent.test never answer · all else NXDOMAIN
 */
#ifndef RETRYD_TESTS_DNS_STUB_H
#define RETRYD_TESTS_DNS_STUB_H

#include "io/net/dns.h"
#include "net_test.h"
#include <event2/event.h>

struct dns_stub {
    struct loop *loop;
    int fd;
    struct event *ev;
    char server[32]; /* for dns_use_servers */
    char last[256];
    unsigned asked; /* questions of type A */
};

static unsigned char *put16(unsigned char *p, unsigned v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
    return p + 2;
}

/* One record: the name by reference to the question, class IN. */
static unsigned char *put_record(unsigned char *p, unsigned type, unsigned ttl, const void *data,
                                 unsigned n)
{
    p = put16(p, 0xc00c);
    p = put16(p, type);
    p = put16(p, 1);
    p = put16(p, ttl >> 16);
    p = put16(p, ttl & 0xffff);
    p = put16(p, n);
    memcpy(p, data, n);
    return p + n;
}

static unsigned add_answers(unsigned char **p, const char *name, unsigned type)
{
    const unsigned char six[16] = {[15] = 1};
    unsigned ttl = strcmp(name, "long.test") == 0 ? 86400 : strcmp(name, "zero.test") == 0 ? 0 : 30;
    unsigned n = 0;
    if (type == 28 && (strcmp(name, "six.test") == 0 || strcmp(name, "both.test") == 0)) {
        *p = put_record(*p, 28, ttl, six, 16);
        return 1;
    }
    if (type != 1 || strcmp(name, "six.test") == 0 || strcmp(name, "blank.test") == 0)
        return 0;
    unsigned count = strcmp(name, "many.test") == 0 ? 20 : 1;
    if (strcmp(name, "mixed.test") == 0) {
        *p = put_record(*p, 1, ttl, "\x0a\0\0\1", 4);
        n++;
    }
    for (unsigned i = 1; i <= count; i++, n++) {
        unsigned char four[4] = {127, 0, 0, (unsigned char)i};
        *p = put_record(*p, 1, ttl, four, 4);
    }
    return n;
}

static bool known_name(const char *name)
{
    static const char *const names[] = {"good.test", "six.test",  "both.test",  "many.test",
                                        "long.test", "zero.test", "mixed.test", "blank.test"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_silent(const char *name)
{
    size_t n = strlen(name);
    return n >= 11 && strcmp(name + n - 11, "silent.test") == 0;
}

static void on_question(int fd, short what, void *arg)
{
    (void)what;
    struct dns_stub *s = arg;
    unsigned char buf[4096];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t got = recvfrom(fd, buf, 512, 0, (struct sockaddr *)&from, &len);
    if (got < 17)
        return;
    char name[256] = "";
    size_t at = 12;
    while (buf[at] != 0 && at + buf[at] < (size_t)got) {
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%.*s", name[0] ? "." : "",
                 (int)buf[at], (char *)buf + at + 1);
        at += 1u + buf[at];
    }
    unsigned type = (unsigned)buf[at + 1] << 8 | buf[at + 2];
    unsigned char *end = buf + at + 5;
    snprintf(s->last, sizeof s->last, "%s", name);
    s->asked += type == 1;
    if (is_silent(name))
        return;
    unsigned rcode = strcmp(name, "broken.test") == 0 ? 2 : known_name(name) ? 0 : 3;
    unsigned answers = rcode == 0 ? add_answers(&end, name, type) : 0;
    put16(buf + 2, 0x8180 | rcode);
    put16(buf + 6, answers);
    put16(buf + 8, 0);
    put16(buf + 10, 0); /* the EDNS record of the question is cut off */
    sendto(fd, buf, (size_t)(end - buf), 0, (struct sockaddr *)&from, len);
}

static UNUSED void dns_stub_start(struct dns_stub *s, struct loop *l)
{
    struct sockaddr_in sa = loopback(0);
    socklen_t len = sizeof sa;
    *s = (struct dns_stub){.loop = l};
    s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&sa, &len), 0);
    snprintf(s->server, sizeof s->server, "127.0.0.1:%u", ntohs(sa.sin_port));
    s->ev = loop_watch(l, s->fd, EV_READ | EV_PERSIST, on_question, s);
    ck_assert_int_eq(event_add(s->ev, NULL), 0);
}

static UNUSED void dns_stub_end(struct dns_stub *s)
{
    event_free(s->ev);
    close(s->fd);
}

#endif
