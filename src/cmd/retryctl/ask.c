/* HTTP over a unix socket, read to its end. The answer is from a program that we trust no more than
 * its socket, so it is bounded in size and in time. */
#include "cmd/retryctl/ask.h"
#include "core/http/h1_head.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_S = 15 };

static int dial(const char *path, struct err *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    size_t n = strlen(path);
    if (n >= sizeof sun.sun_path) {
        err_set(err, "%s: too long for a socket", path);
        return -1;
    }
    memcpy(sun.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
        connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0)
        return fd;
    err_set(err, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool read_all(int fd, struct strbuf *out, struct err *err)
{
    char piece[16384];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, "reading the answer: %s", strerror(errno));
        if (n == 0)
            return true;
        if (!strbuf_put(out, slice_of(piece, (size_t)n)))
            return err_set(err, "the answer is too long");
    }
}

static bool read_answer(const struct strbuf *answer, struct slice *body, unsigned *status,
                        struct err *err)
{
    struct h1_head head = {0};
    struct http_resp resp = {0};
    struct arena arena;
    arena_init(&arena);
    bool good = h1_parse_response(&head, answer->p, answer->n, &h1_response_limits, HTTP_GET,
                                  &arena, &resp) == PARSE_OK &&
                resp.framing == HTTP_BODY_LENGTH &&
                resp.content_length == answer->n - head.consumed;
    arena_fini(&arena);
    if (!good)
        return err_set(err, "no whole HTTP answer");
    *body = slice_of(answer->p + head.consumed, answer->n - head.consumed);
    *status = resp.status;
    return true;
}

bool ask(const char *socket_path, const char *method, const char *target, struct strbuf *answer,
         struct slice *body, unsigned *status, struct err *err)
{
    struct strbuf request;
    int fd = dial(socket_path, err);
    if (fd < 0)
        return false;
    strbuf_init(&request, 4096);
    strbuf_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, target);
    bool good =
        (!request.overflow && send(fd, request.p, request.n, MSG_NOSIGNAL) == (ssize_t)request.n) ||
        err_set(err, "%s: the request could not be sent", socket_path);
    strbuf_fini(&request);
    good = good && read_all(fd, answer, err) && read_answer(answer, body, status, err);
    close(fd);
    return good;
}
