/* The election of the worker that makes the health checks, in shared memory and by pools over a scripted loop. */
#include "upstream/upstream_pool.h"

#include "../http/suite.h"
#include "scripted.h"

#define WORKERS 2

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_zone *zone;

START_TEST(one_worker_leads)
{
    zone = upstream_zone_create(WORKERS);
    ck_assert(upstream_zone_acquire_leadership(zone, 0, 1000, 100));
    ck_assert(!upstream_zone_acquire_leadership(zone, 1, 1050, 100));
    ck_assert(upstream_zone_acquire_leadership(zone, 0, 1090, 100));
    ck_assert(!upstream_zone_acquire_leadership(zone, 1, 1150, 100));
    ck_assert(upstream_zone_acquire_leadership(zone, 1, 1190, 100)); /* the leader has died */
    ck_assert(!upstream_zone_acquire_leadership(zone, 0, 1200, 100));
    upstream_zone_destroy(zone);
}
END_TEST

/* A forged end of the leadership does not stop the health checks. */
START_TEST(forged_leadership_ends)
{
    zone = upstream_zone_create(WORKERS);
    ck_assert(upstream_zone_acquire_leadership(zone, 1, 1000000, 100));
    ck_assert(upstream_zone_acquire_leadership(zone, 0, 1000, 100));
    ck_assert(!upstream_zone_acquire_leadership(zone, 1, 1050, 100));
    ck_assert(upstream_zone_acquire_leadership(zone, 1, UINT64_MAX / LIMIT_WORKERS - 100, 100)); /* the latest end */
    ck_assert(upstream_zone_acquire_leadership(zone, 0, 1100, 100));
    upstream_zone_destroy(zone);
}
END_TEST

/* The leader of the checks of all groups keeps the leadership for a multiple of the shortest interval. */
START_TEST(checks_with_different_intervals_have_one_leader)
{
    static const struct upstream_check checks[] = {
        {.interval_ms = 10000, .timeout_ms = 1000, .fails = 1, .passes = 1},
        {.interval_ms = 3600000, .timeout_ms = 1000, .fails = 1, .passes = 1},
    };
    struct upstream_server server;
    struct upstream rarely = {
        .name = STR("rarely"), .servers = &server, .count = 1, .index = 1, .check = &checks[1]};
    struct upstream often = {
        .name = STR("often"), .servers = &server, .count = 1, .check = &checks[0], .next = &rarely};
    struct upstreams upstreams = {.first = &often, .count = 2};
    struct upstream_pool *pools[WORKERS];

    ck_assert_int_eq(upstream_server_parse(STR("10.0.0.1"), 80, &server), 0);
    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    scripted_advance(&loop, 1000000);
    zone = upstream_zone_create(WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        pools[i] = upstream_pool_create(&loop, &silent, &upstreams, zone, i);
        ck_assert_ptr_nonnull(pools[i]);
    }
    scripted_settle(&loop, 10);
    ck_assert(!upstream_zone_acquire_leadership(zone, 1, loop.clock.monotonic_ms, 3 * checks[0].interval_ms));
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_stop(pools[i]);
    scripted_settle(&loop, 1000);
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_destroy(pools[i]);
    loop_close(&loop);
    upstream_zone_destroy(zone);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {one_worker_leads, forged_leadership_ends,
                                  checks_with_different_intervals_have_one_leader};

    return suite_run("leadership", tests, COUNT(tests));
}
