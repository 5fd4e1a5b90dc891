#include "master/shared.h"

#include "../overwrite.h"
#include "../runner.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t bucket_of(uint64_t took_us)
{
    struct counters counters = {0};
    unsigned bucket = 0;

    counters_add_response(&counters, 200, took_us);
    ck_assert_uint_eq(counters.latency.sum_us, took_us);
    while (counters.latency.counts[bucket] == 0)
        bucket++;
    ck_assert_uint_eq(counters.latency.counts[bucket], 1);
    return bucket;
}

START_TEST(latencies_are_counted_by_bucket)
{
    for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
        ck_assert_uint_eq(bucket_of(latency_bounds_us[i]), i); /* "le": the bucket includes its bound */
        ck_assert_uint_eq(bucket_of(latency_bounds_us[i] + 1), i + 1);
        if (i > 0)
            ck_assert_uint_gt(latency_bounds_us[i], latency_bounds_us[i - 1]);
    }
    ck_assert_uint_eq(bucket_of(0), 0);
    ck_assert_uint_eq(bucket_of(UINT64_MAX), LATENCY_BOUNDS);
}
END_TEST

static const struct {
    int status;
    unsigned place;
} statuses[] = {{100, 100}, {200, 200}, {444, 444}, {499, 499}, {599, 599},
                {0, 0},     {99, 0},    {600, 0},   {999, 0},   {-1, 0}};

START_TEST(statuses_are_counted)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct counters counters = {0};

        counters_add_response(&counters, statuses[i].status, 0);
        ck_assert_uint_eq(counters.status[statuses[i].place], 1);
    }
}
END_TEST

START_TEST(blocks_share_no_cache_line)
{
    struct shared *shared = shared_create(3);

    ck_assert_ptr_nonnull(shared);
    ck_assert_uint_eq(shared->slot_count, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq((uintptr_t)&shared->workers[i] % 64, 0);
    ck_assert_uint_eq(sizeof(struct shared_worker) % 64, 0);
    shared_destroy(shared);
    shared_destroy(NULL);
}
END_TEST

/* The sum includes every word of every block. */
START_TEST(total_is_the_sum_of_all_workers)
{
    struct shared *shared = shared_create(3);
    struct counters_total total;
    const uint64_t *words = (const uint64_t *)(const void *)&total.sum;

    for (unsigned i = 0; i < 3; i++) {
        uint64_t *own = (uint64_t *)(void *)&shared->workers[i].counters;

        ck_assert_int_eq(shared_slot_acquire(shared), (int)i);
        for (size_t word = 0; word < sizeof(struct counters) / sizeof(uint64_t); word++)
            own[word] = (word + 1) << (20 * i);
    }
    shared_set_generation(shared, 6, 3);
    shared->restarts = 4;
    shared->started_s = 5;
    shared_total(shared, &total);
    for (uint64_t word = 0; word < sizeof(struct counters) / sizeof(uint64_t); word++)
        ck_assert_uint_eq(words[word], (word + 1) * (1 + (1ull << 20) + (1ull << 40)));
    ck_assert_uint_eq(total.restarts, 4);
    ck_assert_uint_eq(total.started_s, 5);
    ck_assert_uint_eq(total.workers, 3);
    ck_assert_uint_eq(total.generation, 6);
    ck_assert_int_eq(shared_slot_acquire(shared), -ENOSPC);
    shared_destroy(shared);
}
END_TEST

/* As in the server: shared memory created before fork, children that count, and a child that reuses a slot. */
static void count_in_a_child(struct shared *shared, unsigned slot, unsigned times, uint64_t open)
{
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct counters *own = &shared->workers[slot].counters;

        for (unsigned i = 0; i < times; i++) {
            counters_add_request(own, i % 2 ? HTTP_2 : HTTP_1_1);
            counters_add_response(own, 200, 10);
            own->protocols.h2_streams++;
        }
        own->connections[CONNECTION_WRITING] += open;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* Values that a worker writes into the whole mapping change no value that the master relies on. */
START_TEST(the_values_of_the_master_are_private)
{
    struct shared *shared = shared_create(3);
    struct upstream_zone *upstreams = shared->upstreams;
    struct counters_total total;
    size_t size = shared->size;

    ck_assert_int_eq(shared_slot_acquire(shared), 0);
    overwrite_shared_memory(-1);
    ck_assert_uint_eq(shared->workers[2].heartbeat, UINT64_MAX); /* the rest is shared */
    ck_assert_uint_eq(shared->size, size);
    ck_assert_uint_eq(shared->slot_count, 3);
    ck_assert_ptr_eq(shared->upstreams, upstreams);
    ck_assert_int_eq(shared_slot_acquire(shared), 1);
    shared_total(shared, &total); /* slots_used is out of range */
    shared_slot_release(shared, 1);
    shared_destroy(shared);
}
END_TEST

START_TEST(slot_of_a_dead_worker_is_reused)
{
    struct shared *shared = shared_create(2);
    struct counters_total total;

    ck_assert_int_eq(shared_slot_acquire(shared), 0);
    ck_assert_int_eq(shared_slot_acquire(shared), 1);
    count_in_a_child(shared, 0, 3, 2);
    count_in_a_child(shared, 1, 5, 1);
    shared_total(shared, &total);
    ck_assert_uint_eq(total.sum.connections[CONNECTION_WRITING], 3);
    shared_slot_release(shared, 0);
    ck_assert_int_eq(shared_slot_acquire(shared), 0);
    shared_total(shared, &total);
    ck_assert_uint_eq(total.sum.connections[CONNECTION_WRITING], 1);
    count_in_a_child(shared, 0, 7, 0);
    shared_total(shared, &total);
    ck_assert_uint_eq(total.sum.requests, 15);
    ck_assert_uint_eq(total.sum.requests_by_protocol[REQUEST_HTTP_1_1], 2 + 3 + 4);
    ck_assert_uint_eq(total.sum.requests_by_protocol[REQUEST_HTTP_2], 1 + 2 + 3);
    ck_assert_uint_eq(total.sum.requests_by_protocol[REQUEST_HTTP_1_0], 0);
    ck_assert_uint_eq(total.sum.protocols.h2_streams, 5 + 7); /* those of the dead worker are closed */
    ck_assert_uint_eq(total.sum.status[200], 15);
    ck_assert_uint_eq(total.sum.latency.counts[0], 15);
    ck_assert_uint_eq(total.sum.latency.sum_us, 150);
    ck_assert_uint_eq(total.sum.connections[CONNECTION_WRITING], 1);
    shared_destroy(shared);
}
END_TEST

int main(void)
{
    return run_tests("counters",
                     (const TTest *const[]){latencies_are_counted_by_bucket, statuses_are_counted,
                                            blocks_share_no_cache_line, total_is_the_sum_of_all_workers,
                                            the_values_of_the_master_are_private,
                                            slot_of_a_dead_worker_is_reused, NULL});
}
