/* Whose turn it is. Two things count: the connections that a worker has, which balances those that
 * stay; and, among those that have as many, the connections that it ever took, which balances those
 * that are gone at once. Both with some slack, so that under load nobody rests for the sake of one
 * connection.
 *
 * The numbers are hints: each is one atomic word, none depends on another, so relaxed order does.
 */
#include "daemon/roster.h"
#include "core/base/units.h"
#include "core/base/xalloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
    OPEN_SLACK = 1,    /* connections that one may have more than another, */
    OPEN_SLACK_OF = 8, /* and one for that many that the other has */
    TAKEN_SLACK = 8,   /* the same of all that were ever taken */
    TAKEN_DEBT = 64,   /* how far one may fall behind: it is not to be flooded when it comes back */
    MISSED_MS = 100,   /* how long one that did not come is passed over */
};

struct place {
    _Alignas(64) _Atomic bool present;
    _Atomic uint32_t open;
    _Atomic uint64_t taken;
    _Atomic int64_t missed_ns; /* its turn came and it did not; 0: not so */
};

struct roster {
    unsigned n;
    struct place place[ROSTER_MAX];
};

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

struct roster *roster_new(unsigned workers, struct err *err)
{
    ASSERT(workers <= ROSTER_MAX);
    struct roster *r =
        mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
        err_set(err, "no shared memory: %s", strerror(errno));
        return NULL;
    }
    r->n = workers;
    return r;
}

void roster_free(struct roster *r)
{
    munmap(r, sizeof *r);
}

void roster_enter(struct roster *r, unsigned i)
{
    uint64_t most = 0;
    for (unsigned k = 0; k < r->n; k++)
        if (k != i && GET(r->place[k].present) && GET(r->place[k].taken) > most)
            most = GET(r->place[k].taken);
    SET(r->place[i].open, 0);
    SET(r->place[i].taken, most);
    SET(r->place[i].missed_ns, 0);
    SET(r->place[i].present, true);
}

void roster_leave(struct roster *r, unsigned i)
{
    SET(r->place[i].present, false);
    SET(r->place[i].open, 0);
}

unsigned roster_count(struct roster *r, unsigned i, unsigned open)
{
    unsigned sum = 0;
    SET(r->place[i].open, open);
    for (unsigned k = 0; k < r->n; k++)
        sum += GET(r->place[k].open);
    return sum;
}

/* Whether k should have the next connection rather than i. */
static bool is_before(struct roster *r, unsigned k, unsigned i)
{
    struct place *other = &r->place[k], *own = &r->place[i];
    if (k == i || !GET(other->present))
        return false;
    uint32_t theirs = GET(other->open), mine = GET(own->open);
    if (mine > theirs + OPEN_SLACK + theirs / OPEN_SLACK_OF)
        return true;
    return mine >= theirs && GET(own->taken) > GET(other->taken) + TAKEN_SLACK;
}

bool roster_may_accept(struct roster *r, unsigned i, int64_t now_ns)
{
    SET(r->place[i].missed_ns, 0); /* here it is */
    for (unsigned k = 0; k < r->n; k++) {
        int64_t missed_ns = GET(r->place[k].missed_ns);
        bool passed_over = missed_ns != 0 && now_ns - missed_ns < MISSED_MS * NS_PER_MS;
        if (!passed_over && is_before(r, k, i))
            return false;
    }
    return true;
}

void roster_accepted(struct roster *r, unsigned i)
{
    uint64_t mine = GET(r->place[i].taken) + 1;
    SET(r->place[i].taken, mine);
    for (unsigned k = 0; k < r->n && mine > TAKEN_DEBT; k++)
        if (k != i && GET(r->place[k].taken) < mine - TAKEN_DEBT)
            SET(r->place[k].taken, mine - TAKEN_DEBT);
}

void roster_overdue(struct roster *r, unsigned i, int64_t now_ns)
{
    for (unsigned k = 0; k < r->n; k++)
        if (is_before(r, k, i))
            SET(r->place[k].missed_ns, now_ns);
}
