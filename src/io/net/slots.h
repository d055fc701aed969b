/* How many connections may be in use at once, by origin, and who waits for one: first come, first
 * served (security requirement J7). A slot is held from before a connection is taken or dialled
 * until it is given back; it says nothing about which connection that is. */
#ifndef RETRYD_IO_NET_SLOTS_H
#define RETRYD_IO_NET_SLOTS_H

#include "core/base/hash.h"
#include "core/base/list.h"
#include "io/net/loop.h"

struct slots;
struct slots_origin;

enum slot_state { SLOT_NONE, SLOT_WAITING, SLOT_GRANTED, SLOT_HELD };

/* One who needs a connection; all-zero memory is one who has asked for none. Lives in the asker. */
struct slot {
    struct slots *all;
    struct slots_origin *origin;
    enum slot_state state;
    struct list queue;   /* WAITING: of the origin; GRANTED: those still to be told */
    struct list arrival; /* WAITING: of all, oldest first */
    int64_t until_ns;    /* WAITING */
    void (*fn)(void *arg, bool granted);
    void *arg;
};

/* per_origin: held at once by one key; waiters: in all; wait_ns: the longest wait. */
struct slots *slots_new(struct loop *l, struct hash_key key, unsigned per_origin, unsigned waiters,
                        int64_t wait_ns);
/* All slots have been given back. */
void slots_free(struct slots *all);

enum slots_answer {
    SLOTS_GRANTED, /* s holds one */
    SLOTS_WAIT, /* fn(arg, true) when s holds one, fn(arg, false) when the longest wait is over */
    SLOTS_FULL, /* too many wait */
};
enum slots_answer slots_ask(struct slots *all, struct slice key, struct slot *s,
                            void (*fn)(void *arg, bool granted), void *arg);
/* Gives back what it holds, or stops waiting; fn is not called any more. Harmless on a slot that
 * does neither. */
void slots_leave(struct slot *s);
/* What `from`, which holds one, holds is now `to`'s. */
void slots_hand_over(struct slot *from, struct slot *to);

unsigned slots_waiting(const struct slots *all);
unsigned slots_held(const struct slots *all);

#endif
