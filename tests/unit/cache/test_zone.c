#include "cache/cache_zone.h"

#include "base/limits.h"
#include "cache_fixture.h"
#include "../overwrite.h"
#include "../skip.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (32 * 1024)

static struct cache_zone *zone;
static struct cache_victims victims;

static struct cache_view view_of(unsigned char hash)
{
    struct cache_id id = cache_fixture_id(hash, 0);
    struct cache_view view = {0};

    (void)cache_zone_find(zone, &id.hash, false, 0, &view, &victims);
    return view;
}

static int publish(unsigned char hash, uint64_t sequence, uint64_t size, uint32_t now_s)
{
    struct cache_id id = cache_fixture_id(hash, sequence);

    victims.count = 0;
    return cache_zone_publish(zone, &id, size, &(struct cache_origin){id.hash, UINT64_MAX}, now_s, &victims);
}

static struct cache_totals totals(void)
{
    struct cache_totals now;

    cache_zone_totals(zone, &now);
    return now;
}

START_TEST(stored_and_replaced)
{
    struct cache_id id = cache_fixture_id(1, 0);

    zone = cache_zone_create(SIZE, 1000);
    ck_assert_ptr_nonnull(zone);
    ck_assert_uint_gt(cache_zone_sequence(zone), 1000);
    ck_assert_uint_eq(view_of(1).sequence, 0);
    ck_assert_int_eq(publish(1, 5, 100, 1), 0);
    ck_assert_uint_eq(victims.count, 0);
    ck_assert_uint_eq(view_of(1).sequence, 5);
    ck_assert(cache_zone_current(zone, view_of(1).node, 5, 100, 1));
    ck_assert(!cache_zone_current(zone, view_of(1).node, 4, 100, 1));
    ck_assert(!cache_zone_current(zone, view_of(1).node, 5, 99, 1));
    ck_assert_int_eq(publish(1, 6, 70, 2), 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(victims.ids[0].sequence, 5);
    ck_assert_uint_eq(totals().bytes, 70);
    ck_assert(cache_zone_grow(zone, view_of(1).node, 6, 90));
    ck_assert(!cache_zone_grow(zone, view_of(1).node, 5, 95));
    ck_assert_uint_eq(totals().bytes, 90);
    victims.count = 0;
    ck_assert(!cache_zone_remove(zone, &id.hash, 5, &victims));
    ck_assert(cache_zone_remove(zone, &id.hash, 6, &victims));
    ck_assert(!cache_zone_remove(zone, &id.hash, 6, &victims));
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(totals().files, 0);
    ck_assert_uint_eq(totals().bytes, 0);
    cache_zone_destroy(zone);
    ck_assert_ptr_null(cache_zone_create(100, 0));
}
END_TEST

static int publish_of(unsigned char hash, unsigned char fetched, uint64_t since)
{
    struct cache_id id = cache_fixture_id(hash, cache_zone_sequence(zone)), of = cache_fixture_id(fetched, 0);

    victims.count = 0;
    return cache_zone_publish(zone, &id, 10, &(struct cache_origin){of.hash, since}, 1, &victims);
}

START_TEST(fetch_from_before_a_purge_is_not_stored)
{
    struct cache_id id = cache_fixture_id(1, 0);
    uint64_t before, after;

    zone = cache_zone_create(SIZE, 1000);
    before = cache_zone_sequence(zone);
    ck_assert(!cache_zone_purge(zone, &id.hash, 1, &victims)); /* the key is unknown at this time */
    after = cache_zone_sequence(zone);
    ck_assert_int_eq(publish_of(1, 1, before), -ESTALE);
    ck_assert_int_eq(publish_of(2, 1, before), -ESTALE); /* a variant of the purged response */
    ck_assert_uint_eq(totals().files, 0);
    ck_assert_int_eq(publish_of(2, 2, before), 0);
    ck_assert_int_eq(publish_of(1, 1, after), 0);
    ck_assert(cache_zone_purge(zone, &id.hash, 1, &victims));
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_int_eq(publish_of(1, 1, after), -ESTALE);
    while (cache_zone_evict(zone, UINT32_MAX, 0, 1, &victims)) /* evicted nodes count as purged */
        victims.count = 0;
    ck_assert_int_eq(publish_of(1, 1, after), -ESTALE);
    ck_assert_int_eq(publish_of(1, 1, cache_zone_sequence(zone)), 0);
    cache_zone_destroy(zone);
}
END_TEST

/* The scan found the file after it was renamed, before its worker published it. */
START_TEST(purged_fetch_is_removed_after_the_scan)
{
    struct cache_id id = cache_fixture_id(1, 0);
    uint64_t since;

    zone = cache_zone_create(SIZE, 1000);
    since = cache_zone_sequence(zone);
    ck_assert(!cache_zone_purge(zone, &id.hash, 1, &victims));
    id.sequence = cache_zone_sequence(zone);
    victims.count = 0;
    ck_assert_int_eq(cache_zone_adopt(zone, &id, 10, 1, &victims), 0);
    ck_assert_uint_eq(view_of(1).sequence, id.sequence);
    ck_assert_int_eq(cache_zone_publish(zone, &id, 10, &(struct cache_origin){id.hash, since}, 1, &victims), -ESTALE);
    ck_assert_uint_eq(view_of(1).sequence, 0);
    ck_assert_uint_eq(totals().files, 0);
    cache_zone_destroy(zone);
}
END_TEST

/* The scan deletes the file. */
static void check_not_indexed(const struct cache_id *id)
{
    victims.count = 0;
    ck_assert_int_eq(cache_zone_adopt(zone, id, 10, 1, &victims), 0);
    ck_assert_uint_eq(totals().files, 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(victims.ids[0].sequence, id->sequence);
}

/* The scan finds the file between its rejection and its deletion by a helper thread. */
START_TEST(purged_fetch_is_not_indexed_before_its_deletion)
{
    struct cache_id id = cache_fixture_id(1, 0), of[] = {id, cache_fixture_id(2, 0)}; /* the second: of a variant */

    zone = cache_zone_create(SIZE, 1000);
    for (size_t i = 0; i < COUNT(of); i++) {
        uint64_t since = cache_zone_sequence(zone);

        (void)cache_zone_purge(zone, &of[i].hash, 1, &victims);
        id.sequence = cache_zone_sequence(zone);
        ck_assert_int_eq(cache_zone_publish(zone, &id, 10, &(struct cache_origin){of[i].hash, since}, 1, &victims),
                         -ESTALE);
        check_not_indexed(&id);
    }
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(removed_file_is_not_indexed_before_its_deletion)
{
    struct cache_id id = cache_fixture_id(1, 5);

    zone = cache_zone_create(SIZE, 1000);
    ck_assert_int_eq(publish(1, 5, 10, 1), 0);
    ck_assert(cache_zone_remove(zone, &id.hash, 5, &victims));
    check_not_indexed(&id);
    ck_assert_int_eq(publish(1, 6, 10, 1), 0);
    ck_assert_uint_eq(view_of(1).sequence, 6);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(uses_are_counted)
{
    struct cache_id id = cache_fixture_id(9, 0);
    struct cache_view view;

    zone = cache_zone_create(SIZE, 0);
    ck_assert(!cache_zone_find(zone, &id.hash, false, 1, &view, &victims));
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert(cache_zone_find(zone, &id.hash, true, i, &view, &victims));
        ck_assert_uint_eq(view.uses, i);
    }
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(responses_are_counted_by_status)
{
    uint64_t counts[CACHED_STATUSES];

    zone = cache_zone_create(SIZE, 0);
    cache_zone_count(zone, CACHED_HIT);
    cache_zone_count(zone, CACHED_HIT);
    cache_zone_count(zone, CACHED_MISS);
    cache_zone_count(zone, CACHED_NOT);
    cache_zone_counts(zone, counts);
    for (unsigned status = 0; status < CACHED_STATUSES; status++)
        ck_assert_uint_eq(counts[status], status == CACHED_HIT ? 2 : status == CACHED_MISS);
    ck_assert_ptr_null(cached_status_name(CACHED_NOT));
    ck_assert_str_eq(cached_status_name(CACHED_HIT), "HIT");
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(files_on_disk_are_indexed)
{
    struct cache_id older = cache_fixture_id(1, 5), newer = cache_fixture_id(1, 7);

    zone = cache_zone_create(SIZE, 0);
    victims.count = 0;
    ck_assert_int_eq(cache_zone_adopt(zone, &newer, 70, 1, &victims), 0);
    ck_assert_int_eq(cache_zone_adopt(zone, &older, 50, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(victims.ids[0].sequence, 5);
    ck_assert_int_eq(cache_zone_adopt(zone, &newer, 70, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(totals().bytes, 70);
    ck_assert_int_eq(publish(1, 7, 70, 1), 0); /* the loader found the file before the worker published it */
    ck_assert_uint_eq(victims.count, 0);
    ck_assert_uint_eq(totals().bytes, 70);
    cache_zone_destroy(zone);
}
END_TEST

/* The index records the low half of a removed file's number. */
START_TEST(file_with_low_half_zero_is_indexed)
{
    struct cache_id id = cache_fixture_id(1, 1ull << 32);

    zone = cache_zone_create(SIZE, 0);
    victims.count = 0;
    ck_assert_int_eq(cache_zone_adopt(zone, &id, 10, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 0);
    ck_assert_uint_eq(view_of(1).sequence, id.sequence);
    cache_zone_destroy(zone);
}
END_TEST

/*
 * Sequence numbers derive from the clock. It was set back before this start, so files from before have greater numbers.
 */
START_TEST(files_with_greater_numbers_are_indexed)
{
    struct cache_id before = cache_fixture_id(1, 900000), purged = cache_fixture_id(2, 900001);
    struct cache_id known = cache_fixture_id(3, 900002);
    struct cache_id now = cache_fixture_id(1, 0);

    zone = cache_zone_create(SIZE, 1000);
    now.sequence = cache_zone_sequence(zone);
    ck_assert_int_eq(publish(1, now.sequence, 70, 1), 0);
    ck_assert_int_eq(cache_zone_adopt(zone, &before, 50, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(victims.ids[0].sequence, 900000);
    ck_assert_uint_eq(view_of(1).sequence, now.sequence);
    victims.count = 0;
    ck_assert(!cache_zone_purge(zone, &purged.hash, 1, &victims)); /* before the loader finds the file */
    ck_assert_int_eq(cache_zone_adopt(zone, &purged, 50, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(view_of(2).sequence, 0);
    victims.count = 0;
    ck_assert_int_eq(cache_zone_adopt(zone, &known, 50, 1, &victims), 0);
    ck_assert_uint_eq(victims.count, 0);
    ck_assert_uint_eq(view_of(3).sequence, 900002);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(least_recently_used_is_evicted_first)
{
    zone = cache_zone_create(SIZE, 0);
    for (unsigned char i = 1; i <= 10; i++)
        ck_assert_int_eq(publish(i, i, 100, i), 0);
    ck_assert(cache_zone_current(zone, view_of(1).node, 1, 100, 50));
    victims.count = 0;
    ck_assert(!cache_zone_evict(zone, 0, 700, 0, &victims));
    ck_assert_uint_eq(victims.count, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(victims.ids[i].sequence, i + 2);
    victims.count = 0;
    ck_assert(!cache_zone_evict(zone, 8, UINT64_MAX, 0, &victims)); /* last used before 8: 5, 6, 7 */
    ck_assert_uint_eq(victims.count, 3);
    ck_assert_uint_eq(totals().files, 4);
    victims.count = 0;
    ck_assert(!cache_zone_evict(zone, 1000, UINT64_MAX, 0, &victims));
    ck_assert_uint_eq(totals().entries, 0);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(full_index_evicts)
{
    unsigned lost = 0;

    zone = cache_zone_create(SIZE, 0);
    for (unsigned i = 0; i < 1000; i++) {
        struct cache_id id = {.hash = {{(unsigned char)i, (unsigned char)(i >> 8)}}, .sequence = i + 1};

        victims.count = 0;
        ck_assert_int_eq(cache_zone_publish(zone, &id, 1, &(struct cache_origin){id.hash, i}, i, &victims), 0);
        lost += victims.count;
    }
    ck_assert_uint_gt(lost, 100);
    ck_assert_uint_eq(totals().files + lost, 1000);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(one_worker_holds_the_fill_lock)
{
    struct cache_id id = cache_fixture_id(1, 0);
    const uint64_t a = 1 * LIMIT_WORKERS + 3, b = 1 * LIMIT_WORKERS + 4;

    zone = cache_zone_create(SIZE, 0);
    ck_assert(!cache_zone_fill_locked(zone, &id.hash, 100));
    ck_assert(cache_zone_fill_lock(zone, &id.hash, a, 100, 200, &victims));
    ck_assert(!cache_zone_fill_lock(zone, &id.hash, b, 150, 250, &victims));
    ck_assert(cache_zone_fill_locked(zone, &id.hash, 199));
    cache_zone_fill_unlock(zone, &id.hash, b); /* b does not hold the lock */
    ck_assert(cache_zone_fill_locked(zone, &id.hash, 199));
    ck_assert(cache_zone_fill_lock(zone, &id.hash, b, 200, 300, &victims)); /* the lock of a has expired */
    cache_zone_fill_unlock(zone, &id.hash, a);
    ck_assert(cache_zone_fill_locked(zone, &id.hash, 299));
    cache_zone_abandon(zone, 3);
    ck_assert(cache_zone_fill_locked(zone, &id.hash, 299));
    cache_zone_abandon(zone, 4);
    ck_assert(!cache_zone_fill_locked(zone, &id.hash, 299));
    victims.count = 0;
    ck_assert(cache_zone_fill_lock(zone, &id.hash, a, 100, 200, &victims));
    (void)cache_zone_evict(zone, UINT32_MAX, 0, 100, &victims); /* an entry with a fill lock is not evicted */
    ck_assert(cache_zone_fill_locked(zone, &id.hash, 150));
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(one_worker_leads)
{
    zone = cache_zone_create(SIZE, 0);
    ck_assert(cache_zone_acquire_leadership(zone, 1, 1000, 500));
    ck_assert(!cache_zone_acquire_leadership(zone, 2, 1499, 500));
    ck_assert(cache_zone_acquire_leadership(zone, 1, 1400, 500));
    ck_assert(!cache_zone_acquire_leadership(zone, 2, 1899, 500));
    cache_zone_abandon(zone, 1);
    ck_assert(cache_zone_acquire_leadership(zone, 2, 1450, 500));
    ck_assert(cache_zone_acquire_leadership(zone, 1, 3000, 500));
    cache_zone_destroy(zone);
}
END_TEST

/* The master neither waits for a lock nor uses a number or a pointer that a worker wrote. */
START_TEST(zone_of_the_master_withstands_overwriting)
{
    zone = cache_zone_create(SIZE, 0);
    for (int byte = -1; byte <= 1; byte++) {
        overwrite_shared_memory(byte);
        ck_assert_ptr_eq(cache_zone_share(zone), zone);
        cache_zone_abandon(zone, 3);
        cache_zone_destroy(zone);
    }
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(scan_is_pending_until_done_or_abandoned)
{
    zone = cache_zone_create(SIZE, 0);
    ck_assert(!cache_zone_loaded(zone));
    ck_assert(cache_zone_scan_is_pending(zone, cache_zone_scans_requested(zone)));
    cache_zone_scan_done(zone, cache_zone_scans_requested(zone));
    ck_assert(cache_zone_loaded(zone));
    cache_zone_abandon(zone, 7);
    ck_assert(cache_zone_scan_is_pending(zone, cache_zone_scans_requested(zone)));
    ck_assert(cache_zone_loaded(zone));
    cache_zone_destroy(zone);
}
END_TEST

/* Kills processes that only change the index: the next process continues, and the totals are right. */
START_TEST(death_with_the_lock_blocks_no_process)
{
    NEEDS_ROBUST_FUTEXES();
    zone = cache_zone_create(SIZE, 0);
    for (unsigned round = 0; round < 100; round++) {
        struct cache_victims gone = {0};
        uint64_t files = 0, bytes = 0;
        pid_t child = fork();

        if (child == 0) {
            for (unsigned i = round * 7;; i++) {
                struct cache_victims none = {0};
                struct cache_id id = cache_fixture_id((unsigned char)i, i + 1);

                if (i % 3 == 0)
                    (void)cache_zone_purge(zone, &id.hash, i, &none);
                else if (cache_zone_publish(zone, &id, i % 100, &(struct cache_origin){id.hash, UINT64_MAX}, i,
                                            &none) < 0)
                    _exit(1);
                if (i % 11 == 0)
                    (void)cache_zone_evict(zone, 0, 3000, 0, &none);
            }
        }
        usleep(500 + round * 37);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        for (unsigned i = 0; i < 256; i++) {
            struct cache_view view = view_of((unsigned char)i);

            files += view.sequence != 0;
            bytes += view.sequence ? view.size : 0;
        }
        ck_assert_uint_eq(totals().files, files);
        ck_assert_uint_eq(totals().bytes, bytes);
        ck_assert_int_eq(publish(200, 1000000 + round, 10, 1), 0);
        ck_assert_uint_eq(view_of(200).sequence, 1000000 + round);
        while (cache_zone_evict(zone, UINT32_MAX, 0, 0, &gone))
            gone.count = 0;
        ck_assert_uint_eq(totals().entries, 0);
    }
    cache_zone_destroy(zone);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        stored_and_replaced, fetch_from_before_a_purge_is_not_stored, purged_fetch_is_removed_after_the_scan,
        purged_fetch_is_not_indexed_before_its_deletion, removed_file_is_not_indexed_before_its_deletion,
        uses_are_counted, responses_are_counted_by_status, files_on_disk_are_indexed,
        file_with_low_half_zero_is_indexed, files_with_greater_numbers_are_indexed,
        least_recently_used_is_evicted_first, full_index_evicts, one_worker_holds_the_fill_lock, one_worker_leads,
        zone_of_the_master_withstands_overwriting, scan_is_pending_until_done_or_abandoned,
        death_with_the_lock_blocks_no_process,
    };

    return cache_fixture_run("zone", tests, COUNT(tests));
}
