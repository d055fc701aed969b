/* Request body log: fixed blocks, spilled to a file whole blocks at a time, so that file offset
 * equals body offset and a block is in exactly one place. */
#include "proxy/bodylog.h"
#include "core/base/attr.h"
#include "core/base/xalloc.h"
#include "io/obs/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { BLOCK = BODYLOG_BLOCK_BYTES };

void bodylog_init(struct bodylog *log, struct bodylog_shared *shared, uint64_t memory_max_bytes,
                  uint64_t disk_max_bytes)
{
    *log = (struct bodylog){.shared = shared,
                            .memory_max = memory_max_bytes,
                            .disk_max = disk_max_bytes,
                            .fd = -1,
                            .wants_replay = true};
}

static void free_block(struct bodylog *log, size_t i)
{
    if (log->block[i] == NULL)
        return;
    free(log->block[i]);
    log->block[i] = NULL;
    log->memory_held -= BLOCK;
    log->shared->memory_used -= BLOCK;
}

void bodylog_fini(struct bodylog *log)
{
    for (size_t i = 0; i < log->n_blocks; i++)
        free_block(log, i);
    free(log->block);
    free(log->scratch);
    if (log->fd >= 0)
        close(log->fd);
    log->shared->disk_used -= log->disk_held;
    bodylog_init(log, log->shared, log->memory_max, log->disk_max);
}

/* Index of the block that holds the offset. */
static size_t block_of(const struct bodylog *log, uint64_t offset)
{
    return (size_t)((offset - log->base) / BLOCK);
}

/* Still whole, and wanted so. */
static bool recording(const struct bodylog *log)
{
    return log->wants_replay && !log->unreplayable;
}

/* Bytes until the caps of this log; they need not be whole blocks. */
static uint64_t cap_left(const struct bodylog *log)
{
    uint64_t cap = log->memory_max + log->disk_max;
    return log->end < cap ? cap - log->end : 0;
}

static bool memory_left(const struct bodylog *log)
{
    return log->memory_held < log->memory_max &&
           log->shared->memory_used + BLOCK <= log->shared->memory_max;
}

static bool disk_left(const struct bodylog *log)
{
    return log->disk_held < log->disk_max &&
           log->shared->disk_used + BLOCK <= log->shared->disk_max;
}

/* Within the window ahead of the reader, whatever the caps say: a stream always makes progress. */
static size_t window_room(const struct bodylog *log, const struct bodycur *cur)
{
    if (cur == NULL)
        return 0;
    uint64_t ahead = log->end - cur->at;
    return ahead < BODYLOG_WINDOW_BYTES ? (size_t)(BODYLOG_WINDOW_BYTES - ahead) : 0;
}

static size_t least(size_t n, uint64_t bound)
{
    return bound < n ? (size_t)bound : n;
}

size_t bodylog_room(const struct bodylog *log, const struct bodycur *cur)
{
    size_t in_block = (size_t)(log->end - log->base) % BLOCK;
    if (!recording(log) || cap_left(log) == 0)
        return window_room(log, cur);
    if (in_block > 0 || memory_left(log) || disk_left(log))
        return least(BLOCK - in_block, cap_left(log));
    return window_room(log, cur);
}

static bool open_file(struct bodylog *log)
{
    if (log->fd >= 0)
        return true;
    log->fd = open(log->shared->dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (log->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return log->fd >= 0;
    /* A file system without O_TMPFILE: make it private and unlink it at once. */
    char path[4096];
    size_t n = strlen(log->shared->dir);
    static const char name[] = "/retryd-body-XXXXXX";
    if (n + sizeof name > sizeof path)
        return false;
    memcpy(path, log->shared->dir, n);
    memcpy(path + n, name, sizeof name);
    log->fd = mkostemp(path, O_CLOEXEC);
    if (log->fd >= 0)
        unlink(path);
    return log->fd >= 0;
}

static bool write_all(int fd, const char *p, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        p += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return true;
}

static void tell_of_trouble(struct bodylog_shared *shared, int error)
{
    if (shared->told)
        return;
    shared->told = true;
    struct log_line l;
    log_begin(&l, LOG_LEVEL_WARN, "replay_file");
    log_str(&l, "dir", slice_str(shared->dir));
    log_str(&l, "error", slice_str(strerror(error)));
    log_str(&l, "consequence", SLICE("long bodies are not replayed"));
    log_end(&l);
}

/* Moves a full memory block to the file. False: the disk does not take it. */
static bool spill(struct bodylog *log, size_t i)
{
    if (!disk_left(log))
        return false;
    if (!open_file(log) ||
        !write_all(log->fd, log->block[i], BLOCK, log->base + (uint64_t)i * BLOCK)) {
        tell_of_trouble(log->shared, errno);
        return false;
    }
    log->disk_held += BLOCK;
    log->shared->disk_used += BLOCK;
    free_block(log, i);
    return true;
}

/* Forgets whole blocks before the offset. */
static void forget_before(struct bodylog *log, uint64_t offset)
{
    size_t n = block_of(log, offset);
    if (n > log->n_blocks)
        n = log->n_blocks;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        free_block(log, i);
    memmove(log->block, log->block + n, (log->n_blocks - n) * sizeof *log->block);
    log->n_blocks -= n;
    log->base += (uint64_t)n * BLOCK;
    log->scratch_used = false;
}

static void add_block(struct bodylog *log)
{
    if (log->n_blocks == log->cap_blocks) {
        log->cap_blocks = log->cap_blocks ? log->cap_blocks * 2 : 4;
        log->block = xrealloc(log->block, log->cap_blocks * sizeof *log->block);
    }
    log->block[log->n_blocks++] = xmalloc(BLOCK);
    log->memory_held += BLOCK;
    log->shared->memory_used += BLOCK;
}

/* Room for a new block: in memory, else by moving the last full one to the file, else by giving up
 * replay (then the window of the reader bounds what is held). */
static void make_room(struct bodylog *log, const struct bodycur *cur)
{
    if (recording(log) && !memory_left(log)) {
        /* The newest full block goes: older ones are the first that a replay reads. Blocks already
         * in the file are NULL, so only one is ever tried per new block. */
        if (log->n_blocks > 0 && log->block[log->n_blocks - 1] != NULL)
            log->unreplayable = !spill(log, log->n_blocks - 1);
        else
            log->unreplayable = !disk_left(log);
    }
    if (!recording(log) && cur != NULL)
        forget_before(log, cur->at);
    add_block(log);
}

void bodylog_append(struct bodylog *log, const struct bodycur *cur, struct slice data)
{
    ASSERT(!log->finished);
    while (data.n > 0) {
        size_t in_block = (size_t)(log->end - log->base) % BLOCK;
        if (recording(log) && cap_left(log) == 0)
            log->unreplayable = true;
        if (in_block == 0)
            make_room(log, cur);
        size_t n = least(BLOCK - in_block, data.n);
        if (recording(log))
            n = least(n, cap_left(log));
        memcpy(log->block[log->n_blocks - 1] + in_block, data.p, n);
        log->end += n;
        data = slice_of(data.p + n, data.n - n);
    }
}

void bodylog_finish(struct bodylog *log, const struct header_list *trailers)
{
    ASSERT(!log->finished);
    log->finished = true;
    if (trailers != NULL)
        log->trailers = *trailers;
}

void bodylog_give_up(struct bodylog *log)
{
    log->wants_replay = false;
}

static bool read_back(struct bodylog *log, size_t i)
{
    uint64_t at = log->base + (uint64_t)i * BLOCK;
    if (log->scratch_used && log->scratch_at == at)
        return true;
    if (log->scratch == NULL)
        log->scratch = xmalloc(BLOCK);
    log->scratch_used = false;
    size_t got = 0;
    while (got < BLOCK) {
        ssize_t r = pread(log->fd, log->scratch + got, BLOCK - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return false;
        got += (size_t)r;
    }
    log->scratch_used = true;
    log->scratch_at = at;
    return true;
}

bool bodylog_peek(struct bodylog *log, const struct bodycur *cur, struct slice *out)
{
    *out = SLICE_NONE;
    ASSERT(cur->at >= log->base && cur->at <= log->end);
    if (cur->at == log->end)
        return true;
    size_t i = block_of(log, cur->at);
    size_t skip = (size_t)(cur->at - log->base) % BLOCK;
    uint64_t in_block = log->end - log->base - (uint64_t)i * BLOCK;
    size_t n = (in_block < BLOCK ? (size_t)in_block : BLOCK) - skip;
    const char *p = log->block[i];
    if (p == NULL) {
        if (!read_back(log, i))
            return false;
        p = log->scratch;
    }
    *out = slice_of(p + skip, n);
    return true;
}

void bodylog_advance(struct bodylog *log, struct bodycur *cur, size_t n)
{
    cur->at += n;
    ASSERT(cur->at <= log->end);
    if (!recording(log))
        forget_before(log, cur->at);
}

bool bodylog_at_end(const struct bodylog *log, const struct bodycur *cur)
{
    return log->finished && cur->at == log->end;
}
