/* The whole proxy in one process, between clients and an origin that do as the input says: each
 * byte is a step of one of them, of the network, of the clock, or a system call that shall fail
 * (faults.h). Connections are real (loopback, so that a reset is a reset), time is not:
 * clock_gettime() of this program answers for the loop and for libevent, and random numbers come
 * from the input's size. No TLS handshake succeeds.
 *
 * Invariants, checked at the end:
 *   - a request reaches the origin at most max_attempts times (a pooled connection that was stale
 * does not count);
 *   - the body of a request is what the client sent, and whole only if that was whole;
 *   - the body of an answer is of one answer of the origin, never of two;
 *   - an answer that looks complete to the client was complete at the origin, and is as long;
 *   - a drain comes to its end; afterwards no descriptor is left, nor memory (LeakSanitizer). */
#include "fake_peers.h"
#include "faults.h"

#include "../unit/core/config/lines.h"
#include "io/obs/log.h"
#include "io/shm/region.h"
#include "proxy/client.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { STEPS_MAX = 256 };

/* --- what the program must not get from outside --- */

static int64_t virtual_ns = 1000 * NS_PER_S;
static uint64_t random_state;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, ts);
    *ts = (struct timespec){virtual_ns / NS_PER_S, virtual_ns % NS_PER_S};
    return 0;
}

/* The linker puts it in the place of getrandom() in our own code. */
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
    (void)flags;
    unsigned char *out = p;
    for (size_t i = 0; i < n; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (unsigned char)(random_state >> 56);
    }
    return (ssize_t)n;
}

/* What TLS needs costs milliseconds to make, so one of each serves all inputs. The linker puts
 * these, too, in the place of the true ones. */
struct leafcache *__real_leafcache_new(struct ca *ca, size_t capacity, struct err *err);
struct leafcache *__wrap_leafcache_new(struct ca *ca, size_t capacity, struct err *err);
struct leafcache *__wrap_leafcache_new(struct ca *ca, size_t capacity, struct err *err)
{
    static struct leafcache *kept;
    if (kept == NULL)
        kept = __real_leafcache_new(ca, capacity, err);
    return kept;
}

struct tlsclient *__real_tlsclient_new(const struct tlsclient_spec *spec, struct err *err);
struct tlsclient *__wrap_tlsclient_new(const struct tlsclient_spec *spec, struct err *err);
struct tlsclient *__wrap_tlsclient_new(const struct tlsclient_spec *spec, struct err *err)
{
    static struct tlsclient *kept;
    if (kept == NULL)
        kept = __real_tlsclient_new(spec, err);
    return kept;
}

void __wrap_leafcache_free(struct leafcache *lc);
void __wrap_leafcache_free(struct leafcache *lc)
{
    (void)lc;
}

void __wrap_tlsclient_free(struct tlsclient *t);
void __wrap_tlsclient_free(struct tlsclient *t)
{
    (void)t;
}

/* --- the same for all inputs --- */

static struct {
    struct config *config[2]; /* as it comes; with every bound tight, adaptive */
    struct ca *ca;
    struct entrance entrance;
    struct fakes_doors doors;
} fixed;

static char state_dir[] = "/tmp/fuzz_proxy.XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_state(void)
{
    nftw(state_dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void must(bool ok, const char *what, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_proxy: %s: %s\n", what, why);
    exit(1);
}

/* Upstream trust needs a root; nothing is ever verified with it. */
static void write_root(const char *path)
{
    X509 *x = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509V3_CTX ctx;
    X509_set_version(x, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"root", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_nconf_nid(NULL, &ctx, NID_basic_constraints, "CA:TRUE");
    X509_add_ext(x, ext, -1);
    FILE *out = fopen(path, "w");
    must(X509_sign(x, key, EVP_sha256()) > 0 && out != NULL && PEM_write_X509(out, x) == 1 &&
             fclose(out) == 0,
         "root", path);
    X509_EXTENSION_free(ext);
    EVP_PKEY_free(key);
    X509_free(x);
}

static void make_authority(void)
{
    struct err note = {.text = ""}, err = {.text = ""};
    const struct slice names[] = {SLICE("amazonaws.com")};
    must(mkdtemp(state_dir) != NULL, "mkdtemp", state_dir);
    must(atexit(remove_state) == 0, "atexit", "");
    fixed.ca = ca_open(state_dir, names, 1, false, time(NULL), &note, &err);
    must(fixed.ca != NULL, "ca_open", err.text);
}

static const char tight[] = "retry.mode=adaptive\nretry.max_admission_wait=2s\n"
                            "limits.upstream_per_origin=1\nlimits.upstream_waiters=1\n"
                            "limits.pool_per_origin=1\nlimits.max_parked=1\n"
                            "limits.replay_disk=16KiB\nlimits.hold_error=1KiB\n"
                            "limits.hold_small=1KiB\nlimits.request_body=100KiB\n"
                            "rules[0].quota.capacity=20\n";

static struct config *make_config(const char *trust, const char *more)
{
    char lines[1024];
    struct problems problems = {0};
    snprintf(lines, sizeof lines,
             "upstream.system_trust=false\nupstream.ca_file=%s\n"
             "resolve.*.amazonaws.com=127.0.0.1:%u\nresolve.plain.test=127.0.0.1:%u\n"
             "limits.replay_memory=4KiB\nlimits.replay_dir=%s\nlog.level=debug\n%s",
             trust, fixed.doors.origin_port, fixed.doors.origin_port, state_dir, more);
    struct config *c = lines_build(lines, &problems);
    must(c != NULL, "config", problems.n > 0 ? problems.v[0].text : "");
    problems_fini(&problems);
    return c;
}

static void say_totals(void)
{
    const struct fakes_totals *t = &fakes_totals;
    fprintf(stderr,
            "proxy: %" PRIu64 " requests, %" PRIu64 " attempts at the origin, %" PRIu64
            " answers delivered, %" PRIu64 " cut, %" PRIu64 " of our own, %" PRIu64 " faults\n",
            t->requests, t->attempts, t->delivered, t->cut, t->own, faults_injected);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    char trust[64];
    struct err err = {.text = ""};
    signal(SIGPIPE, SIG_IGN);
    must(atexit(say_totals) == 0, "atexit", "");
    make_authority();
    snprintf(trust, sizeof trust, "%s/root.pem", state_dir);
    write_root(trust);
    must(fakes_open_doors(&fixed.doors), "listen", "loopback");
    fixed.config[0] = make_config(trust, "");
    fixed.config[1] = make_config(trust, tight);
    must(log_open("/dev/null", false, LOG_LEVEL_DEBUG, &err), "log_open", err.text);
    entrance_init(&fixed.entrance, -1, &fixed.config[0]->listeners[0]);
    return 0;
}

/* --- one input --- */

struct world {
    struct loop *loop;
    struct proxy *px;
    struct fakes fakes;
    bool draining, drained;
};

static void stop(void *loop)
{
    loop_stop(loop);
}

/* Turns that do not wait. */
static void turn(struct world *w, unsigned n)
{
    faults_on = true;
    for (unsigned i = 0; i < n; i++) {
        loop_defer(w->loop, stop, w->loop);
        loop_run(w->loop);
    }
    faults_on = false;
    fakes_read(&w->fakes);
}

static void on_drained(void *arg)
{
    struct world *w = arg;
    w->drained = true;
}

static void begin_drain(struct world *w)
{
    if (w->draining)
        return;
    w->draining = true;
    proxy_drain(w->px, on_drained, w);
}

static void advance(struct world *w, unsigned how)
{
    static const int64_t steps[] = {NS_PER_MS,      50 * NS_PER_MS, 400 * NS_PER_MS, NS_PER_S,
                                    2 * NS_PER_S,   6 * NS_PER_S,   31 * NS_PER_S,   61 * NS_PER_S,
                                    100 * NS_PER_S, 700 * NS_PER_S};
    virtual_ns += steps[how % ARRAY_LEN(steps)];
    turn(w, 1);
}

static void connect_client(struct world *w)
{
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = w->draining ? -1 : fakes_connect(&w->fakes);
    if (fd >= 0)
        client_new(w->px, &fixed.entrance, fd, (const struct sockaddr *)&from);
}

/* The high half of the byte says who does what, the low half how. */
static void step(struct world *w, const uint8_t **in, const uint8_t *end)
{
    uint8_t op = *(*in)++;
    unsigned how = op & 15;
    switch (op >> 4) {
    case 0:
    case 1:
    case 2:
        fakes_request(&w->fakes, (op >> 4) * 16 + how);
        break;
    case 3:
    case 4:
    case 5:
        fakes_answer(&w->fakes, ((op >> 4) - 3) * 16 + how);
        break;
    case 6:
        advance(w, how);
        break;
    case 7:
        turn(w, how + 1);
        break;
    case 8:
        fakes_client_ends(&w->fakes, how);
        break;
    case 9:
        fakes_origin_ends(&w->fakes, how);
        break;
    case 10:
        connect_client(w);
        break;
    case 11:
    case 12: {
        size_t n = (size_t)(end - *in) < how + 1 ? (size_t)(end - *in) : how + 1;
        fakes_raw(&w->fakes, op >> 4 == 11, slice_of((const char *)*in, n));
        *in += n;
        break;
    }
    case 13:
        fakes_choose(&w->fakes, how);
        break;
    case 14:
        w->fakes.clients_stall = how & 1;
        w->fakes.origin_stalls = how & 2;
        break;
    default:
        if (how == 15)
            begin_drain(w);
        else
            faults_order(how);
        break;
    }
    turn(w, 2);
}

/* The origin goes away for good, clients read on: all must end within the timeouts. */
static void let_end(struct world *w)
{
    w->fakes.clients_stall = w->fakes.origin_stalls = false;
    w->fakes.origin_gone = true;
    begin_drain(w);
    for (unsigned i = 0; i < 200 && !w->drained; i++)
        advance(w, i < 20 ? 2 : 6);
    ASSERT(w->drained);
}

static int lowest_free_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size < 1)
        return 0;
    if (size > STEPS_MAX)
        size = STEPS_MAX;
    static struct world w;
    struct err err = {.text = ""};
    int fd_before = lowest_free_fd();
    faults_reset();
    random_state = size * 0x9e3779b97f4a7c15u;
    const struct region_options options = {.slots = REGION_SLOTS_MIN};
    struct region *region = region_open(&options, &err);
    ASSERT(region != NULL);
    w = (struct world){.loop = loop_new(&err)};
    struct proxy_parts parts = {.loop = w.loop,
                                .config = fixed.config[input[0] >> 1 & 1],
                                .ca = fixed.ca,
                                .region = region,
                                .seat = region_seat_claim(region)};
    w.px = proxy_new(&parts, &err);
    must(w.px != NULL, "proxy_new", err.text);
    fakes_init(&w.fakes, &fixed.doors);
    connect_client(&w);

    const uint8_t *in = input + 1, *end = input + size;
    while (in < end)
        step(&w, &in, end);
    if (input[0] & 1)
        let_end(&w);
    proxy_free(w.px);
    turn(&w, 2);
    loop_free(w.loop);
    region_close(region);
    w.fakes.faulted = faults_broke;
    fakes_judge(&w.fakes);
    fakes_fini(&w.fakes);
    ASSERT(lowest_free_fd() == fd_before);
    return 0;
}
