/* Small TLS POSTs on keep-alive connections, as fast as they go.
 *
 *   loadgen ADDRESS_PORT PROXY_PORT HOST CA.pem CONNECTIONS SECONDS
 *
 * PROXY_PORT 0: straight to 127.0.0.1:ADDRESS_PORT; else through CONNECT HOST:443 at
 * 127.0.0.1:PROXY_PORT. Prints: requests, seconds, median and 99th percentile of the latency in
 * microseconds, failures. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 200000 }; /* of one microsecond; the last holds the rest */

static struct {
    int port, proxy_port, seconds;
    const char *host;
    SSL_CTX *context;
    double deadline;
} task;

struct worker {
    pthread_t thread;
    unsigned long requests, failures;
    unsigned *latency; /* BUCKETS counts */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_tcp(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    int port = task.proxy_port ? task.proxy_port : task.port;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        return -1;
    if (!task.proxy_port)
        return fd;
    char buf[1024];
    int n = snprintf(buf, sizeof buf, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", task.host,
                     task.host);
    if (write(fd, buf, (size_t)n) != n)
        return -1;
    size_t got = 0;
    while (got < sizeof buf - 1) {
        ssize_t r = read(fd, buf + got, 1);
        if (r <= 0)
            return -1;
        got++;
        if (got >= 4 && memcmp(buf + got - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    return memcmp(buf, "HTTP/1.1 200", 12) == 0 ? fd : -1;
}

/* One answer read to its end; true if it was a 200. */
static bool read_answer(SSL *ssl)
{
    char buf[16384];
    size_t n = 0;
    for (;;) {
        int got = SSL_read(ssl, buf + n, (int)(sizeof buf - n));
        if (got <= 0)
            return false;
        n += (size_t)got;
        const char *end = memmem(buf, n, "\r\n\r\n", 4);
        if (!end)
            continue;
        const char *length = memmem(buf, n, "Content-Length: ", 16);
        size_t body = length ? (size_t)(length[16] - '0') : 0;
        if (n >= (size_t)(end - buf) + 4 + body)
            return memcmp(buf, "HTTP/1.1 200", 12) == 0;
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    char request[2048];
    int n = snprintf(
        request, sizeof request,
        "POST / HTTP/1.1\r\nHost: %s\r\nUser-Agent: loadgen\r\n"
        "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n"
        "X-Amz-Date: 20260101T000000Z\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/"
        "dynamodb/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
        "0123456789012345678901234567890123456789012345678901234567890123\r\n"
        "Content-Length: 58\r\n\r\n"
        "{\"TableName\": \"table\", \"Key\": {\"id\": {\"S\": \"0123456789\"}}}",
        task.host);
    int fd = open_tcp();
    SSL *ssl = SSL_new(task.context);
    SSL_set_tlsext_host_name(ssl, task.host);
    SSL_set1_host(ssl, task.host);
    if (fd < 0 || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1) {
        w->failures++;
        return NULL;
    }
    while (now() < task.deadline) {
        double began = now();
        if (SSL_write(ssl, request, n) != n || !read_answer(ssl)) {
            w->failures++;
            break;
        }
        double us = (now() - began) * 1e6;
        w->latency[us < BUCKETS - 1 ? (size_t)us : BUCKETS - 1]++;
        w->requests++;
    }
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static unsigned percentile(const unsigned *counts, unsigned long total, double share)
{
    unsigned long seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += counts[i];
        if ((double)seen >= share * (double)total)
            return i;
    }
    return BUCKETS;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    int connections = atoi(argv[5]);
    task.port = atoi(argv[1]);
    task.proxy_port = atoi(argv[2]);
    task.host = argv[3];
    task.seconds = atoi(argv[6]);
    task.context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(task.context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_load_verify_locations(task.context, argv[4], NULL) != 1)
        return 1;
    struct worker *workers = calloc((size_t)connections, sizeof *workers);
    double began = now();
    task.deadline = began + task.seconds;
    for (int i = 0; i < connections; i++) {
        workers[i].latency = calloc(BUCKETS, sizeof(unsigned));
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    unsigned long requests = 0, failures = 0;
    unsigned *latency = calloc(BUCKETS, sizeof(unsigned));
    for (int i = 0; i < connections; i++) {
        pthread_join(workers[i].thread, NULL);
        requests += workers[i].requests;
        failures += workers[i].failures;
        for (unsigned b = 0; b < BUCKETS; b++)
            latency[b] += workers[i].latency[b];
        free(workers[i].latency);
    }
    printf("%lu %.3f %u %u %lu\n", requests, now() - began, percentile(latency, requests, 0.5),
           percentile(latency, requests, 0.99), failures);
    free(latency);
    free(workers);
    SSL_CTX_free(task.context);
    return failures > 0;
}
