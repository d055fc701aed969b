/* Whose turn it is. Two things count: the connections that a worker has, which balances those that
 * stay; and, among those that have as many, the connections that it ever took, which balances those
 * that are gone at once. Both with some slack, so that under load nobody rests for the sake of one
 * connection.
 *
 * On a busy machine a worker whose turn it is may take tens of milliseconds to come, in which
 * another could take all of a burst. Connections that stay would stay where they are; so where
 * it is about those, the others take one each time they waited in vain, until the late one comes or
 * has been late for so long that it is taken for stuck. Where it is about what was ever taken, the
 * late one is passed over at once: that evens out by itself, and a flood of short connections is
 * not to be slowed down.
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
    STUCK_MS = 250,    /* one that is so late is passed over until it comes */
};

struct place {
    _Alignas(64) _Atomic bool present;
    _Atomic uint32_t open;
    _Atomic uint64_t taken;
    _Atomic int64_t missed_ns; /* since when it is late for its turn; 0: it is not */
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

/* By what k should have the next connection rather than i. */
enum precedence { NONE, BY_TAKEN, BY_OPEN };

static enum precedence precedence(struct roster *r, unsigned k, unsigned i)
{
    struct place *other = &r->place[k], *own = &r->place[i];
    if (k == i || !GET(other->present))
        return NONE;
    uint32_t theirs = GET(other->open), mine = GET(own->open);
    if (mine > theirs + OPEN_SLACK + theirs / OPEN_SLACK_OF)
        return BY_OPEN;
    return mine >= theirs && GET(own->taken) > GET(other->taken) + TAKEN_SLACK ? BY_TAKEN : NONE;
}

/* One that comes late to a burst may catch up in one go: who has less than the mean makes nothing
 * worse, whoever has less still. */
static bool is_below_mean(struct roster *r, unsigned i)
{
    uint64_t sum = 0;
    unsigned n = 0;
    for (unsigned k = 0; k < r->n; k++) {
        n += GET(r->place[k].present);
        sum += GET(r->place[k].open);
    }
    return GET(r->place[i].open) * (uint64_t)n < sum;
}

bool roster_may_accept(struct roster *r, unsigned i, int64_t now_ns)
{
    bool below = is_below_mean(r, i);
    SET(r->place[i].missed_ns, 0); /* here it is */
    for (unsigned k = 0; k < r->n; k++) {
        int64_t missed_ns = GET(r->place[k].missed_ns);
        enum precedence by = precedence(r, k, i);
        if (by == BY_TAKEN && missed_ns == 0)
            return false;
        if (by == BY_OPEN && !below &&
            (missed_ns == 0 || now_ns - missed_ns < STUCK_MS * NS_PER_MS))
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
        if (GET(r->place[k].missed_ns) == 0 && precedence(r, k, i) != NONE)
            SET(r->place[k].missed_ns, now_ns);
}
