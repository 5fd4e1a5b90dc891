/*
 * A compromised process writes numbers of entries, lengths and counts into a zone: other processes read and write
 * nothing outside of it, every call returns, and the zone can be used afterwards.
 */
#include "limit/limit_zone.h"
#include "base/shared_zone.h"

#include "../http/suite.h"
#include "../overwrite.h"

#include <string.h>

#define SIZE (64 * 1024)
#define RATE 60 /* drops per millisecond: one request per second */

/* Offsets from the key of an entry. */
enum { LEVEL = 8, NEXT = 24, NEWER = 28, OLDER = 32, WORKER = 36, KNOWN = 40 };

static const uint32_t numbers[] = {0, 1, 2, 500, 2000, 0x10000, 0x7fffffff, UINT32_MAX};

static struct limit_zone *zone;

static uint32_t keys_max(void)
{
    struct limit_zone_totals totals;

    limit_zone_totals(zone, &totals);
    return totals.keys_max;
}

static void open_zone(void)
{
    zone = limit_zone_create(SIZE);
    ck_assert_ptr_nonnull(zone);
}

static bool fill_bucket(uint64_t key)
{
    uint64_t level;

    return limit_zone_fill(zone, key, RATE, 0, 1000, &level);
}

/* No other number in the zone is equal to it. Key i of a new zone has entry i. */
static uint64_t key_at(uint32_t i)
{
    return UINT64_C(0x5eed0000) * keys_max() + i;
}

/* Writes a field of the entry of a key, as a compromised process could. */
static void forge_field(uint64_t key, int field, uint32_t value)
{
    struct str memory = str_of((const char *)zone, SIZE);
    ssize_t offset = str_search(memory, str_of((const char *)&key, sizeof(key)));

    ck_assert_int_ge(offset, 0);
    memcpy((char *)zone + offset + field, &value, sizeof(value));
}

/* Every function, with keys of all chains. More keys than entries: some are evicted, and a zone of counts is full. */
static void use_zone(void)
{
    struct limited_key limited[LIMIT_LIMITED_KEYS];
    uint64_t count = 2 * (uint64_t)keys_max() + 10;
    struct limit_zone_totals totals;
    size_t rows;

    for (uint64_t key = 0; key < count; key++) {
        (void)fill_bucket(key * 7);
        limit_zone_undo(zone, key * 5);
        if (limit_zone_enter(zone, key * 3, 2, 5))
            limit_zone_leave(zone, key * 3, 2);
        (void)limit_zone_enter(zone, key, 1, 5);
        limit_zone_leave(zone, key / 2, 1);
    }
    limit_zone_abandon(zone, 1);
    limit_zone_record(zone, STR("key"), 1, LIMIT_REJECTED, 5);
    limit_zone_totals(zone, &totals);
    ck_assert_uint_eq(totals.keys_max, keys_max());
    rows = limit_zone_limited(zone, limited);
    ck_assert_uint_le(rows, LIMIT_LIMITED_KEYS);
    for (size_t i = 0; i < rows; i++)
        ck_assert_uint_le(limited[i].length, LIMIT_LIMITED_KEY);
}

/* Limits work again; damage that is found only now empties the zone, which can lose one request. */
static void expect_limits(void)
{
    unsigned lost = 0;

    for (uint64_t key = 0; key < 3 * (uint64_t)keys_max(); key++) {
        lost += !fill_bucket(key + 1000000);
        lost += fill_bucket(key + 1000000);
    }
    ck_assert_uint_le(lost, 2);
}

static void use_and_destroy(void)
{
    use_zone();
    expect_limits();
    limit_zone_destroy(zone);
}

/* Numbers of entries that do not exist, or that make a chain, the list or the free list a loop. */
START_TEST(forged_numbers_of_entries)
{
    static const int fields[] = {NEXT, NEWER, OLDER, WORKER, KNOWN};

    for (size_t value = 0; value < COUNT(numbers); value++) {
        open_zone();
        for (uint32_t i = 1; i <= 20; i++)
            ck_assert(fill_bucket(key_at(i)));
        for (uint32_t i = 1; i <= 20; i += 3)
            forge_field(key_at(i), fields[_i], numbers[value]);
        for (uint32_t i = 1; i <= 20; i++)
            (void)fill_bucket(key_at(i));
        use_and_destroy();
    }
}
END_TEST

/* The chain of a key that is not in it: without a limit, the search would never end. */
START_TEST(loop_in_a_chain)
{
    open_zone();
    for (uint32_t i = 1; i <= 20; i++)
        ck_assert(fill_bucket(key_at(i)));
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(key_at(i), NEXT, i);
    if (_i == 0)
        ck_assert(fill_bucket(key_at(5) + keys_max()));
    else if (_i == 1)
        ck_assert(limit_zone_enter(zone, key_at(5) + keys_max(), 1, 2));
    else if (_i == 2)
        limit_zone_leave(zone, key_at(5) + keys_max(), 1);
    else
        limit_zone_undo(zone, key_at(5) + keys_max());
    use_and_destroy();
}
END_TEST

/* The entry to be evicted is not in the chain of its key. */
START_TEST(forged_keys)
{
    open_zone();
    for (uint32_t i = 1; i <= keys_max(); i++)
        ck_assert(fill_bucket(key_at(i)));
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(key_at(i), 0, 77);
    ck_assert(fill_bucket(5));
    use_and_destroy();
}
END_TEST

/* Eviction after eviction follows a list whose entries all name the same next one. */
START_TEST(loop_in_the_list)
{
    open_zone();
    for (uint32_t i = 1; i <= keys_max(); i++)
        ck_assert(fill_bucket(key_at(i)));
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(key_at(i), _i == 0 ? NEWER : OLDER, _i == 0 ? i : 7);
    for (uint64_t key = 1; key < 100; key++)
        ck_assert(fill_bucket(key));
    use_and_destroy();
}
END_TEST

START_TEST(forged_counts_of_requests)
{
    open_zone();
    ck_assert(limit_zone_enter(zone, key_at(1), 1, 3));
    ck_assert(limit_zone_enter(zone, key_at(2), 1, 3));
    forge_field(key_at(1), LEVEL, UINT32_MAX);
    forge_field(key_at(2), LEVEL, 0);
    ck_assert(!limit_zone_enter(zone, key_at(1), 1, 3));
    limit_zone_leave(zone, key_at(2), 1);
    limit_zone_abandon(zone, 1);
    ck_assert(limit_zone_enter(zone, key_at(1), 2, 1));
    ck_assert(limit_zone_enter(zone, key_at(2), 2, 1));
    use_and_destroy();
}
END_TEST

/* Every number after the header of the zone has the same value. */
START_TEST(overwritten_zone_recovers)
{
    open_zone();
    ck_assert(fill_bucket(1));
    limit_zone_record(zone, STR("key"), 1, LIMIT_REJECTED, 5);
    overwrite_zone((struct shared_zone *)zone, SIZE, numbers[_i]);
    use_and_destroy();
}
END_TEST

static unsigned logged;

static void count_line(void *owner, enum log_level level, struct str line)
{
    logged += level == LOG_ALERT && str_search(line, STR("limit_req \"one\"")) >= 0;
}

START_TEST(damage_is_logged)
{
    struct log log = {.level = LOG_ALERT, .sink = count_line};

    open_zone();
    limit_zone_set_log(zone, &log, "limit_req", STR("one"));
    ck_assert(fill_bucket(1));
    (void)fill_bucket(1);
    ck_assert_uint_eq(logged, 0);
    overwrite_zone((struct shared_zone *)zone, SIZE, UINT32_MAX);
    use_and_destroy();
    ck_assert_uint_ge(logged, 1);
}
END_TEST

START_TEST(other_process_writes_meanwhile)
{
    open_zone();
    use_while_other_process_writes(use_zone, (uint64_t)_i);
    use_and_destroy();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {forged_keys, forged_counts_of_requests, damage_is_logged};
    const struct suite_loop loops[] = {{forged_numbers_of_entries, 5},
                                       {loop_in_a_chain, 4},
                                       {loop_in_the_list, 2},
                                       {overwritten_zone_recovers, COUNT(numbers)},
                                       {other_process_writes_meanwhile, 3}};

    return suite_run_loops("limit_zone_forged", tests, COUNT(tests), loops, COUNT(loops));
}
