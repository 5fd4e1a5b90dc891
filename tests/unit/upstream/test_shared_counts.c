/* Connections and times that all workers count. */
#include "shared_fixture.h"

#include <errno.h>
#include <stdio.h>

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

START_TEST(least_time_is_chosen)
{
    struct upstream_peer *fastest;

    open_servers(BALANCE_LEAST_TIME_HEADER, 3);
    open_pools();
    for (unsigned i = 0; i < 3; i++) /* a server without a measured time is chosen first */
        upstream_peer_count_time(choose(0), 1000 * (3 - i), UINT64_MAX);
    ck_assert_int_eq(chosen_number(0), 3);
    ck_assert_int_eq(chosen_number(1), 3);
    fastest = choose(0);
    for (int i = 0; i < 40; i++)
        upstream_peer_count_time(fastest, 9000, UINT64_MAX);
    ck_assert_uint_gt(fastest->state->header_us, 3000);
    ck_assert_int_eq(chosen_number(0), 2);
    ck_assert_int_eq(chosen_number(1), 2);
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
        max_conns_counts_all_workers, least_connections_counts_all_workers, connections_of_a_dead_worker_are_released,
        least_time_is_chosen, complete_responses_are_in_the_histogram, unused_targets_are_replaced,
        target_with_a_shared_connection_is_not_replaced,
    };

    return suite_run("shared_counts", tests, COUNT(tests));
}
