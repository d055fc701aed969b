/* Labels are written without any order, also by two at once or by one that is killed half way: the
 * seal is a keyed hash of the id and the bytes, and what does not fit it is not shown.
 *
 * label_id is written last and says that a label was written for that id; what a killed writer left
 * is repaired by whoever uses the entry next, since he finds another id there. */
#include "io/shm/label.h"

enum { LABEL_WORDS = SHM_LABEL_BYTES / 8 };

static uint64_t seal(const struct region *r, uint64_t id, const uint64_t text[LABEL_WORDS])
{
    struct hash_key key = {r->header->key.k0 ^ id, r->header->key.k1};
    return hash_bytes(key, slice_of((const char *)text, SHM_LABEL_BYTES));
}

void label_write(const struct region *r, uint32_t slot, uint64_t id, struct slice label)
{
    struct shm_slot *s = &r->slots[slot];
    uint64_t text[LABEL_WORDS] = {0};
    if (id == 0 || atomic_load_explicit(&s->label_id, memory_order_relaxed) == id)
        return;
    if (label.n > 0)
        memcpy(text, label.p, label.n < sizeof text ? label.n : sizeof text);
    for (int i = 0; i < LABEL_WORDS; i++)
        atomic_store_explicit(&s->label[i], text[i], memory_order_relaxed);
    atomic_store_explicit(&s->label_seal, seal(r, id, text), memory_order_relaxed);
    atomic_store_explicit(&s->label_id, id, memory_order_relaxed);
}

void label_read(const struct region *r, uint32_t slot, uint64_t id, char out[SHM_LABEL_BYTES + 1])
{
    const struct shm_slot *s = &r->slots[slot];
    uint64_t text[LABEL_WORDS];
    for (int i = 0; i < LABEL_WORDS; i++)
        text[i] = atomic_load_explicit(&s->label[i], memory_order_relaxed);
    bool whole = atomic_load_explicit(&s->label_seal, memory_order_relaxed) == seal(r, id, text);
    memset(out, 0, SHM_LABEL_BYTES + 1);
    if (whole)
        memcpy(out, text, SHM_LABEL_BYTES);
}
