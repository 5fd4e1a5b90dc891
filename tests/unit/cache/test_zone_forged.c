/*
 * A compromised process writes numbers of nodes, sizes and sequence numbers into the index: other processes read and
 * write nothing outside of it, every call returns, and the index can be used afterwards.
 */
#include "cache/cache_zone.h"

#include "base/limits.h"
#include "base/shared_zone.h"
#include "cache_fixture.h"
#include "../http/suite.h"
#include "../overwrite.h"

#include <string.h>

#define SIZE  (32 * 1024)
#define NODES 400 /* more than the index has */

/* Offsets from the hash of a node. */
enum { SEQUENCE = 16, BYTES = 24, PURGED = 32, NEXT = 56, NEWER = 60, OLDER = 64, USED = 68, KNOWN = 80 };

static const uint32_t numbers[] = {0, 1, 2, 300, 2000, 0x10000, 0x7fffffff, UINT32_MAX};

static struct cache_zone *zone;
static struct cache_victims victims;

static void open_zone(void)
{
    zone = cache_zone_create(SIZE, 1000);
    ck_assert_ptr_nonnull(zone);
}

/* Hashes with the same first four bytes are in one chain. Hash i of a new index has node i. */
static struct cache_hash hash_at(uint32_t i, unsigned char last)
{
    struct cache_hash hash = {{(unsigned char)i, (unsigned char)(i >> 8), 0, 0, 0xaa, 0xbb, 0xcc, 0xdd}};

    hash.bytes[15] = last;
    return hash;
}

static int publish(uint32_t i, unsigned char last)
{
    struct cache_id id = {hash_at(i, last), cache_zone_sequence(zone)};

    victims.count = 0;
    return cache_zone_publish(zone, &id, 10, &(struct cache_origin){id.hash, id.sequence}, i, &victims);
}

static void publish_first(uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++)
        ck_assert_int_eq(publish(i, 0), 0);
}

/* Writes a field of the node of a hash, as a compromised process could. */
static void forge_field(uint32_t i, int field, uint32_t value)
{
    struct cache_hash hash = hash_at(i, 0);
    ssize_t offset = str_search(str_of((const char *)zone, SIZE), str_of((const char *)&hash, sizeof(hash)));

    ck_assert_int_ge(offset, 0);
    memcpy((char *)zone + offset + field, &value, sizeof(value));
}

static bool is_stored(uint32_t i)
{
    struct cache_hash hash = hash_at(i, 1);
    struct cache_view view = {0};

    return cache_zone_find(zone, &hash, false, 0, &view, &victims) && view.sequence != 0 &&
           cache_zone_current(zone, view.node, view.sequence, view.size, 1);
}

/* Functions for one hash. The capacity of `victims` is not exceeded. */
static void use_hash(uint32_t i)
{
    struct cache_hash hash = hash_at(i, (unsigned char)(i % 3));
    struct cache_view view = {.node = 1};
    const uint64_t holder = (uint64_t)i * LIMIT_WORKERS + 1;

    (void)publish(i, (unsigned char)(i % 2));
    ck_assert_uint_le(victims.count, CACHE_VICTIMS);
    (void)cache_zone_find(zone, &hash, i % 2, i, &view, &victims);
    ck_assert_uint_le(victims.count, CACHE_VICTIMS);
    (void)cache_zone_current(zone, view.node, view.sequence, view.size, i);
    (void)cache_zone_grow(zone, view.node, view.sequence, view.size + 1);
    (void)cache_zone_fill_lock(zone, &hash, holder, i, i + 5, &victims);
    (void)cache_zone_fill_locked(zone, &hash, i);
    if (i % 2)
        cache_zone_fill_unlock(zone, &hash, holder);
    if (i % 16 == 5)
        (void)cache_zone_purge(zone, &hash, i, &victims);
    if (i % 16 == 6)
        (void)cache_zone_remove(zone, &hash, view.sequence, &victims);
    ck_assert(cache_zone_adopt(zone, &(struct cache_id){hash, i}, i, i, &victims) <= 0);
    ck_assert_uint_le(victims.count, CACHE_VICTIMS);
}

/* Functions for the whole index. */
static void use_index(void)
{
    struct cache_file files[CACHE_VICTIMS];
    struct cache_totals totals;
    uint32_t cursor = 0;
    bool more = true;

    while (more)
        ck_assert_uint_le(cache_zone_files(zone, &cursor, UINT64_MAX, files, &more), CACHE_VICTIMS);
    ck_assert_uint_lt(cursor, NODES);
    victims.count = 0;
    (void)cache_zone_evict(zone, 5, 1000, 10, &victims);
    ck_assert_uint_le(victims.count, CACHE_VICTIMS);
    (void)cache_zone_refuse_fetches(zone);
    cache_zone_abandon(zone, 1);
    cache_zone_totals(zone, &totals);
    (void)cache_zone_acquire_leadership(zone, 2, 1000, 500);
    cache_zone_scan_done(zone, cache_zone_scans_requested(zone));
}

static void use_zone(void)
{
    for (uint32_t i = 0; i < 2 * NODES; i++)
        use_hash(i);
    use_index();
}

/* Responses are stored and found; damage that is found only now empties the index. */
static void expect_cache(void)
{
    unsigned lost = 0;

    for (uint32_t i = 0; i < 4 * NODES; i++)
        lost += publish(i + 10000, 1) < 0 || !is_stored(i + 10000);
    ck_assert_uint_le(lost, 2);
    ck_assert(cache_zone_acquire_leadership(zone, 3, 100000, 500));
}

static void use_and_destroy(void)
{
    use_zone();
    expect_cache();
    cache_zone_destroy(zone);
}

/* Numbers of nodes that do not exist, or that make a chain, the list or the free list a loop; and other fields. */
START_TEST(forged_fields)
{
    static const int fields[] = {SEQUENCE, BYTES, PURGED, NEXT, NEWER, OLDER, USED, KNOWN};

    for (size_t value = 0; value < COUNT(numbers); value++) {
        open_zone();
        publish_first(20);
        for (uint32_t i = 1; i <= 20; i += 3)
            forge_field(i, fields[_i], numbers[value]);
        for (uint32_t i = 1; i <= 20; i++)
            use_hash(i);
        use_and_destroy();
    }
}
END_TEST

/* Without a limit, the search of a hash that is not in its chain would never end. */
START_TEST(loop_in_a_chain)
{
    struct cache_hash hash = hash_at(5, 9);
    struct cache_view view;

    open_zone();
    publish_first(20);
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(i, NEXT, i);
    if (_i == 0)
        ck_assert(!cache_zone_find(zone, &hash, false, 0, &view, &victims));
    else if (_i == 1)
        ck_assert(cache_zone_find(zone, &hash, true, 0, &view, &victims));
    else if (_i == 2)
        ck_assert(!cache_zone_purge(zone, &hash, 0, &victims));
    else
        cache_zone_fill_unlock(zone, &hash, 1);
    use_and_destroy();
}
END_TEST

/* The node to be removed is not in the chain of its hash. */
START_TEST(forged_hashes)
{
    open_zone();
    publish_first(20);
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(i, 0, 77);
    while (cache_zone_evict(zone, UINT32_MAX, 0, 0, &victims))
        victims.count = 0;
    use_and_destroy();
}
END_TEST

/* Nodes that all name the same next one, or themselves. */
START_TEST(loop_in_the_list)
{
    open_zone();
    publish_first(20);
    for (uint32_t i = 1; i <= 20; i++)
        forge_field(i, _i == 0 ? NEWER : OLDER, _i == 0 ? i : 7);
    while (cache_zone_evict(zone, UINT32_MAX, 0, 0, &victims))
        victims.count = 0;
    use_and_destroy();
}
END_TEST

static unsigned logged;

static void count_line(void *owner, enum log_level level, struct str line)
{
    logged += level == LOG_ALERT && str_search(line, STR("cache \"one\"")) >= 0;
}

/* The files are still in the directory: another scan finds them. Until it is done, the index is not complete. */
START_TEST(emptied_index_requests_a_scan)
{
    struct log log = {.level = LOG_ALERT, .sink = count_line};
    uint64_t scan;

    open_zone();
    cache_zone_set_log(zone, &log, STR("one"));
    cache_zone_scan_done(zone, cache_zone_scans_requested(zone));
    ck_assert(cache_zone_loaded(zone));
    ck_assert_int_eq(publish(5, 1), 0);
    ck_assert_int_eq(publish(5, 0), 0);
    forge_field(5, NEXT, UINT32_MAX);
    ck_assert(!is_stored(5));
    ck_assert_uint_eq(logged, 0);
    scan = cache_zone_scans_requested(zone);
    use_hash(6);
    ck_assert_uint_eq(logged, 1);
    ck_assert(!cache_zone_loaded(zone));
    ck_assert_uint_gt(cache_zone_scans_requested(zone), scan);
    cache_zone_scan_done(zone, scan);
    ck_assert(!cache_zone_loaded(zone));
    cache_zone_scan_done(zone, cache_zone_scans_requested(zone));
    ck_assert(cache_zone_loaded(zone));
    cache_zone_destroy(zone);
}
END_TEST

/* A forged end of the leadership does not stop the cache manager for ever. */
START_TEST(forged_leadership_ends)
{
    open_zone();
    ck_assert(cache_zone_acquire_leadership(zone, 1, 1000000, 500));
    ck_assert(cache_zone_acquire_leadership(zone, 2, 1000, 500));
    ck_assert(!cache_zone_acquire_leadership(zone, 1, 1100, 500));
    cache_zone_destroy(zone);
}
END_TEST

/* More victims than a call can have are left out. */
START_TEST(victims_are_limited)
{
    struct cache_id id = cache_fixture_id(1, 5);

    for (unsigned i = 0; i < CACHE_VICTIMS + 5; i++)
        cache_victims_add(&victims, &id);
    ck_assert_uint_eq(victims.count, CACHE_VICTIMS);
}
END_TEST

/* Every number after the header of the zone has the same value. */
START_TEST(overwritten_index_recovers)
{
    open_zone();
    publish_first(20);
    overwrite_zone((struct shared_zone *)zone, SIZE, numbers[_i]);
    use_and_destroy();
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
    const TTest *const tests[] = {forged_hashes, emptied_index_requests_a_scan, forged_leadership_ends,
                                  victims_are_limited};
    const struct suite_loop loops[] = {{forged_fields, 8},
                                       {loop_in_a_chain, 4},
                                       {loop_in_the_list, 2},
                                       {overwritten_index_recovers, COUNT(numbers)},
                                       {other_process_writes_meanwhile, 3}};

    return suite_run_loops("zone_forged", tests, COUNT(tests), loops, COUNT(loops));
}
