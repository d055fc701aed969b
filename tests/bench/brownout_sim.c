/* brownout_sim [series]: what sharing a limiter wins, by simulation.
 *
 * cc -std=c17 -D_GNU_SOURCE -O2 -Isrc -o brownout_sim tests/bench/brownout_sim.c
 * src/core/retry/(all).c src/core/base/(all).c -lm
 *
 * 200 clients in a closed loop, for 90 s, against an origin that serves R = 100 requests/s with a
 * burst of 100 and throttles the rest; R is doubled at 60 s. The clients are divided among 1, 2, 4
 * or 8 groups, each with a quota and a limiter of its own: 8 groups are 8 processes with an SDK
 * each, 1 group is retryd, however many workers it has. Decisions are the engine's own (verdict.c,
 * limiter.c); requests that wait for a send token are served in the order in which they came.
 *
 * The latency counts, since each throttled answer reduces the rate again: what was in flight when
 * the limit was met comes back as several throttles at once.
 *
 * With `series`: a line of CSV for every second instead of the table. */
#include "core/base/units.h"
#include "core/retry/limiter.h"
#include "core/retry/quota.h"
#include "core/retry/verdict.h"

#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 200, SECONDS = 90, DOUBLED_AT_S = 60, GROUPS_MAX = 8, RUNS = 5 };

#define RATE 100.0
#define BURST 100.0
#define NEVER INT64_MAX

enum phase { SENT, BACKOFF, QUEUED };

struct client {
    enum phase phase;
    int64_t due_ns; /* of the response, or of the end of the backoff */
    struct retry_run run;
    unsigned group, served[SECONDS];
};

/* A quota, a limiter, and who waits for it. */
struct group {
    struct budget base;
    uint32_t debt;
    struct limiter limiter;
    struct client *queue[CLIENTS];
    unsigned first, n;
    int64_t due_ns;
};

struct world {
    struct retry_policy policy;
    struct rng rng;
    struct client clients[CLIENTS];
    struct group groups[GROUPS_MAX];
    unsigned n_groups;
    int64_t latency_ns; /* of the origin: this much, and up to a fifth more */
    double tokens;      /* of the origin */
    int64_t now_ns;
    unsigned sends[SECONDS], throttled[SECONDS], failed[SECONDS];
};

/* --- the budget port --- */

static struct group *self(struct budget *b)
{
    return (struct group *)b;
}

static bool spend(struct budget *b, unsigned cost, unsigned capacity)
{
    return quota_spend(self(b)->debt, cost, capacity, &self(b)->debt);
}

static void refund(struct budget *b, unsigned amount)
{
    self(b)->debt = quota_refund(self(b)->debt, amount);
}

static unsigned tokens(const struct budget *b, unsigned capacity)
{
    return quota_tokens(((const struct group *)b)->debt, capacity);
}

static int64_t step(struct group *g, enum limiter_event event, int64_t now_ns)
{
    struct limiter old = g->limiter;
    int64_t wait_ns;
    limiter_step(&old, event, now_ns, &g->limiter, &wait_ns);
    return wait_ns;
}

static int64_t admit(struct budget *b, int64_t now_ns)
{
    return step(self(b), LIMITER_ACQUIRE, now_ns);
}

static void observe(struct budget *b, bool throttled, int64_t now_ns)
{
    step(self(b), throttled ? LIMITER_THROTTLED : LIMITER_OK, now_ns);
}

static const struct budget_ops ops = {spend, refund, tokens, admit, observe};

/* --- the world --- */

static unsigned second(const struct world *w)
{
    return (unsigned)(w->now_ns / NS_PER_S);
}

static void send(struct world *w, struct client *c)
{
    c->phase = SENT;
    c->due_ns = w->now_ns + (int64_t)((1.0 + rng_unit(&w->rng) / 5.0) * (double)w->latency_ns);
    w->sends[second(w)]++;
}

/* Sends what the limiter lets through, in order. */
static void serve_queue(struct world *w, struct group *g)
{
    g->due_ns = NEVER;
    while (g->n > 0) {
        int64_t wait_ns =
            w->policy.mode == RETRY_MODE_ADAPTIVE ? g->base.ops->admit(&g->base, w->now_ns) : 0;
        if (wait_ns > 0) {
            g->due_ns = w->now_ns + wait_ns;
            return;
        }
        send(w, g->queue[g->first]);
        g->first = (g->first + 1) % CLIENTS;
        g->n--;
    }
}

static void want_to_send(struct world *w, struct client *c)
{
    struct group *g = &w->groups[c->group];
    c->phase = QUEUED;
    c->due_ns = NEVER;
    g->queue[(g->first + g->n++) % CLIENTS] = c;
    serve_queue(w, g);
}

static bool origin_serves(struct world *w)
{
    if (w->tokens < 1.0)
        return false;
    w->tokens -= 1.0;
    return true;
}

static void on_response(struct world *w, struct client *c)
{
    static const struct verdict_limits limits = {true, true, INT64_MAX};
    struct group *g = &w->groups[c->group];
    struct retry_outcome o = {.status = 200};
    struct verdict v;
    bool served = origin_serves(w);
    if (!served)
        o = (struct retry_outcome){.status = 429};
    verdict_after(&w->policy, &c->run, &o, &limits, &g->base, rng_as_source(&w->rng), &v);
    g->base.ops->observe(&g->base, v.class == RETRY_THROTTLING, w->now_ns);
    w->throttled[second(w)] += !served;
    if (v.what == VERDICT_RETRY) {
        c->phase = BACKOFF;
        c->due_ns = w->now_ns + v.delay_ns;
    } else {
        c->served[second(w)] += served;
        w->failed[second(w)] += !served;
        c->run = (struct retry_run){0};
        want_to_send(w, c);
    }
    serve_queue(w, g); /* the rate may have risen */
}

static int64_t next_due(struct world *w, struct client **client, struct group **group)
{
    int64_t due_ns = NEVER;
    *client = NULL;
    *group = NULL;
    for (unsigned i = 0; i < CLIENTS; i++)
        if (w->clients[i].due_ns < due_ns) {
            *client = &w->clients[i];
            due_ns = w->clients[i].due_ns;
        }
    for (unsigned i = 0; i < w->n_groups; i++)
        if (w->groups[i].due_ns < due_ns) {
            *group = &w->groups[i];
            due_ns = w->groups[i].due_ns;
        }
    return due_ns;
}

static void pass_time(struct world *w, int64_t to_ns)
{
    double rate = w->now_ns < DOUBLED_AT_S * NS_PER_S ? RATE : 2 * RATE;
    w->tokens += rate * (double)(to_ns - w->now_ns) / 1e9;
    w->tokens = w->tokens < BURST ? w->tokens : BURST;
    w->now_ns = to_ns;
}

struct setup {
    const char *name;
    enum retry_mode mode;
    unsigned groups;
    int64_t latency_ns;
};

static void run(struct world *w, const struct setup *setup, uint64_t seed)
{
    unsigned n_groups = setup->groups;
    *w = (struct world){.policy = retry_policy_standard_21,
                        .n_groups = n_groups,
                        .latency_ns = setup->latency_ns,
                        .tokens = BURST};
    w->policy.mode = setup->mode;
    rng_seed(&w->rng, (const uint64_t[4]){seed, 2, 3, 4});
    for (unsigned i = 0; i < n_groups; i++)
        w->groups[i] = (struct group){.base = {&ops}, .due_ns = NEVER};
    /* All begin within the first second, backing off from nothing. */
    for (unsigned i = 0; i < CLIENTS; i++)
        w->clients[i] = (struct client){
            .phase = BACKOFF, .due_ns = (int64_t)(rng_unit(&w->rng) * 1e9), .group = i % n_groups};
    for (;;) {
        struct client *c;
        struct group *g;
        int64_t due_ns = next_due(w, &c, &g);
        if (due_ns >= SECONDS * NS_PER_S)
            return;
        pass_time(w, due_ns);
        if (g)
            serve_queue(w, g);
        else if (c->phase == BACKOFF)
            want_to_send(w, c);
        else
            on_response(w, c);
    }
}

/* --- telling --- */

static double per_second(const unsigned *v, unsigned from, unsigned to)
{
    unsigned sum = 0;
    for (unsigned s = from; s < to; s++)
        sum += v[s];
    return (double)sum / (to - from);
}

/* The best served client against the worst, from second 20 to 60. */
static double spread(const struct world *w)
{
    double least = 1e9, most = 0.0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        double mean = per_second(w->clients[i].served, 20, 60);
        least = mean < least ? mean : least;
        most = mean > most ? mean : most;
    }
    return most / least;
}

enum { SENDS, SERVED, THROTTLED, FAILED, SPREAD, LATE_SENDS, LATE_SERVED, FIGURES };

static void add_figures(const struct world *w, double f[FIGURES])
{
    double sends = per_second(w->sends, 20, 60), throttled = per_second(w->throttled, 20, 60);
    double late = per_second(w->sends, 75, 90);
    f[SENDS] += sends / RUNS;
    f[SERVED] += (sends - throttled) / RUNS;
    f[THROTTLED] += 100.0 * throttled / sends / RUNS;
    f[FAILED] += per_second(w->failed, 20, 60) / RUNS;
    f[SPREAD] += spread(w) / RUNS;
    f[LATE_SENDS] += late / RUNS;
    f[LATE_SERVED] += (late - per_second(w->throttled, 75, 90)) / RUNS;
}

static void tell(struct world *w, const struct setup *setup)
{
    double f[FIGURES] = {0};
    for (unsigned i = 0; i < RUNS; i++) {
        run(w, setup, i + 1);
        add_figures(w, f);
    }
    printf("%-22s %5lld ms %8.1f %8.1f %9.1f%% %8.1f %8.2f %8.1f %8.1f\n", setup->name,
           (long long)(setup->latency_ns / NS_PER_MS), f[SENDS], f[SERVED], f[THROTTLED], f[FAILED],
           f[SPREAD], f[LATE_SENDS], f[LATE_SERVED]);
}

static void tell_series(struct world *w, const struct setup *setup)
{
    run(w, setup, 1);
    for (unsigned s = 0; s < SECONDS; s++)
        printf("\"%s, %lld ms\",%u,%u,%u,%u\n", setup->name,
               (long long)(setup->latency_ns / NS_PER_MS), s, w->sends[s], w->throttled[s],
               w->failed[s]);
}

int main(int argc, char **argv)
{
    static const struct setup setups[] = {
        {"standard, 8 unshared", RETRY_MODE_STANDARD, 8, 5 * NS_PER_MS},
        {"standard, 1 shared", RETRY_MODE_STANDARD, 1, 5 * NS_PER_MS},
        {"adaptive, 8 unshared", RETRY_MODE_ADAPTIVE, 8, 5 * NS_PER_MS},
        {"adaptive, 4 unshared", RETRY_MODE_ADAPTIVE, 4, 5 * NS_PER_MS},
        {"adaptive, 2 unshared", RETRY_MODE_ADAPTIVE, 2, 5 * NS_PER_MS},
        {"adaptive, 1 shared", RETRY_MODE_ADAPTIVE, 1, 5 * NS_PER_MS},
        {"adaptive, 8 unshared", RETRY_MODE_ADAPTIVE, 8, 20 * NS_PER_MS},
        {"adaptive, 1 shared", RETRY_MODE_ADAPTIVE, 1, 20 * NS_PER_MS},
    };
    bool series = argc > 1 && strcmp(argv[1], "series") == 0;
    struct world *w = malloc(sizeof *w);
    if (!w)
        return 1;
    if (series)
        printf("setup,second,sends,throttled,failed\n");
    else
        printf(
            "%d clients, mean of %d runs      second 20 to 60, R = 100/s                  max/min  "
            "75 to 90, R = 200/s\n%-22s %8s %8s %8s %10s %8s %8s %8s %8s\n",
            CLIENTS, RUNS, "", "latency", "sends/s", "served/s", "throttled", "failed/s", "served",
            "sends/s", "served/s");
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        if (series)
            tell_series(w, &setups[i]);
        else
            tell(w, &setups[i]);
    }
    free(w);
    return 0;
}
