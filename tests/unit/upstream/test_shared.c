/* The state of upstream servers that workers share: two pools over one zone, over a scripted loop. */
#include "upstream/upstream_pool.h"

#include "../http/suite.h"
#include "../overwrite.h"
#include "scripted.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_SERVERS 100
#define WORKERS 2

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_server servers[MAX_SERVERS];
static char texts[MAX_SERVERS][32];
static struct upstream upstream;
static struct upstreams upstreams;
static struct upstream_zone *zone;
static struct upstream_pool *pools[WORKERS];
static struct upstream_group *groups[WORKERS];

static void open_servers(enum upstream_balance balance, size_t count)
{
    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    scripted_advance(&loop, 1000000);
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "10.0.0.%zu", i + 1);
        ck_assert_int_eq(upstream_server_parse(str_from(texts[i]), 80, &servers[i]), 0);
    }
    upstream = (struct upstream){.name = STR("backend"), .servers = servers, .count = count, .balance = balance};
    upstreams = (struct upstreams){.first = &upstream, .count = 1};
    zone = upstream_zone_create(WORKERS);
    ck_assert_ptr_nonnull(zone);
}

static void open_pools(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        pools[i] = upstream_pool_create(&loop, &silent, &upstreams, zone, i);
        ck_assert_ptr_nonnull(pools[i]);
        groups[i] = upstream_pool_group(pools[i], &upstream);
    }
}

static void close_pools(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_stop(pools[i]);
    scripted_settle(&loop, 1000);
    ck_assert_uint_eq(loop.in_flight, 0);
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_destroy(pools[i]);
    loop_close(&loop);
    upstream_zone_destroy(zone);
}

static struct upstream_peer *choose(unsigned worker)
{
    struct upstream_choice choice = {0};
    int error;

    return upstream_choose(groups[worker], &choice, &error);
}

/* Returns the number of the server that the worker chooses for its next request; 0: none. */
static int chosen_number(unsigned worker)
{
    struct upstream_peer *peer = choose(worker);

    return peer ? atoi(peer->name + 7) : 0;
}

static bool is_chosen(unsigned worker, int number)
{
    bool seen = false;

    for (int i = 0; i < 12; i++)
        seen |= chosen_number(worker) == number;
    return seen;
}

static void advance_clock(uint64_t ms)
{
    scripted_advance(&loop, ms);
    scripted_settle(&loop, 10);
}

static struct upstream_peer *find(unsigned worker, int number)
{
    for (int i = 0; i < 300; i++) {
        struct upstream_peer *peer = choose(worker);

        if (peer && atoi(peer->name + 7) == number)
            return peer;
    }
    ck_abort_msg("server %d is not asked", number);
    return NULL;
}

/* Each worker reads the clock once per iteration: a time that another worker has stored may be later. */
START_TEST(worker_with_a_clock_behind)
{
    open_servers(BALANCE_ROUND_ROBIN, 2);
    servers[0].max_fails = 1;
    open_pools();
    upstream_peer_failed(find(0, 1));
    ck_assert(!is_chosen(1, 1));
    loop.clock.monotonic_ms -= 5;
    ck_assert(!is_chosen(1, 1));
    loop.clock.monotonic_ms += 5;
    close_pools();
}
END_TEST

START_TEST(all_workers_see_failures)
{
    struct upstream_peer *peer;

    open_servers(BALANCE_ROUND_ROBIN, 2);
    servers[0].max_fails = 2;
    open_pools();
    peer = find(0, 1);
    upstream_peer_failed(peer);
    ck_assert(is_chosen(1, 1));
    upstream_peer_failed(find(1, 1)); /* the second failure, seen by another worker */
    ck_assert(!is_chosen(0, 1));
    ck_assert(!is_chosen(1, 1));
    advance_clock(10000);
    ck_assert_int_eq(is_chosen(0, 1) + is_chosen(1, 1), 1); /* one trial request of all workers */
    upstream_peer_succeeded(peer);
    ck_assert(is_chosen(0, 1));
    ck_assert(is_chosen(1, 1));
    close_pools();
}
END_TEST

/* Each failed trial request doubles the pause, up to a limit. Failures of requests that had begun before do not. */
START_TEST(pause_doubles_after_failed_retries)
{
    struct upstream_peer *peer;
    uint64_t pause_ms = 10000;

    open_servers(BALANCE_ROUND_ROBIN, 2);
    open_pools();
    peer = find(0, 1);
    upstream_peer_failed(peer);
    upstream_peer_failed(peer);
    upstream_peer_failed(peer);
    for (int i = 0; i < 8; i++) {
        advance_clock(pause_ms - 1);
        ck_assert(!is_chosen(0, 1));
        advance_clock(1);
        ck_assert(is_chosen(0, 1));
        upstream_peer_failed(peer);
        pause_ms = pause_ms * 2 > LIMIT_UPSTREAM_PAUSE_MS ? LIMIT_UPSTREAM_PAUSE_MS : pause_ms * 2;
    }
    ck_assert_uint_eq(pause_ms, LIMIT_UPSTREAM_PAUSE_MS);
    advance_clock(pause_ms);
    ck_assert(is_chosen(0, 1));
    upstream_peer_succeeded(peer);
    upstream_peer_failed(peer); /* the pause has its first length again */
    ck_assert(!is_chosen(0, 1));
    advance_clock(10000);
    ck_assert(is_chosen(0, 1));
    close_pools();
}
END_TEST

static const struct upstream_events no_events;
static const struct upstream_transport plain;

static int connect_to(struct upstream_peer *peer, struct upstream_connection **out)
{
    int error = upstream_connect(peer, &plain, &no_events, NULL, 0, false, out);

    if (error == 0)
        scripted_delay_connect(&loop, (*out)->fd);
    return error;
}

START_TEST(max_conns_counts_all_workers)
{
    struct upstream_connection *one, *two;
    struct upstream_peer *chosen;

    open_servers(BALANCE_ROUND_ROBIN, 1);
    servers[0].max_conns = 1;
    open_pools();
    chosen = choose(1);
    ck_assert_int_eq(connect_to(choose(0), &one), 0);
    ck_assert_ptr_null(choose(1));
    ck_assert_int_eq(connect_to(chosen, &two), -EBUSY); /* chosen before the other connection began */
    upstream_discard(one);
    ck_assert_int_eq(connect_to(choose(1), &two), 0);
    upstream_discard(two);
    close_pools();
}
END_TEST

START_TEST(least_connections_counts_all_workers)
{
    struct upstream_connection *open[3];

    open_servers(BALANCE_LEAST_CONN, 3);
    open_pools();
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(connect_to(choose(i % WORKERS), &open[i]), 0);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < i; k++)
            ck_assert_str_ne(open[i]->peer->name, open[k]->peer->name);
    }
    upstream_discard(open[1]);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(chosen_number(0), chosen_number(1));
    upstream_discard(open[0]);
    upstream_discard(open[2]);
    close_pools();
}
END_TEST

START_TEST(connections_of_a_dead_worker_are_released)
{
    struct upstream_connection *connection;

    open_servers(BALANCE_ROUND_ROBIN, 1);
    servers[0].max_conns = 1;
    open_pools();
    ck_assert_int_eq(connect_to(choose(0), &connection), 0);
    ck_assert_uint_eq(connection->peer->state->active, 1);
    ck_assert_uint_eq(connection->peer->state->holders, 2);
    upstream_zone_abandon(zone, 0);
    ck_assert_ptr_nonnull(choose(1));
    ck_assert_uint_eq(choose(1)->state->holders, 1);
    shared_add(&connection->peer->state->active, 1); /* this process still runs, so it decrements the count, too */
    upstream_discard(connection);
    close_pools();
}
END_TEST

static int claim(unsigned worker, uint64_t key, const char *group, const char *name)
{
    const struct upstream_claim peer = {.key = key, .group = str_from(group), .name = str_from(name), .weight = 1};

    return upstream_zone_claim(zone, worker, &peer);
}

START_TEST(peer_slots_are_shared_and_released)
{
    char name[16];
    int first;

    zone = upstream_zone_create(WORKERS);
    first = claim(0, 1, "g", "a");
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(claim(1, 1, "g", "a"), first);
    ck_assert_int_ne(claim(0, 2, "h", "a"), first);
    for (int i = 0; i < LIMIT_UPSTREAM_PEERS - 2; i++) {
        snprintf(name, sizeof(name), "%d", i);
        ck_assert_int_ge(claim(0, 3, "g", name), 0);
    }
    ck_assert_int_eq(claim(0, 4, "g", "one more"), -ENOSPC);
    upstream_zone_release(zone, 0, first);
    ck_assert_int_eq(claim(0, 4, "g", "one more"), -ENOSPC);
    shared_set(&upstream_zone_at(zone, first)->fails, 7);
    upstream_zone_release(zone, 1, first);
    ck_assert_int_eq(claim(0, 4, "g", "one more"), first);
    ck_assert_uint_eq(upstream_zone_at(zone, first)->fails, 0);
    upstream_zone_destroy(zone);
}
END_TEST

/* Claims, counts and releases the entries of a few peers. */
static void use_zone(void)
{
    int indexes[8];

    for (unsigned i = 0; i < 8; i++) {
        struct upstream_claim claim = {.key = i, .group = STR("group"), .name = STR("10.0.0.1:80"), .weight = 1 + i};

        indexes[i] = upstream_zone_claim(zone, i % WORKERS, &claim);
        ck_assert_int_lt(indexes[i], LIMIT_UPSTREAM_PEERS);
        if (indexes[i] >= 0)
            upstream_zone_count(zone, i % WORKERS, indexes[i], 1);
    }
    (void)upstream_zone_acquire_leadership(zone, 1, 1000, 100);
    for (unsigned i = 0; i < 8; i += 2) {
        if (indexes[i] >= 0)
            upstream_zone_release(zone, i % WORKERS, indexes[i]);
    }
    upstream_zone_abandon(zone, 0);
    upstream_zone_abandon(zone, 1);
}

START_TEST(other_process_writes_meanwhile)
{
    zone = upstream_zone_create(WORKERS);
    use_while_other_process_writes(use_zone, 1);
    use_zone();
    upstream_zone_destroy(zone);
}
END_TEST

/* More servers than bits in a word; each is chosen once. */
START_TEST(concurrent_requests_retry_one_by_one)
{
    bool requested[MAX_SERVERS] = {false};
    struct upstream_choice choice = {0};
    unsigned count = 0;
    int error;

    open_servers(BALANCE_ROUND_ROBIN, MAX_SERVERS);
    open_pools();
    for (;; count++) {
        struct upstream_peer *peer = upstream_choose(groups[0], &choice, &error);

        if (!peer)
            break;
        ck_assert(!requested[peer->number]);
        requested[peer->number] = true;
    }
    ck_assert_int_eq(error, -EBUSY);
    ck_assert_uint_eq(count, LIMIT_UPSTREAM_TRIES);
    ck_assert(!upstream_has_another(groups[0], &choice));
    close_pools();
}
END_TEST

static unsigned share_of(int number, unsigned requests)
{
    unsigned count = 0;

    for (unsigned i = 0; i < requests; i++)
        count += chosen_number(0) == number;
    return count;
}

START_TEST(recovered_server_starts_slowly)
{
    struct upstream_peer *peer;

    open_servers(BALANCE_ROUND_ROBIN, 2);
    servers[0].slow_start_ms = 10000;
    open_pools();
    ck_assert_uint_eq(share_of(1, 100), 50);
    peer = find(0, 1);
    upstream_peer_failed(peer);
    advance_clock(10000);
    ck_assert(is_chosen(0, 1));
    upstream_peer_succeeded(peer);
    ck_assert_uint_le(share_of(1, 100), 2);
    advance_clock(5000); /* slow start: half its weight, which is one third of the total */
    ck_assert_uint_ge(share_of(1, 300), 95);
    ck_assert_uint_le(share_of(1, 300), 105);
    advance_clock(5000);
    ck_assert_uint_ge(share_of(1, 100), 49);
    close_pools();
}
END_TEST

START_TEST(least_time_is_chosen)
{
    open_servers(BALANCE_LEAST_TIME_HEADER, 3);
    open_pools();
    for (unsigned i = 0; i < 3; i++) /* a server without a measured time is chosen first */
        upstream_peer_count_time(choose(0), 1000 * (3 - i), UINT64_MAX);
    ck_assert_int_eq(chosen_number(0), 3);
    ck_assert_int_eq(chosen_number(1), 3);
    for (int i = 0; i < 40; i++)
        upstream_peer_count_time(choose(0), 9000, UINT64_MAX); /* the average of the chosen server grows */
    ck_assert(is_chosen(0, chosen_number(0)));
    ck_assert_uint_gt(choose(0)->state->header_us, 3000);
    close_pools();
}
END_TEST

/* Both workers count in one histogram; a head without its end, and an unknown time, do not count. */
START_TEST(complete_responses_are_in_the_histogram)
{
    static const uint64_t times_us[] = {0, 1000, 1001, 60000001};
    const struct latency *latency;

    open_servers(BALANCE_ROUND_ROBIN, 2);
    open_pools();
    latency = &find(0, 1)->state->latency;
    for (unsigned i = 0; i < 4; i++)
        upstream_peer_count_time(find(i % WORKERS, 1), i ? times_us[i] : UINT64_MAX, times_us[i]);
    upstream_peer_count_time(find(0, 1), 5000, UINT64_MAX);
    ck_assert_uint_eq(latency_count(latency), 4);
    ck_assert_uint_eq(latency->counts[0], 2);
    ck_assert_uint_eq(latency->counts[1], 1);
    ck_assert_uint_eq(latency->counts[LATENCY_BOUNDS], 1);
    ck_assert_uint_eq(latency->sum_us, 60002002);
    ck_assert_uint_eq(latency_count(&find(0, 2)->state->latency), 0);
    close_pools();
}
END_TEST

START_TEST(route_selects_its_server)
{
    struct upstream_choice choice = {0};
    struct upstream_peer *peer;
    int error;

    open_servers(BALANCE_ROUND_ROBIN, 3);
    open_pools();
    peer = find(0, 2);
    for (int i = 0; i < 6; i++) {
        choice = (struct upstream_choice){.route = str_from(peer->route)};
        ck_assert_str_eq(upstream_choose(groups[i % WORKERS], &choice, &error)->name, peer->name);
    }
    ck_assert_str_ne(upstream_choose(groups[0], &choice, &error)->name, peer->name); /* already tried by this request */
    upstream_peer_failed(peer);
    choice = (struct upstream_choice){.route = str_from(peer->route)};
    ck_assert_str_ne(upstream_choose(groups[1], &choice, &error)->name, peer->name);
    choice = (struct upstream_choice){.route = STR("nobody's")};
    ck_assert_ptr_nonnull(upstream_choose(groups[0], &choice, &error));
    close_pools();
}
END_TEST

START_TEST(unused_targets_are_replaced)
{
    struct upstream_connection *connection;
    struct upstream_choice choice = {0};
    struct upstream_group *target;
    char text[32];
    int error = 0;

    open_servers(BALANCE_ROUND_ROBIN, 1);
    open_pools();
    target = upstream_pool_target(pools[0], STR("10.1.0.1"), 80, &error);
    ck_assert_int_eq(connect_to(upstream_choose(target, &choice, &error), &connection), 0);
    for (int i = 0; i < LIMIT_UPSTREAM_TARGETS + 50; i++) {
        advance_clock(1);
        snprintf(text, sizeof(text), "10.2.%d.%d", i / 250, i % 250);
        ck_assert_ptr_nonnull(upstream_pool_target(pools[0], str_from(text), 80, &error));
    }
    ck_assert_ptr_eq(upstream_pool_target(pools[0], STR("10.1.0.1"), 80, &error), target); /* still in use */
    upstream_discard(connection);
    close_pools();
}
END_TEST

/* Between its last exchange and its next event, an open shared connection is neither idle nor counted. */
START_TEST(target_with_a_shared_connection_is_not_replaced)
{
    struct upstream_connection *connection;
    struct upstream_choice choice = {0};
    struct upstream_group *target;
    char text[32];
    int error = 0;

    open_servers(BALANCE_ROUND_ROBIN, 1);
    open_pools();
    target = upstream_pool_target(pools[0], STR("10.1.0.1"), 80, &error);
    ck_assert_int_eq(upstream_connect_shared(upstream_choose(target, &choice, &error), &plain, &no_events, NULL, 0,
                                             &connection), 0);
    scripted_delay_connect(&loop, connection->fd);
    for (int i = 0; i < LIMIT_UPSTREAM_TARGETS + 50; i++) {
        advance_clock(1);
        snprintf(text, sizeof(text), "10.2.%d.%d", i / 250, i % 250);
        ck_assert_ptr_nonnull(upstream_pool_target(pools[0], str_from(text), 80, &error));
    }
    ck_assert_ptr_eq(upstream_pool_target(pools[0], STR("10.1.0.1"), 80, &error), target);
    upstream_discard(connection);
    close_pools();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        worker_with_a_clock_behind, all_workers_see_failures, pause_doubles_after_failed_retries,
        max_conns_counts_all_workers, least_connections_counts_all_workers, connections_of_a_dead_worker_are_released,
        peer_slots_are_shared_and_released, other_process_writes_meanwhile, concurrent_requests_retry_one_by_one,
        recovered_server_starts_slowly, least_time_is_chosen, complete_responses_are_in_the_histogram,
        route_selects_its_server, unused_targets_are_replaced, target_with_a_shared_connection_is_not_replaced,
    };

    return suite_run("shared", tests, COUNT(tests));
}
