/* Parking: counts by upstream client. One is known while a request of it waits, so there are never
 * more of them than places taken. */
#include "proxy/parking.h"
#include "core/base/xalloc.h"

#include <stdlib.h>

struct parking_client {
    struct list link; /* in its bucket */
    uint64_t id;
    unsigned taken;
};

void parking_init(struct parking *p, unsigned max)
{
    p->max = max;
    p->taken = 0;
    for (unsigned i = 0; i < PARKING_BUCKETS; i++)
        list_init(&p->buckets[i]);
}

static struct parking_client *find(const struct parking *p, uint64_t id)
{
    const struct list *bucket = &p->buckets[id % PARKING_BUCKETS];
    for (struct list *i = bucket->next; i != bucket; i = i->next) {
        struct parking_client *c = list_entry(i, struct parking_client, link);
        if (c->id == id)
            return c;
    }
    return NULL;
}

bool parking_has_room(const struct parking *p, uint64_t client)
{
    const struct parking_client *c = find(p, client);
    unsigned share = p->max - p->max / 2; /* half, and one of one */
    return p->taken < p->max && (c == NULL || c->taken < share);
}

void parking_enter(struct parking *p, uint64_t client, struct parking_place *at)
{
    struct parking_client *c = find(p, client);
    if (c == NULL) {
        c = xcalloc(1, sizeof *c);
        c->id = client;
        list_push_back(&p->buckets[client % PARKING_BUCKETS], &c->link);
    }
    c->taken++;
    p->taken++;
    *at = (struct parking_place){p, c};
}

void parking_leave(struct parking_place *at)
{
    struct parking_client *c = at->client;
    if (c == NULL)
        return;
    at->all->taken--;
    if (--c->taken == 0) {
        list_remove(&c->link);
        free(c);
    }
    *at = (struct parking_place){NULL, NULL};
}
