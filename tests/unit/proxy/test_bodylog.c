/* The body log: what goes in comes out, from byte 0, as often as asked; over the caps it gives up
 * replay, never bytes that a reader still needs. */
#include "core/base/units.h"
#include "core/base/xalloc.h"
#include "proxy/bodylog.h"
#include "unit.h"

enum { BLOCK = BODYLOG_BLOCK_BYTES };

static struct bodylog_shared shared;
static struct bodylog log_;

static void setup(void)
{
    shared = (struct bodylog_shared){.memory_max = 64 * MIB, .disk_max = 64 * MIB, .dir = "/tmp"};
}

/* Byte i of every test body. */
static char byte_at(uint64_t i)
{
    return (char)(i * 31 + (i >> 8) * 7);
}

/* Appends n bytes in pieces as the room allows; returns what went in. */
static uint64_t feed(const struct bodycur *cur, uint64_t n)
{
    char piece[1000];
    uint64_t done = 0;
    while (done < n) {
        size_t room = bodylog_room(&log_, cur);
        if (room == 0)
            break;
        size_t take = sizeof piece < room ? sizeof piece : room;
        if (take > n - done)
            take = (size_t)(n - done);
        for (size_t i = 0; i < take; i++)
            piece[i] = byte_at(log_.end + i);
        bodylog_append(&log_, cur, slice_of(piece, take));
        done += take;
    }
    return done;
}

static void check_read(struct bodycur *cur, uint64_t until)
{
    while (cur->at < until) {
        struct slice s;
        ck_assert(bodylog_peek(&log_, cur, &s));
        ck_assert_uint_gt(s.n, 0);
        size_t wrong = 0;
        for (size_t i = 0; i < s.n; i++)
            wrong += s.p[i] != byte_at(cur->at + i);
        ck_assert_uint_eq(wrong, 0);
        bodylog_advance(&log_, cur, s.n);
    }
}

START_TEST(replays_from_memory)
{
    bodylog_init(&log_, &shared, 1 * MIB, 0);
    struct bodycur a = {0};
    ck_assert_uint_eq(feed(&a, 100000), 100000);
    check_read(&a, 100000);
    bodylog_finish(&log_, NULL);
    ck_assert(bodylog_at_end(&log_, &a));
    struct bodycur b = {0};
    check_read(&b, 100000);
    ck_assert(!log_.unreplayable);
    ck_assert_int_eq(log_.fd, -1);
    bodylog_fini(&log_);
    ck_assert_uint_eq(shared.memory_used, 0);
}
END_TEST

START_TEST(replays_from_the_file)
{
    bodylog_init(&log_, &shared, 4 * BLOCK, 4 * MIB);
    struct bodycur a = {0};
    ck_assert_uint_eq(feed(&a, 1 * MIB), 1 * MIB);
    ck_assert_uint_le(log_.memory_held, 4 * BLOCK);
    ck_assert_int_ge(log_.fd, 0);
    check_read(&a, 1 * MIB);
    for (int i = 0; i < 2; i++) {
        struct bodycur b = {0};
        check_read(&b, 1 * MIB);
    }
    ck_assert(!log_.unreplayable);
    bodylog_fini(&log_);
    ck_assert_uint_eq(shared.memory_used, 0);
    ck_assert_uint_eq(shared.disk_used, 0);
}
END_TEST

START_TEST(exactly_the_cap_is_replayable_one_byte_more_is_not)
{
    bodylog_init(&log_, &shared, 1 * MIB, 0);
    struct bodycur a = {0};
    ck_assert_uint_eq(feed(&a, 1 * MIB), 1 * MIB);
    ck_assert(!log_.unreplayable);
    check_read(&a, 1 * MIB);
    ck_assert_uint_eq(feed(&a, 1), 1);
    ck_assert(log_.unreplayable);
    check_read(&a, 1 * MIB + 1);
    bodylog_fini(&log_);
}
END_TEST

START_TEST(caps_count_bytes_not_blocks)
{
    static const struct {
        uint64_t memory, disk;
    } caps[] = {{1, 0},        {4096, 0}, {0, 100}, {BLOCK + 1, 0}, {BLOCK - 1, BLOCK + 5},
                {3 * BLOCK, 7}};
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        uint64_t cap = caps[i].memory + caps[i].disk;
        bodylog_init(&log_, &shared, caps[i].memory, caps[i].disk);
        struct bodycur a = {0};
        ck_assert_uint_eq(feed(NULL, cap + BLOCK), cap);
        ck_assert(!log_.unreplayable);
        check_read(&a, cap);
        struct bodycur b = {0};
        check_read(&b, cap);
        ck_assert_uint_eq(feed(&b, 1), 1);
        ck_assert(log_.unreplayable);
        check_read(&b, cap + 1);
        bodylog_fini(&log_);
        ck_assert_uint_eq(shared.memory_used, 0);
        ck_assert_uint_eq(shared.disk_used, 0);
    }
}
END_TEST

START_TEST(a_stream_over_the_cap_flows_within_the_window)
{
    bodylog_init(&log_, &shared, 4 * BLOCK, 0);
    struct bodycur a = {0};
    uint64_t total = 0;
    while (total < 16 * MIB) {
        uint64_t n = feed(&a, 3 * MIB);
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_le(log_.end - a.at, BODYLOG_WINDOW_BYTES + BLOCK);
        total += n;
        check_read(&a, total);
        ck_assert_uint_le(log_.memory_held, BODYLOG_WINDOW_BYTES + 5 * BLOCK);
    }
    ck_assert(log_.unreplayable);
    bodylog_fini(&log_);
    ck_assert_uint_eq(shared.memory_used, 0);
}
END_TEST

START_TEST(without_a_reader_a_full_log_pauses_and_loses_nothing)
{
    bodylog_init(&log_, &shared, 4 * BLOCK, 0);
    ck_assert_uint_eq(feed(NULL, 1 * MIB), 4 * BLOCK);
    ck_assert_uint_eq(bodylog_room(&log_, NULL), 0);
    ck_assert(!log_.unreplayable);
    struct bodycur a = {0};
    check_read(&a, 4 * BLOCK);
    bodylog_fini(&log_);
}
END_TEST

START_TEST(a_full_disk_costs_the_replay_only)
{
    shared.dir = "/proc"; /* takes no files */
    bodylog_init(&log_, &shared, 2 * BLOCK, 4 * MIB);
    struct bodycur a = {0};
    uint64_t total = 0;
    while (total < 1 * MIB) {
        total += feed(&a, 100000);
        check_read(&a, total);
    }
    ck_assert(log_.unreplayable);
    ck_assert_uint_eq(shared.disk_used, 0);
    bodylog_fini(&log_);
}
END_TEST

START_TEST(the_shared_total_is_a_cap_too)
{
    shared.memory_max = 8 * BLOCK;
    struct bodylog other;
    bodylog_init(&other, &shared, 1 * MIB, 0);
    bodylog_init(&log_, &shared, 1 * MIB, 0);
    struct bodycur a = {0};
    ck_assert_uint_eq(feed(&a, 8 * BLOCK), 8 * BLOCK);
    struct bodycur b = {0};
    char x[100] = {0};
    ck_assert_uint_gt(bodylog_room(&other, &b), sizeof x);
    bodylog_append(&other, &b, slice_of(x, sizeof x));
    ck_assert(other.unreplayable); /* goes through, once */
    ck_assert(!log_.unreplayable);
    bodylog_fini(&other);
    bodylog_fini(&log_);
    ck_assert_uint_eq(shared.memory_used, 0);
}
END_TEST

START_TEST(given_up_forgets_behind_the_reader)
{
    bodylog_init(&log_, &shared, 1 * MIB, 0);
    bodylog_give_up(&log_);
    ck_assert_uint_eq(bodylog_room(&log_, NULL), 0);
    struct bodycur a = {0};
    feed(&a, 200000);
    check_read(&a, 200000);
    ck_assert_uint_le(log_.memory_held, BLOCK);
    bodylog_fini(&log_);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("bodylog");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, replays_from_memory);
    tcase_add_test(tc, replays_from_the_file);
    tcase_add_test(tc, exactly_the_cap_is_replayable_one_byte_more_is_not);
    tcase_add_test(tc, caps_count_bytes_not_blocks);
    tcase_add_test(tc, a_stream_over_the_cap_flows_within_the_window);
    tcase_add_test(tc, without_a_reader_a_full_log_pauses_and_loses_nothing);
    tcase_add_test(tc, a_full_disk_costs_the_replay_only);
    tcase_add_test(tc, the_shared_total_is_a_cap_too);
    tcase_add_test(tc, given_up_forgets_behind_the_reader);
    return tc;
}

UNIT_MAIN("bodylog", cases)
