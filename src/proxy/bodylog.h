/* The request body is a log; an attempt is a cursor on it.
 *
 * The log records what the client sends: in memory blocks first, then in an unlinked file, then no
 * more. A cursor reads from byte 0, follows the end while the client still sends, and never copies.
 * Over the cap the log gives up replay: from then on bytes that the cursor has passed are
 * forgotten, and what is buffered ahead of it stays within a window (back-pressure to the client).
 * Without a cursor a full log pauses the client and forgets nothing: only a sending attempt can
 * make a body unreplayable.
 *
 * security requirements J9, E12; file: O_TMPFILE or unlinked at once, 0600, counted against the
 * caps; a full disk makes the body unreplayable, nothing worse. */
#ifndef RETRYD_PROXY_BODYLOG_H
#define RETRYD_PROXY_BODYLOG_H

#include "core/base/slice.h"
#include "core/http/header.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BODYLOG_BLOCK_BYTES = 16 * 1024, BODYLOG_WINDOW_BYTES = 256 * 1024 };

/* What all bodies of a worker share. */
struct bodylog_shared {
    uint64_t memory_used,
        memory_max; /* bytes of blocks, all logs, and of responses that are held */
    uint64_t disk_used, disk_max;
    const char *dir; /* for replay files */
    bool told;       /* that it takes none: once a worker */
};

struct bodylog {
    struct bodylog_shared *shared;
    uint64_t memory_max, disk_max; /* of this log */
    char **block;                  /* block[i]: memory, or NULL: in the file */
    size_t n_blocks, cap_blocks;
    uint64_t base;        /* offset of block[0]; above 0 only after replay was given up */
    uint64_t end;         /* bytes recorded so far */
    uint64_t memory_held; /* bytes of blocks of this log */
    uint64_t disk_held;
    int fd;            /* replay file, or -1 */
    bool finished;     /* the client sent the whole body */
    bool unreplayable; /* byte 0 is gone, or may go */
    bool wants_replay; /* a retry may still come */
    bool scratch_used;
    char *scratch; /* one block read back from the file */
    uint64_t scratch_at;
    struct header_list trailers; /* of a chunked body; valid once finished */
};

/* A reader's place. */
struct bodycur {
    uint64_t at;
};

/* What is held of responses counts, too (security requirement E6): a buffer that had `before` bytes
 * has `after` now. It may pass the bound, and is to be let go then. */
static inline void bodylog_count_held(struct bodylog_shared *shared, size_t before, size_t after)
{
    shared->memory_used = shared->memory_used - before + after;
}

static inline bool bodylog_has_room(const struct bodylog_shared *shared)
{
    return shared->memory_used <= shared->memory_max;
}

/* All-zero memory to a usable, empty log. Costs nothing until the first byte. */
void bodylog_init(struct bodylog *log, struct bodylog_shared *shared, uint64_t memory_max_bytes,
                  uint64_t disk_max_bytes);
void bodylog_fini(struct bodylog *log);

/* How many bytes may be appended now; 0: pause the client. cur: the running attempt's place, NULL:
 * none. */
size_t bodylog_room(const struct bodylog *log, const struct bodycur *cur);
/* Appends at most bodylog_room() bytes. */
void bodylog_append(struct bodylog *log, const struct bodycur *cur, struct slice data);
void bodylog_finish(struct bodylog *log, const struct header_list *trailers);

/* No retry will come any more: forget what the cursor passes. */
void bodylog_give_up(struct bodylog *log);

/* Bytes at the cursor, contiguous, at most a block; empty at the present end. Valid until the next
 * call on the log. False: a file that cannot be read back. */
bool bodylog_peek(struct bodylog *log, const struct bodycur *cur, struct slice *out);
void bodylog_advance(struct bodylog *log, struct bodycur *cur, size_t n);
bool bodylog_at_end(const struct bodylog *log, const struct bodycur *cur);

#endif
