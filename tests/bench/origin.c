/* A TLS origin that costs as little as possible: a thread a connection, one fixed small answer a
 * request.
 *
 *   origin CERT_AND_KEY.pem        prints its port, serves until killed
 *
 * Requests are heads with a Content-Length, as loadgen sends them. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static SSL_CTX *context;

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
                             "x-amzn-RequestId: BENCH00000000000000\r\nContent-Length: 2\r\n\r\n{}";

/* Bytes of the whole request at the start of buf, 0 while it is incomplete. */
static size_t request_bytes(const char *buf, size_t n)
{
    const char *end = memmem(buf, n, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - buf) + 4, body = 0;
    const char *length = memmem(buf, head, "Content-Length: ", 16);
    for (const char *p = length ? length + 16 : end; *p >= '0' && *p <= '9'; p++)
        body = body * 10 + (size_t)(*p - '0');
    return head + body <= n ? head + body : 0;
}

static void *serve(void *arg)
{
    int fd = (int)(long)arg, one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    SSL *ssl = SSL_new(context);
    char buf[65536];
    size_t n = 0;
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
        for (;;) {
            int got = SSL_read(ssl, buf + n, (int)(sizeof buf - n));
            if (got <= 0)
                break;
            n += (size_t)got;
            for (size_t used; (used = request_bytes(buf, n)) > 0; n -= used) {
                memmove(buf, buf + used, n - used);
                if (SSL_write(ssl, answer, sizeof answer - 1) <= 0)
                    goto out;
            }
        }
    }
out:
    SSL_free(ssl);
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, argv[1]) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, argv[1], SSL_FILETYPE_PEM) != 1) {
        fprintf(stderr, "origin: cannot use %s\n", argv[1]);
        return 1;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        int client = accept(fd, NULL, NULL);
        pthread_t thread;
        if (client >= 0 && pthread_create(&thread, NULL, serve, (void *)(long)client) == 0)
            pthread_detach(thread);
    }
}
