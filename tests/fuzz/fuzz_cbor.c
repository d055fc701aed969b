/* CBOR error bodies against a second decoder, written the other way round: recursive, by the
 * grammar of RFC 8949 appendix C.
 *
 * Oracles: both agree on what is well-formed, whole and cut, and on the code; whatever is a prefix
 * of a readable prefix is readable. */
#include "core/aws/errcbor.h"
#include "core/base/attr.h"

enum result { BAD, CUT, GOOD };

struct reference {
    const uint8_t *p;
    size_t n, i;
    bool is_text; /* of the last string */
    char text[4 * ERRCODE_MAX];
    size_t text_n; /* may be beyond the array: too long */
};

static enum result take_head(struct reference *r, unsigned *major, unsigned *info, uint64_t *value)
{
    if (r->i == r->n)
        return CUT;
    unsigned first = r->p[r->i++];
    *major = first >> 5;
    *value = *info = first & 31;
    if (*info < 24 || *info == 31)
        return GOOD;
    if (*info > 27)
        return BAD;
    *value = 0;
    for (int bytes = 1 << (*info - 24); bytes > 0; bytes--) {
        if (r->i == r->n)
            return CUT;
        *value = *value * 256 + r->p[r->i++];
    }
    return GOOD;
}

static enum result take_string(struct reference *r, uint64_t bytes)
{
    for (; bytes > 0; bytes--) {
        if (r->i == r->n)
            return CUT;
        if (r->text_n < sizeof r->text)
            r->text[r->text_n] = (char)r->p[r->i];
        r->text_n++;
        r->i++;
    }
    return GOOD;
}

/* depth: levels that may still be opened. broke: a break is allowed here, and this was one. */
static enum result take_item(struct reference *r, unsigned depth, bool *broke)
{
    unsigned major, info;
    uint64_t value;
    enum result ok = take_head(r, &major, &info, &value);
    r->is_text = false;
    if (ok != GOOD)
        return ok;
    switch (major) {
    case 0:
    case 1:
        return info == 31 ? BAD : GOOD;
    case 2:
    case 3:
        r->text_n = 0;
        if (info != 31) {
            ok = take_string(r, value);
        } else {
            for (;;) {
                unsigned of;
                ok = take_head(r, &of, &info, &value);
                if (ok != GOOD || (of == 7 && info == 31))
                    break;
                if (of != major || info == 31)
                    return BAD;
                ok = take_string(r, value);
                if (ok != GOOD)
                    break;
            }
        }
        r->is_text = major == 3;
        return ok;
    case 4:
    case 5: {
        if (depth == 0)
            return BAD;
        bool end = false;
        for (uint64_t k = 0; info == 31 || k < value; k++) {
            for (unsigned part = 0; part < (major == 5 ? 2u : 1u); part++) {
                ok = take_item(r, depth - 1, info == 31 && part == 0 ? &end : NULL);
                if (ok != GOOD)
                    return ok;
                if (end)
                    break;
            }
            if (end)
                break;
        }
        r->is_text = false;
        return GOOD;
    }
    case 6:
        return info == 31 ? BAD : take_item(r, depth, NULL);
    default:
        if (info == 31) {
            if (!broke)
                return BAD;
            *broke = true;
            return GOOD;
        }
        return info == 24 && value < 32 ? BAD : GOOD;
    }
}

/* The document; code: of its last member __type, cleaned. */
static enum result take_document(struct reference *r, char *code, size_t *code_n)
{
    unsigned major, info;
    uint64_t value;
    enum result ok;
    *code_n = 0;
    do {
        ok = take_head(r, &major, &info, &value);
        if (ok != GOOD)
            return ok;
        if (major == 6 && info == 31)
            return BAD;
    } while (major == 6);
    if (major != 5)
        return BAD;
    for (uint64_t k = 0; info == 31 || k < value; k++) {
        bool end = false;
        ok = take_item(r, ERRCBOR_DEPTH_MAX - 1, info == 31 ? &end : NULL);
        if (ok != GOOD)
            return ok;
        if (end)
            break;
        bool is_type = r->is_text && r->text_n == 6 && memcmp(r->text, "__type", 6) == 0;
        ok = take_item(r, ERRCBOR_DEPTH_MAX - 1, NULL);
        if (ok != GOOD)
            return ok;
        if (!is_type)
            continue;
        struct slice clean = r->is_text && r->text_n <= sizeof r->text
                                 ? errcode_clean(slice_of(r->text, r->text_n))
                                 : SLICE_NONE;
        if (clean.n > 0)
            memcpy(code, clean.p, clean.n);
        *code_n = clean.n;
    }
    return r->i == r->n ? GOOD : BAD;
}

static bool check(const uint8_t *data, size_t size, bool whole, struct arena *a)
{
    struct reference r = {.p = data, .n = size};
    struct errcode e = {.source = ERRCODE_NONE};
    char code[ERRCODE_MAX];
    size_t code_n;
    enum result want = take_document(&r, code, &code_n);
    errcbor_read(slice_of((const char *)data, size), whole, a, &e);
    ASSERT(e.parsed == (want == GOOD || (want == CUT && !whole)));
    if (!e.parsed)
        code_n = 0;
    ASSERT(slice_eq(e.code, slice_of(code, code_n)));
    ASSERT(e.code.n == 0 || (errcode_allowed(e.code) && e.source == ERRCODE_CBOR));
    return e.parsed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    if (size > ERRCODE_BODY_MAX)
        return 0;
    arena_init(&a);
    check(data, size, true, &a);
    bool readable = check(data, size, false, &a);
    for (size_t part = 0; part < 8; part++) {
        bool shorter = check(data, size * part / 8, false, &a);
        ASSERT(shorter || !readable);
    }
    arena_fini(&a);
    return 0;
}
