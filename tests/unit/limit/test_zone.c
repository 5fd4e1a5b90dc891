/*
 * Buckets and counts of open requests in shared memory: the arithmetic, a full zone, and processes that die, with and
 * without the lock.
 */
#include "limit/limit_zone.h"

#include "../overwrite.h"
#include "../runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RATE  60 /* drops per millisecond: one request per second */

static struct limit_zone *zone;

static void setup(void)
{
    zone = limit_zone_create(64 * 1024);
    ck_assert_ptr_nonnull(zone);
}

static void teardown(void)
{
    limit_zone_destroy(zone);
}

static bool fill_bucket(uint64_t key, uint64_t burst, uint64_t now_ms)
{
    uint64_t level;

    return limit_zone_fill(zone, key, RATE, burst * LIMIT_DROPS, now_ms, &level);
}

START_TEST(one_request_per_second)
{
    ck_assert(fill_bucket(1, 0, 1000));
    ck_assert(!fill_bucket(1, 0, 1000));
    ck_assert(!fill_bucket(1, 0, 1999));
    ck_assert(fill_bucket(1, 0, 2000)); /* a rejected request is not counted */
    ck_assert(!fill_bucket(1, 0, 2500));
    ck_assert(fill_bucket(2, 0, 2500)); /* another key */
    ck_assert(fill_bucket(1, 0, UINT64_MAX));
    ck_assert(!fill_bucket(1, 0, 5)); /* with the clock of another worker, which is behind */
}
END_TEST

/*
 * Two workers whose clocks differ by half a second fill the bucket in turns: the bucket does not drain, because neither
 * clock advances.
 */
START_TEST(clock_behind_drains_nothing)
{
    uint64_t level;

    ck_assert(fill_bucket(1, 0, 10000));
    for (uint64_t i = 1; i <= 8; i++) {
        ck_assert(limit_zone_fill(zone, 1, RATE, 99 * LIMIT_DROPS, i % 2 ? 9500 : 10000, &level));
        ck_assert_uint_eq(level, i * LIMIT_DROPS);
    }
}
END_TEST

START_TEST(burst_is_limited)
{
    uint64_t level;

    for (unsigned i = 0; i < 4; i++)
        ck_assert(fill_bucket(1, 3, 1000));
    ck_assert(!limit_zone_fill(zone, 1, RATE, 3 * LIMIT_DROPS, 1500, &level));
    ck_assert_uint_eq(level, 3 * LIMIT_DROPS + LIMIT_DROPS / 2);
    ck_assert(limit_zone_fill(zone, 1, RATE, 3 * LIMIT_DROPS, 2000, &level));
    ck_assert_uint_eq(level, 3 * LIMIT_DROPS);
    limit_zone_undo(zone, 1);
    ck_assert(fill_bucket(1, 3, 2000));
    ck_assert(!fill_bucket(1, 3, 2000));
    limit_zone_undo(zone, 99); /* an unknown key */
}
END_TEST

START_TEST(oldest_bucket_is_replaced)
{
    unsigned known = 0;

    for (uint64_t key = 1; key <= 100000; key++)
        ck_assert(fill_bucket(key, 0, 1000));
    for (uint64_t key = 100000; key > 0 && !fill_bucket(key, 0, 1000); key--)
        known++;
    ck_assert_uint_gt(known, 500);
    ck_assert_uint_lt(known, 64 * 1024 / 48);
    ck_assert_ptr_null(limit_zone_create(16));
}
END_TEST

START_TEST(totals_count_keys_in_use)
{
    struct limit_zone_totals totals;
    struct limited_key keys[LIMIT_LIMITED_KEYS];

    limit_zone_totals(zone, &totals);
    ck_assert_uint_eq(totals.keys, 0);
    ck_assert_uint_gt(totals.keys_max, 500);
    ck_assert(limit_zone_enter(zone, 7, 0, 3));
    ck_assert(limit_zone_enter(zone, 8, 0, 3));
    limit_zone_leave(zone, 7, 0);
    limit_zone_record(zone, STR("key"), 1, LIMIT_REJECTED, 5);
    limit_zone_totals(zone, &totals);
    ck_assert_uint_eq(totals.keys, 1);
    ck_assert_uint_eq(totals.counts[LIMIT_REJECTED], 1);
    ck_assert_uint_eq(limit_zone_limited(zone, keys), 1);
    for (uint64_t key = 1; key <= 100000; key++)
        (void)limit_zone_enter(zone, key, 1, 1);
    limit_zone_totals(zone, &totals);
    ck_assert_uint_eq(totals.keys, totals.keys_max);
    limit_zone_abandon(zone, 1);
    limit_zone_totals(zone, &totals);
    ck_assert_uint_eq(totals.keys, 1);
}
END_TEST

START_TEST(open_requests_are_counted_by_all_workers)
{
    ck_assert(limit_zone_enter(zone, 7, 0, 3));
    ck_assert(limit_zone_enter(zone, 7, 1, 3));
    ck_assert(limit_zone_enter(zone, 7, 1, 3));
    ck_assert(!limit_zone_enter(zone, 7, 2, 3));
    ck_assert(limit_zone_enter(zone, 8, 2, 3));
    limit_zone_leave(zone, 7, 1);
    ck_assert(limit_zone_enter(zone, 7, 2, 3));
    limit_zone_abandon(zone, 1);
    ck_assert(limit_zone_enter(zone, 7, 2, 3));
    ck_assert(!limit_zone_enter(zone, 7, 2, 3));
    limit_zone_leave(zone, 99, 0); /* an unknown request */
}
END_TEST

START_TEST(open_requests_are_not_evicted)
{
    uint64_t entered = 0;

    while (limit_zone_enter(zone, entered + 1, 3, 1))
        entered++;
    ck_assert_uint_gt(entered, 500);
    for (uint64_t key = 1; key <= entered; key++)
        ck_assert(!limit_zone_enter(zone, key, 4, 1));
    limit_zone_leave(zone, 1, 3);
    ck_assert(limit_zone_enter(zone, entered + 9, 4, 1));
    limit_zone_abandon(zone, 3);
    for (uint64_t key = 1; key < entered; key++)
        ck_assert(limit_zone_enter(zone, key, 4, 1));
}
END_TEST

static pid_t fork_worker(unsigned worker)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    for (uint64_t i = worker;; i++) {
        if (limit_zone_enter(zone, i % 400, worker, UINT64_MAX) && i % 3)
            limit_zone_leave(zone, i % 400, worker);
    }
}

START_TEST(killed_workers_leave_no_open_requests)
{
    NEEDS_ROBUST_FUTEXES();
    for (unsigned round = 0; round < 60; round++) {
        pid_t first = fork_worker(1);
        pid_t second = fork_worker(2);

        usleep(2000);
        kill(first, SIGKILL);
        ck_assert_int_eq(waitpid(first, NULL, 0), first);
        limit_zone_abandon(zone, 1);
        usleep(500);
        kill(second, SIGKILL);
        ck_assert_int_eq(waitpid(second, NULL, 0), second);
        limit_zone_abandon(zone, 2);
        for (uint64_t key = 0; key < 400; key++) {
            ck_assert(limit_zone_enter(zone, key, 5, 1));
            limit_zone_leave(zone, key, 5);
        }
    }
}
END_TEST

/* The master neither waits for a lock nor uses a number or a pointer that a worker wrote. */
START_TEST(zone_of_the_master_withstands_overwriting)
{
    for (int byte = -1; byte <= 1; byte++) {
        overwrite_shared_memory(byte);
        ck_assert_ptr_eq(limit_zone_share(zone), zone);
        limit_zone_abandon(zone, 1);
        limit_zone_destroy(zone);
    }
}
END_TEST

START_TEST(zone_outlives_one_reference)
{
    ck_assert_ptr_eq(limit_zone_share(zone), zone);
    ck_assert(fill_bucket(1, 0, 1000));
    limit_zone_destroy(zone); /* one of two references */
    ck_assert(!fill_bucket(1, 0, 1000));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_request_per_second);
    tcase_add_test(tcase, clock_behind_drains_nothing);
    tcase_add_test(tcase, burst_is_limited);
    tcase_add_test(tcase, oldest_bucket_is_replaced);
    tcase_add_test(tcase, totals_count_keys_in_use);
    tcase_add_test(tcase, open_requests_are_counted_by_all_workers);
    tcase_add_test(tcase, open_requests_are_not_evicted);
    tcase_add_test(tcase, killed_workers_leave_no_open_requests);
    tcase_add_test(tcase, zone_outlives_one_reference);
    tcase_add_test(tcase, zone_of_the_master_withstands_overwriting);
}

int main(void)
{
    return run_suite("limit_zone", add_tests);
}
