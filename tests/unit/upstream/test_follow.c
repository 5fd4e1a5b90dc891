/* Servers added and removed at run time: all workers follow, over a scripted loop. */
#include "follow_fixture.h"

#include <errno.h>
#include <stdio.h>

START_TEST(all_workers_use_an_added_server)
{
    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.4:8080", false), 0);
    ck_assert_uint_eq(holders_of("10.0.0.4:8080"), 1);
    ck_assert_ptr_nonnull(find(0, "10.0.0.4:8080"));
    ck_assert_ptr_nonnull(find(1, "10.0.0.4:8080"));
    ck_assert_ptr_nonnull(find(1, "10.0.0.1:80"));
    ck_assert_ptr_eq(find(0, "10.0.0.4:8080")->state, find(1, "10.0.0.4:8080")->state);
    ck_assert_uint_eq(find(1, "10.0.0.4:8080")->server->weight, 2);
    ck_assert_uint_eq(find(1, "10.0.0.4:8080")->state->weight, 2);
    ck_assert_int_eq(add_server(1, "unix:/run/app.sock", true), 0);
    ck_assert_ptr_null(find(0, "unix:/run/app.sock"));
    ck_assert_int_eq(remove_server(1, "10.0.0.4:8080"), 0);
    ck_assert_ptr_null(find(0, "10.0.0.4:8080"));
    ck_assert_ptr_null(find(1, "10.0.0.4:8080"));
    close_all();
}
END_TEST

static struct upstream_peer *peer_named(unsigned worker, const char *name)
{
    struct upstream_group *group = group_of(worker);

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (strcmp(peer->name, name) == 0)
            return peer;
    }
    return NULL;
}

/* Its weight grows from the addition on, in all workers. */
START_TEST(an_added_server_starts_slowly)
{
    struct upstream_server server;

    open_all();
    ck_assert_int_eq(upstream_server_parse(STR("10.0.0.4"), 80, &server), 0);
    server.weight = 2;
    server.slow_start_ms = 10000;
    ck_assert_int_eq(upstream_group_add_server(group_of(0), &server), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        upstream_group_follow(group_of(i));
        ck_assert_uint_eq(upstream_peer_weight(peer_named(i, "10.0.0.4:80")), 1);
    }
    scripted_advance(&loop, 5000);
    ck_assert_uint_eq(upstream_peer_weight(peer_named(1, "10.0.0.4:80")), UPSTREAM_WEIGHT_UNIT);
    scripted_advance(&loop, 5000);
    ck_assert_uint_eq(upstream_peer_weight(peer_named(1, "10.0.0.4:80")), 2 * UPSTREAM_WEIGHT_UNIT);
    close_all();
}
END_TEST

/* A worker that replaces another one keeps the later state. */
START_TEST(a_server_is_added_down)
{
    struct upstream_server server;

    open_all();
    ck_assert_int_eq(upstream_server_parse(STR("10.0.0.4"), 80, &server), 0);
    server.down = true;
    ck_assert_int_eq(upstream_group_add_server(group_of(0), &server), 0);
    ck_assert_ptr_null(find(0, "10.0.0.4:80"));
    ck_assert_ptr_null(find(1, "10.0.0.4:80"));
    upstream_set_mode(peer_named(1, "10.0.0.4:80")->state, UPSTREAM_UP, 0);
    ck_assert_ptr_nonnull(find(0, "10.0.0.4:80"));
    close_pool(1);
    open_pool(1, 1);
    ck_assert_ptr_nonnull(find(1, "10.0.0.4:80"));
    close_all();
}
END_TEST

/* An idle worker, which chooses no server, claims and releases the entry, too. */
START_TEST(idle_workers_follow)
{
    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.4", false), 0);
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_uint_eq(holders_of("10.0.0.4:80"), 2);
    ck_assert_int_eq(remove_server(0, "10.0.0.4:80"), 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    pass_time(1);
    ck_assert_uint_eq(holders_of("10.0.0.4:80"), 1);
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_uint_eq(holders_of("10.0.0.4:80"), 0);
    ck_assert_uint_eq(holders_of("10.0.0.1:80"), 0);
    ck_assert_uint_eq(holders_of("10.0.0.2:80"), 2);
    close_all();
}
END_TEST

START_TEST(a_removed_server_of_the_configuration_can_be_added_again)
{
    open_all();
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    ck_assert_ptr_null(find(1, "10.0.0.1:80"));
    ck_assert(upstream_zone_is_removed(zone, upstream_zone_at(zone, 0)));
    ck_assert(!upstream_zone_is_removed(zone, upstream_zone_at(zone, 1)));
    ck_assert_int_eq(remove_server(1, "10.0.0.1:80"), -ENOENT);
    ck_assert_int_eq(add_server(1, "10.0.0.1", false), 0);
    ck_assert_ptr_nonnull(find(0, "10.0.0.1:80"));
    ck_assert_uint_eq(find(0, "10.0.0.1:80")->state->weight, 2);
    ck_assert_uint_eq(find(0, "10.0.0.1:80")->state->removed, 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    ck_assert_ptr_null(find(1, "10.0.0.1:80"));
    close_all();
}
END_TEST

static const struct upstream_events no_events;
static const struct upstream_transport plain;

START_TEST(a_running_request_is_completed)
{
    struct upstream_connection *connection;
    struct upstream_peer *peer;
    struct upstream_shared *state;

    open_all();
    peer = find(1, "10.0.0.1:80");
    state = peer->state;
    ck_assert_int_eq(upstream_connect(peer, &plain, &no_events, NULL, 0, false, &connection), 0);
    scripted_delay_connect(&loop, connection->fd);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    ck_assert_uint_eq(state->removed, 1);
    ck_assert_ptr_null(find(1, "10.0.0.1:80"));
    pass_time(3 * LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_ptr_eq(connection->peer, peer);
    ck_assert_uint_eq(state->active, 1);
    ck_assert_uint_eq(state->holders, 1);
    upstream_discard(connection);
    ck_assert_uint_eq(state->holders, 0);
    close_all();
}
END_TEST

START_TEST(invalid_changes_are_refused)
{
    struct upstream_group *group;
    struct upstream_server server = servers[0];

    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.1", false), -EEXIST);
    ck_assert_int_eq(add_server(0, "10.0.0.3:80", false), -EEXIST);
    ck_assert_int_eq(add_server(0, "10.0.0.4", false), 0);
    ck_assert_int_eq(add_server(1, "10.0.0.4", true), -EEXIST);
    ck_assert_int_eq(remove_server(0, "10.0.0.5:80"), -ENOENT);
    ck_assert_int_eq(remove_server(0, "10.0.0.4:80"), 0);
    ck_assert_int_eq(remove_server(1, "10.0.0.4:80"), -ENOENT);
    ck_assert_int_eq(remove_server(1, "10.0.0.2:80"), 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), -EBUSY); /* the other one is a backup */
    ck_assert_ptr_nonnull(find(0, "10.0.0.1:80"));
    ck_assert_int_eq(remove_server(0, "10.0.0.3:80"), 0);
    group = upstream_pool_group(pools[0], &other);
    ck_assert_int_eq(upstream_server_parse(STR("10.0.0.4"), 80, &server), 0);
    ck_assert_int_eq(upstream_group_add_server(group, &server), -EOPNOTSUPP);
    ck_assert_int_eq(upstream_group_remove_server(group, STR("10.9.0.1:80")), -EOPNOTSUPP);
    close_all();
}
END_TEST

START_TEST(a_full_table_refuses_further_servers)
{
    char text[32];

    open_all();
    for (int i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        snprintf(text, sizeof(text), "10.1.0.%d", i + 1);
        ck_assert_int_eq(add_server(0, text, false), 0);
    }
    ck_assert_int_eq(add_server(1, "10.2.0.1", false), -ENOSPC);
    ck_assert_ptr_null(find(1, "10.2.0.1:80"));
    ck_assert_int_eq(remove_server(1, "10.0.0.1:80"), -ENOSPC);
    ck_assert_uint_eq(group_of(1)->count, SERVERS + LIMIT_UPSTREAM_CHANGES);
    ck_assert_int_eq(remove_server(1, "10.1.0.7:80"), 0);
    ck_assert_int_eq(remove_server(1, "10.0.0.1:80"), 0);
    close_all();
}
END_TEST

START_TEST(a_replaced_worker_follows)
{
    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.4", false), 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    close_pool(1);
    open_pool(1, 1);
    ck_assert_uint_eq(group_of(1)->count, 3);
    ck_assert_ptr_nonnull(find(1, "10.0.0.4:80"));
    ck_assert_ptr_null(find(1, "10.0.0.1:80"));
    close_all();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        all_workers_use_an_added_server, an_added_server_starts_slowly, a_server_is_added_down, idle_workers_follow,
        a_removed_server_of_the_configuration_can_be_added_again, a_running_request_is_completed,
        invalid_changes_are_refused, a_full_table_refuses_further_servers, a_replaced_worker_follows,
    };

    return suite_run("follow", tests, COUNT(tests));
}
