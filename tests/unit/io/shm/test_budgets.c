/* The table of budgets: one key, one budget, for all seats; idle ones leave their place; invented
 * keys yield no fresh budgets; what people see of it. */
#include "io/shm/budgets.h"
#include "io/shm/layout.h"
#include "unit.h"

#include "core/base/units.h"
#include <stdio.h>

#define T0 (1000 * NS_PER_S)

static struct region *region;
static struct budgets *table, *other;

static void open_all(const struct region_options *o)
{
    struct err err;
    region = region_open(o, &err);
    ck_assert_msg(region != NULL, "%s", region ? "" : err.text);
    table = budgets_new(region, region_seat_claim(region));
    other = budgets_new(region, region_seat_claim(region));
}

static void setup(void)
{
    open_all(&(struct region_options){0});
}

static void teardown(void)
{
    budgets_free(table);
    budgets_free(other);
    region_close(region);
}

static struct budget *named(struct budgets *t, const char *key, int64_t now_ns)
{
    return budgets_acquire(t, slice_str(key), slice_str(key), now_ns);
}

static struct budget *numbered(const char *prefix, unsigned i, int64_t now_ns)
{
    char key[32];
    snprintf(key, sizeof key, "%s-%u", prefix, i);
    return named(table, key, now_ns);
}

struct found {
    const char *label;
    struct budgets_entry entry;
    unsigned n, all;
};

static bool on_entry(void *arg, const struct budgets_entry *e)
{
    struct found *f = arg;
    f->all++;
    if (strcmp(e->label, f->label) != 0)
        return true;
    f->entry = *e;
    f->n++;
    return true;
}

static struct found look(const char *label, int64_t now_ns)
{
    struct found f = {.label = label};
    ck_assert(budgets_walk(region, now_ns, on_entry, &f));
    return f;
}

/* --- the port --- */

START_TEST(a_key_is_one_budget)
{
    struct budget *a = named(table, "s3|us-east-1|A", T0);
    struct budget *b = named(table, "s3|us-east-1|B", T0);
    struct budget *same = named(other, "s3|us-east-1|A", T0);
    ck_assert(a->ops->spend(a, 500, 500));
    ck_assert_uint_eq(a->ops->tokens(a, 500), 0);
    ck_assert_uint_eq(same->ops->tokens(same, 500), 0);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 500);
    ck_assert(!same->ops->spend(same, 1, 500));
    same->ops->refund(same, 14);
    ck_assert_uint_eq(a->ops->tokens(a, 500), 14);
    budgets_release(a);
    a = named(table, "s3|us-east-1|A", T0);
    ck_assert_uint_eq(a->ops->tokens(a, 500), 14);
    a->ops->refund(a, 10000);
    ck_assert_uint_eq(a->ops->tokens(a, 500), 500);
    budgets_release(a);
    budgets_release(b);
    budgets_release(same);
}
END_TEST

START_TEST(the_capacity_belongs_to_the_caller)
{
    struct budget *b = named(table, "k", T0);
    ck_assert(b->ops->spend(b, 14, 20));
    ck_assert(!b->ops->spend(b, 14, 20));
    ck_assert(b->ops->spend(b, 14, 500));
    ck_assert_uint_eq(b->ops->tokens(b, 20), 0);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 472);
    ck_assert(b->ops->spend(b, 1000000 - 28, 1000000));
    ck_assert(!b->ops->spend(b, 1, 1000000));
    ck_assert(b->ops->spend(b, 0, 1000000));
    ck_assert_uint_eq(b->ops->tokens(b, UINT32_MAX), SHM_DEBT_MAX - 1000000);
    ck_assert(!b->ops->spend(b, UINT32_MAX, UINT32_MAX));
    budgets_release(b);
}
END_TEST

START_TEST(seats_share_the_limiter)
{
    struct budget *a = named(table, "k", T0), *b = named(other, "k", T0);
    ck_assert_int_eq(a->ops->admit(a, T0), 0);
    ck_assert_int_eq(b->ops->admit(b, T0), 0);
    a->ops->observe(a, true, T0);
    ck_assert_int_eq(b->ops->admit(b, T0), 2 * NS_PER_S);
    ck_assert_int_eq(a->ops->admit(a, T0 + 2 * NS_PER_S), 0);
    ck_assert_int_eq(b->ops->admit(b, T0 + 2 * NS_PER_S), 2 * NS_PER_S);
    ck_assert_int_eq(b->ops->admit(b, T0 + 4 * NS_PER_S), 0);
    budgets_release(a);
    budgets_release(b);
}
END_TEST

/* The shared limiter decides like one in plain memory, whoever of the seats steps it. */
START_TEST(the_limiter_is_the_pure_one)
{
    struct limiter pure = {0}, next;
    struct budget *b[2] = {named(table, "k", T0), named(other, "k", T0)};
    int64_t now = T0, wait;
    for (unsigned i = 0; i < 20000; i++) {
        struct budget *use = b[(i * 7 / 3) % 2];
        now += (i * 7919) % 37 * NS_PER_MS;
        unsigned what = (i * 31) % 16;
        if (what < 10) {
            if (limiter_step(&pure, LIMITER_ACQUIRE, now, &next, &wait))
                pure = next;
            ck_assert_int_eq(use->ops->admit(use, now), wait);
        } else {
            bool throttled = i % 97 == 0;
            limiter_step(&pure, throttled ? LIMITER_THROTTLED : LIMITER_OK, now, &next, &wait);
            pure = next;
            use->ops->observe(use, throttled, now);
        }
    }
    ck_assert(pure.enabled);
    struct found f = look("k", now);
    ck_assert_uint_eq(f.n, 1);
    ck_assert(f.entry.limited);
    ck_assert(f.entry.rate_limit == pure.fill_rate && f.entry.rate_measured == pure.tx);
    budgets_release(b[0]);
    budgets_release(b[1]);
}
END_TEST

/* --- places --- */

static struct budgets_totals totals(void)
{
    struct budgets_totals t;
    budgets_totals(region, &t);
    return t;
}

START_TEST(invented_keys_share_the_overflow)
{
    unsigned spent = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct budget *b = numbered("made-up", i, T0);
        while (b->ops->spend(b, 250, 500))
            spent++;
        budgets_release(b);
    }
    struct budgets_totals t = totals();
    ck_assert_uint_le(spent, 2 * (REGION_SLOTS_DEFAULT + SHM_OVERFLOW));
    ck_assert_uint_gt(t.overflowed, 0);
    ck_assert_uint_eq(t.evicted, 0);
    ck_assert_uint_eq(t.slots, REGION_SLOTS_DEFAULT);
    ck_assert_uint_eq(t.seats, 2);

    struct budget *late = named(table, "late", T0);
    ck_assert_uint_eq(late->ops->tokens(late, 500), 0);
    late->ops->observe(late, true, T0);
    ck_assert_int_gt(late->ops->admit(late, T0), 0);
    budgets_release(late);
}
END_TEST

START_TEST(a_full_idle_budget_leaves_its_place)
{
    for (unsigned i = 0; i < 20000; i++) {
        struct budget *b = numbered("honest", i, T0);
        ck_assert(b->ops->spend(b, 14, 500));
        b->ops->refund(b, 14);
        budgets_release(b);
    }
    struct budgets_totals t = totals();
    ck_assert_uint_eq(t.overflowed, 0);
    ck_assert_uint_gt(t.evicted, 10000);
    ck_assert_uint_eq(t.entries, REGION_SLOTS_DEFAULT);
}
END_TEST

/* Fills all places with keys for which `use` was called at T0. */
static void fill(void (*use)(struct budget *b))
{
    for (unsigned i = 0; totals().entries < REGION_SLOTS_DEFAULT; i++) {
        struct budget *b = numbered("first", i, T0);
        use(b);
        budgets_release(b);
    }
}

static unsigned overflows_of_100(int64_t now_ns)
{
    uint64_t before = totals().overflowed;
    for (unsigned i = 0; i < 100; i++)
        budgets_release(numbered("second", i, now_ns));
    return (unsigned)(totals().overflowed - before);
}

static void owe(struct budget *b)
{
    b->ops->spend(b, 14, 500);
}

static void throttle(struct budget *b)
{
    b->ops->observe(b, true, T0);
}

static void measure(struct budget *b)
{
    b->ops->observe(b, false, T0);
}

START_TEST(a_debt_keeps_its_place_until_unused_for_long)
{
    fill(owe);
    ck_assert_uint_eq(overflows_of_100(T0 + 599 * NS_PER_S), 100);
    ck_assert_uint_eq(overflows_of_100(T0 + 600 * NS_PER_S), 0);
    struct budget *b = numbered("second", 1, T0);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 500);
    budgets_release(b);
}
END_TEST

START_TEST(a_limiter_keeps_its_place_until_unused_for_long)
{
    fill(throttle);
    ck_assert_uint_eq(overflows_of_100(T0 + 599 * NS_PER_S), 100);
    ck_assert_uint_eq(overflows_of_100(T0 + 600 * NS_PER_S), 0);
    struct budget *b = numbered("second", 1, T0);
    ck_assert_int_eq(b->ops->admit(b, T0 + 600 * NS_PER_S), 0);
    budgets_release(b);
}
END_TEST

START_TEST(a_measured_rate_is_soon_stale)
{
    fill(measure);
    ck_assert_uint_eq(overflows_of_100(T0 + 9 * NS_PER_S), 100);
    ck_assert_uint_eq(overflows_of_100(T0 + 10 * NS_PER_S), 0);
}
END_TEST

/* A request that lost its place under way owes nothing and finds another. */
START_TEST(an_evicted_entry_begins_again)
{
    struct budget *held = named(other, "held", T0);
    ck_assert(held->ops->spend(held, 100, 500));
    held->ops->refund(held, 100);
    for (unsigned i = 0; i % 1000 != 0 || look("held", T0).n > 0; i++)
        budgets_release(numbered("idle", i, T0));
    ck_assert_uint_eq(held->ops->tokens(held, 500), 500);
    held->ops->refund(held, 5);
    ck_assert(held->ops->spend(held, 14, 500));
    ck_assert_uint_eq(held->ops->tokens(held, 500), 486);
    held->ops->observe(held, true, T0);
    ck_assert_int_gt(held->ops->admit(held, T0), 0);
    budgets_wait(held, 1);
    budgets_release(held);
}
END_TEST

/* What a slot's client before left in it is as if it was not there. */
START_TEST(a_slot_changes_hands_whole)
{
    struct budget *a = named(table, "a", T0);
    a->ops->observe(a, true, T0);
    a->ops->spend(a, 14, 500);
    budgets_wait(a, 1);
    struct shm_slot *slot = NULL;
    uint32_t i = 0;
    for (; i < region->n_slots && slot == NULL; i++)
        if (atomic_load(&region->slots[i].word) != 0)
            slot = &region->slots[i];
    ck_assert_ptr_nonnull(slot);
    /* The word alone goes over, as if the claimer was killed at once. */
    uint64_t word = atomic_load(&slot->word);
    atomic_store(&slot->word, shm_word(shm_id(word) ^ 1, 0));
    struct found f = look("", T0);
    ck_assert_uint_eq(f.n, 1);
    ck_assert_uint_eq(f.all, 1);
    ck_assert(!f.entry.limited);
    ck_assert_uint_eq(f.entry.throttles + f.entry.granted + f.entry.waiting, 0);
    ck_assert_uint_eq(f.entry.tokens, 500);
    /* The one before finds another place. */
    ck_assert_int_eq(a->ops->admit(a, T0), 0);
    ck_assert(a->ops->spend(a, 5, 500));
    ck_assert_uint_eq(look("", T0).all, 2);
    ck_assert_uint_eq(look("", T0).entry.tokens, 495);
    budgets_release(a);
    budgets_release(named(other, "a", T0));
    ck_assert_uint_eq(look("a", T0).entry.tokens, 495);
}
END_TEST

/* --- people --- */

START_TEST(the_walk_tells_what_happened)
{
    struct budget *a = named(table, "sqs/eu-west-1/…WXYZ", T0), *b = named(other, "x", T0);
    struct budget *same = named(other, "sqs/eu-west-1/…WXYZ", T0);
    a->ops->spend(a, 14, 20);
    same->ops->spend(same, 14, 20);
    a->ops->observe(a, true, T0 + NS_PER_S);
    same->ops->observe(same, true, T0 + 2 * NS_PER_S);
    budgets_wait(a, 1);
    budgets_wait(same, 1);
    budgets_wait(same, 1);
    struct found f = look("sqs/eu-west-1/…WXYZ", T0 + 4 * NS_PER_S);
    ck_assert_uint_eq(f.n, 1);
    ck_assert_uint_eq(f.all, 2);
    ck_assert_uint_ne(f.entry.fingerprint, 0);
    ck_assert_uint_eq(f.entry.tokens, 6);
    ck_assert_uint_eq(f.entry.capacity, 20);
    ck_assert_uint_eq(f.entry.granted, 1);
    ck_assert_uint_eq(f.entry.refused, 1);
    ck_assert_uint_eq(f.entry.throttles, 2);
    ck_assert_uint_eq(f.entry.waiting, 3);
    ck_assert(f.entry.limited);
    ck_assert(f.entry.rate_limit >= 0.5 && f.entry.rate_measured > 0.0);
    ck_assert(f.entry.send_tokens >= 0.9 && f.entry.send_tokens <= f.entry.send_capacity);
    ck_assert_int_eq(f.entry.changed_ns, T0 + 2 * NS_PER_S);
    budgets_wait(a, -1);
    budgets_wait(a, -1);
    budgets_wait(same, -1);
    ck_assert_uint_eq(look("sqs/eu-west-1/…WXYZ", T0).entry.waiting, 1);
    budgets_release(a);
    budgets_release(b);
    budgets_release(same);
}
END_TEST

static bool stop(void *arg, const struct budgets_entry *e)
{
    (void)e;
    ++*(unsigned *)arg;
    return false;
}

START_TEST(the_walk_can_be_stopped)
{
    unsigned n = 0;
    ck_assert(budgets_walk(region, T0, stop, &n));
    budgets_release(named(table, "a", T0));
    budgets_release(named(table, "b", T0));
    ck_assert(!budgets_walk(region, T0, stop, &n));
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(those_who_wait_go_with_their_seat)
{
    struct budget *b = named(table, "k", T0);
    budgets_wait(b, 1);
    ck_assert_uint_eq(look("k", T0).entry.waiting, 1);
    region_seat_release(region, 0);
    ck_assert_uint_eq(look("k", T0).entry.waiting, 0);
    ck_assert_int_eq(region_seat_claim(region), 0);
    ck_assert_uint_eq(look("k", T0).entry.waiting, 0);
    budgets_release(b);
    budgets_free(table);
    table = budgets_new(region, 0);
    b = named(table, "k", T0);
    budgets_wait(b, 1);
    ck_assert_uint_eq(look("k", T0).entry.waiting, 1);
    budgets_release(b);
}
END_TEST

START_TEST(labels_are_cut_and_never_torn)
{
    const char *text = "0123456789012345678901234567890123456789012345678901234567890";
    char cut[BUDGETS_LABEL_MAX + 1] = "";
    memcpy(cut, text, BUDGETS_LABEL_MAX);
    budgets_release(named(table, text, T0));
    ck_assert_uint_eq(look(cut, T0).n, 1);
    for (uint32_t i = 0; i < region->n_slots; i++)
        if (atomic_load(&region->slots[i].word) != 0)
            atomic_fetch_xor(&region->slots[i].label[3], 1);
    ck_assert_uint_eq(look(cut, T0).n, 0);
    ck_assert_uint_eq(look("", T0).n, 1);
}
END_TEST

START_TEST(reset_makes_new)
{
    struct budget *a = named(table, "a", T0), *b = named(table, "b", T0);
    struct budget *both[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        both[i]->ops->spend(both[i], 500, 500);
        both[i]->ops->observe(both[i], true, T0);
    }
    ck_assert_uint_eq(budgets_reset(region, SLICE("c")), 0);
    ck_assert_uint_eq(budgets_reset(region, SLICE("")), 0);
    ck_assert_uint_eq(budgets_reset(region, SLICE("0")), 0);
    ck_assert_uint_eq(budgets_reset(region, SLICE("a")), 1);
    ck_assert_uint_eq(a->ops->tokens(a, 500), 500);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 0);
    ck_assert_int_eq(a->ops->admit(a, T0), 0);
    ck_assert_int_gt(b->ops->admit(b, T0), 0);
    char hex[17];
    snprintf(hex, sizeof hex, "%llx", (unsigned long long)look("b", T0).entry.fingerprint);
    ck_assert_uint_eq(budgets_reset(region, slice_str(hex)), 1);
    ck_assert_uint_eq(b->ops->tokens(b, 500), 500);
    ck_assert_int_eq(b->ops->admit(b, T0), 0);
    budgets_release(a);
    budgets_release(b);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("budgets");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_key_is_one_budget);
    tcase_add_test(tc, the_capacity_belongs_to_the_caller);
    tcase_add_test(tc, seats_share_the_limiter);
    tcase_add_test(tc, the_limiter_is_the_pure_one);
    tcase_add_test(tc, invented_keys_share_the_overflow);
    tcase_add_test(tc, a_full_idle_budget_leaves_its_place);
    tcase_add_test(tc, a_debt_keeps_its_place_until_unused_for_long);
    tcase_add_test(tc, a_limiter_keeps_its_place_until_unused_for_long);
    tcase_add_test(tc, a_measured_rate_is_soon_stale);
    tcase_add_test(tc, an_evicted_entry_begins_again);
    tcase_add_test(tc, a_slot_changes_hands_whole);
    tcase_add_test(tc, the_walk_tells_what_happened);
    tcase_add_test(tc, the_walk_can_be_stopped);
    tcase_add_test(tc, those_who_wait_go_with_their_seat);
    tcase_add_test(tc, labels_are_cut_and_never_torn);
    tcase_add_test(tc, reset_makes_new);
    return tc;
}

UNIT_MAIN("budgets", cases)
