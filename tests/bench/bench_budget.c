/* What a budget costs: alone on an entry, and with others on the same one.
 *
 * cc -std=c17 -D_GNU_SOURCE -O2 -Isrc -o bench_budget tests/bench/bench_budget.c src/io/shm/(all).c
 *    src/io/obs/log.c src/core/retry/limiter.c src/core/retry/quota.c src/core/base/(all).c -lm
 *
 * Times are medians and 99th percentiles over batches of 100, since reading the clock costs as much
 * as an operation. With several processes the machine's cores are shared: what counts then is how
 * many operations all of them get done. */
#include "core/base/units.h"
#include "io/shm/budgets.h"
#include "io/shm/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 100, BATCHES = 5000, PROCESSES = 4, WAITING = 4 };

static struct region *region;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

struct load {
    const char *name;
    void (*run)(struct budgets *t, struct budget *b, int64_t now_ns);
};

static void spend_refund(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t, (void)now;
    b->ops->spend(b, 5, 500);
    b->ops->refund(b, 5);
}

static void refund_full(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t, (void)now;
    b->ops->refund(b, 1);
}

static void acquire_release(struct budgets *t, struct budget *b, int64_t now)
{
    (void)b;
    budgets_release(budgets_acquire(t, SLICE("k|dynamodb|us-east-1|AKIDEXAMPLEEXAMPLE00"),
                                    SLICE("dynamodb/us-east-1/LE00"), now));
}

static void admit(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t;
    b->ops->admit(b, now);
}

static void observe(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t;
    b->ops->observe(b, false, now);
}

static void throttle(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t;
    b->ops->observe(b, true, now);
}

/* Among WAITING seats of which each has a first waiter, all younger. */
static void whose_turn(struct budgets *t, struct budget *b, int64_t now)
{
    (void)t;
    budgets_is_behind(b, 1, now - NS_PER_S);
}

/* The step alone, without the region. */
static void pure_step(struct budgets *t, struct budget *b, int64_t now)
{
    static struct limiter l;
    struct limiter next;
    int64_t wait_ns;
    (void)t, (void)b;
    limiter_step(&l, l.enabled ? LIMITER_OK : LIMITER_THROTTLED, now, &next, &wait_ns);
    l = next;
}

static const struct load loads[] = {
    {"spend + refund", spend_refund},       {"refund of a full quota", refund_full},
    {"acquire + release", acquire_release}, {"admit, not limited", admit},
    {"limiter step alone", pure_step},      {"observe", observe},
    {"observe a throttle", throttle},       {"admit, limited", admit},
    {"whose turn, of 5", whose_turn},
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds an operation of each batch, sorted. */
static void measure(const struct load *load, struct budgets *t, struct budget *b, int64_t *took)
{
    for (int i = 0; i < BATCHES; i++) {
        int64_t began = now_ns();
        for (int k = 0; k < BATCH; k++)
            load->run(t, b, began + k);
        took[i] = now_ns() - began;
    }
    qsort(took, BATCHES, sizeof *took, by_size);
}

static void alone(void)
{
    int64_t *took = malloc(BATCHES * sizeof *took);
    struct budgets *t = budgets_new(region, region_seat_claim(region));
    struct budget *b = budgets_acquire(t, SLICE("alone"), SLICE("alone"), now_ns());
    for (int i = 0; i < WAITING; i++) {
        struct budgets *other = budgets_new(region, region_seat_claim(region));
        struct budget *same = budgets_acquire(other, SLICE("alone"), SLICE("alone"), now_ns());
        budgets_wait(same, 1);
        budgets_show_head(same, now_ns());
    }
    printf("%-28s %8s %8s\n", "one process, ns", "p50", "p99");
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        measure(&loads[i], t, b, took);
        printf("%-28s %8.1f %8.1f\n", loads[i].name, (double)took[BATCHES / 2] / BATCH,
               (double)took[BATCHES * 99 / 100] / BATCH);
    }
    budgets_release(b);
    budgets_free(t);
    free(took);
}

struct crowd {
    _Atomic int ready, go;
    int64_t ns[PROCESSES];
    double p50[PROCESSES];
};

static void one_of_many(struct crowd *c, int i, int seat, const struct load *load)
{
    int64_t *took = malloc(BATCHES * sizeof *took);
    struct budgets *t = budgets_new(region, seat);
    struct budget *b = budgets_acquire(t, SLICE("crowd"), SLICE("crowd"), now_ns());
    b->ops->observe(b, true, now_ns());
    atomic_fetch_add(&c->ready, 1);
    while (!atomic_load(&c->go))
        usleep(100);
    int64_t began = now_ns();
    measure(load, t, b, took);
    c->ns[i] = now_ns() - began;
    c->p50[i] = (double)took[BATCHES / 2] / BATCH;
    _exit(0);
}

static void together(const struct load *load)
{
    struct crowd *c =
        mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int seat[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        seat[i] = region_seat_claim(region);
        if (fork() == 0)
            one_of_many(c, i, seat[i], load);
    }
    while (atomic_load(&c->ready) < PROCESSES)
        usleep(1000);
    atomic_store(&c->go, 1);
    int64_t longest = 0;
    double p50 = 0;
    for (int i = 0; i < PROCESSES; i++)
        wait(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        region_seat_release(region, seat[i]);
        longest = c->ns[i] > longest ? c->ns[i] : longest;
        p50 += c->p50[i] / PROCESSES;
    }
    printf("%-28s %8.1f %8.2f\n", load->name, p50,
           (double)PROCESSES * BATCHES * BATCH / ((double)longest / 1e3));
    munmap(c, sizeof *c);
}

int main(void)
{
    struct err err;
    region = region_open(&(struct region_options){0}, &err);
    if (!region) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    alone();
    printf("\n%d processes, one entry, %ld cores\n%-28s %8s %8s\n", PROCESSES,
           sysconf(_SC_NPROCESSORS_ONLN), "", "p50, ns", "M ops/s");
    together(&loads[0]);
    together(&loads[7]);
    together(&loads[5]);
    region_close(region);
    return 0;
}
