/* The choice of an upstream server for a request. */
#include "balance_fixture.h"

#include <errno.h>
#include <stdio.h>

START_TEST(round_robin_follows_the_weights)
{
    char seen[16];

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[0].weight = 5;
    open_pool();
    choose_several(7, seen);
    ck_assert_str_eq(seen, "1121311");
    choose_several(7, seen);
    ck_assert_str_eq(seen, "1121311");
    close_pool();
}
END_TEST

START_TEST(weight_changes_at_once)
{
    static const enum upstream_balance methods[] = {BALANCE_ROUND_ROBIN, BALANCE_RANDOM, BALANCE_HASH};

    for (size_t i = 0; i < COUNT(methods); i++) {
        unsigned first = 0;

        open_group(methods[i], three);
        open_pool();
        ck_assert_uint_eq(upstream_set_weight(peer_at(0)->state, 98), 1);
        for (unsigned k = 0; k < 100; k++) {
            char key[16];

            snprintf(key, sizeof(key), "%u", k);
            first += chosen_digit(str_from(key)) == '1';
        }
        ck_assert_uint_ge(first, methods[i] == BALANCE_ROUND_ROBIN ? 98 : 80);
        close_pool();
    }
}
END_TEST

/* A weight that failures reduced grows back soon, also after it was set to a lower one. */
START_TEST(lower_weight_recovers_from_failures)
{
    char seen[16];

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[0].weight = 1000;
    open_pool();
    upstream_peer_failed(peer_at(0));
    (void)upstream_set_weight(peer_at(0)->state, 1);
    (void)upstream_set_mode(peer_at(0)->state, UPSTREAM_UP, 0);
    choose_several(9, seen);
    ck_assert_ptr_nonnull(strchr(seen, '1'));
    close_pool();
}
END_TEST

START_TEST(draining_server_gets_its_sessions_only)
{
    struct upstream_choice choice = {0};
    struct upstream_peer *peer;
    char seen[16];
    int error;

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[1].down = true;
    open_pool();
    peer = peer_at(0);
    (void)upstream_set_mode(peer->state, UPSTREAM_DRAINING, 0);
    choose_several(3, seen);
    ck_assert_str_eq(seen, "333");
    choice.route = str_from(peer->route);
    ck_assert(upstream_has_another(group, &choice));
    ck_assert_ptr_eq(upstream_choose(group, &choice, &error), peer);
    (void)upstream_set_mode(peer->state, UPSTREAM_DOWN, 0);
    choice = (struct upstream_choice){.route = str_from(peer->route)};
    ck_assert_str_eq(upstream_choose(group, &choice, &error)->name, "10.0.0.3:80");
    (void)upstream_set_mode(peer_at(1)->state, UPSTREAM_UP, 0);
    choose_several(4, seen);
    ck_assert_ptr_nonnull(strchr(seen, '2'));
    close_pool();
}
END_TEST

START_TEST(each_server_is_tried_once)
{
    struct upstream_choice choice = {0};
    int error = 0;

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[1].backup = true;
    servers[2].down = true;
    open_pool();
    ck_assert(upstream_has_another(group, &choice));
    ck_assert_str_eq(upstream_choose(group, &choice, &error)->name, "10.0.0.1:80");
    ck_assert_str_eq(upstream_choose(group, &choice, &error)->name, "10.0.0.2:80");
    ck_assert(!upstream_has_another(group, &choice));
    ck_assert_ptr_null(upstream_choose(group, &choice, &error));
    ck_assert_int_eq(error, -EBUSY);
    close_pool();
}
END_TEST

START_TEST(failed_server_is_paused)
{
    struct upstream_choice choice = {0};
    struct upstream_peer *peer;
    char seen[16];
    int error;

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[2].down = true;
    servers[0].max_fails = 2;
    open_pool();
    peer = upstream_choose(group, &choice, &error);
    upstream_peer_failed(peer);
    choose_several(2, seen);
    ck_assert_ptr_nonnull(strchr(seen, '1'));
    upstream_peer_failed(peer);
    choose_several(4, seen);
    ck_assert_str_eq(seen, "2222");
    scripted_advance(&loop, 10000);
    scripted_settle(&loop, 10);
    choose_several(4, seen); /* one request tries the failed server; until this request ends, the others use server 2 */
    ck_assert_ptr_nonnull(strchr(seen, '1'));
    ck_assert_ptr_eq(strchr(seen, '1'), strrchr(seen, '1'));
    upstream_peer_succeeded(peer);
    choose_several(4, seen);
    ck_assert_ptr_ne(strchr(seen, '1'), strrchr(seen, '1'));
    close_pool();
}
END_TEST

START_TEST(single_server_is_never_paused)
{
    static const char *const one[] = {"10.0.0.1", NULL};
    struct upstream_choice choice = {0};
    int error;

    open_group(BALANCE_ROUND_ROBIN, one);
    open_pool();
    upstream_peer_failed(upstream_choose(group, &choice, &error));
    ck_assert_int_eq(chosen_digit(STR("")), '1');
    close_pool();
}
END_TEST

static const struct upstream_events no_events;
static const struct upstream_transport plain;

/* Begins a request that stays in progress: its connection is being established. */
static struct upstream_connection *open_connection(char *out_server)
{
    struct upstream_choice choice = {0};
    struct upstream_connection *connection = NULL;
    int error;
    struct upstream_peer *peer = upstream_choose(group, &choice, &error);

    *out_server = peer ? peer->name[7] : '-';
    if (peer) {
        ck_assert_int_eq(upstream_connect(peer, &plain, &no_events, NULL, 0, false, &connection), 0);
        scripted_delay_connect(&loop, connection->fd);
    }
    return connection;
}

START_TEST(least_connections_is_chosen)
{
    struct upstream_connection *open[6];
    char seen[8] = "";

    open_group(BALANCE_LEAST_CONN, three);
    servers[1].weight = 2;
    open_pool();
    for (unsigned i = 0; i < 4; i++)
        open[i] = open_connection(&seen[i]);
    ck_assert_int_eq(strcspn(seen, "2") < 4, 1);
    ck_assert_ptr_nonnull(strchr(seen, '1'));
    ck_assert_ptr_nonnull(strchr(seen, '3'));
    for (unsigned i = 0; i < 4; i++)
        upstream_discard(open[i]);
    ck_assert_ptr_ne(strchr(seen, '2'), strrchr(seen, '2')); /* twice the weight, twice the requests */
    close_pool();
}
END_TEST

START_TEST(full_servers_are_skipped)
{
    struct upstream_connection *open[3];
    char seen[4] = "";

    open_group(BALANCE_ROUND_ROBIN, three);
    servers[0].max_conns = servers[1].max_conns = 1;
    servers[2].down = true;
    open_pool();
    for (unsigned i = 0; i < 3; i++)
        open[i] = open_connection(&seen[i]);
    ck_assert_str_eq(seen, "12-");
    upstream_discard(open[0]);
    scripted_settle(&loop, 100);
    ck_assert_int_eq(chosen_digit(STR("")), '1');
    upstream_discard(open[1]);
    close_pool();
}
END_TEST

START_TEST(random_two_uses_all_servers)
{
    unsigned counts[4] = {0};

    open_group(BALANCE_RANDOM, three);
    open_pool();
    for (unsigned i = 0; i < 300; i++)
        counts[chosen_digit(STR("")) - '0']++;
    for (unsigned i = 1; i <= 3; i++)
        ck_assert_uint_gt(counts[i], 30);
    close_pool();
}
END_TEST

START_TEST(targets_from_variables)
{
    static char long_name[1000];
    const struct str bad[] = {STR("a b"), STR(""), str_of(long_name, sizeof(long_name))};
    const char *const one[] = {"127.0.0.1", NULL};
    struct upstream_group *bare, *sealed;
    int error = 0;

    open_group(BALANCE_ROUND_ROBIN, one);
    upstream.name = STR("backend");
    upstream.named = true;
    open_pool();
    ck_assert_ptr_eq(upstream_pool_target(pool, STR("backend"), 80, &error), group);
    bare = upstream_pool_target(pool, STR("127.0.0.1"), 80, &error);
    sealed = upstream_pool_target(pool, STR("127.0.0.1"), 443, &error);
    ck_assert_uint_eq(upstream_group_upstream(bare)->servers->port, 80);
    ck_assert_uint_eq(upstream_group_upstream(sealed)->servers->port, 443);
    ck_assert_ptr_eq(upstream_pool_target(pool, STR("127.0.0.1"), 80, &error), bare);
    ck_assert_ptr_eq(upstream_pool_target(pool, STR("127.0.0.1"), 443, &error), sealed);
    memset(long_name, 'a', sizeof(long_name));
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_ptr_null(upstream_pool_target(pool, bad[i], 80, &error));
        ck_assert_int_eq(error, -EINVAL);
    }
    close_pool();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        round_robin_follows_the_weights, weight_changes_at_once, lower_weight_recovers_from_failures,
        draining_server_gets_its_sessions_only, each_server_is_tried_once, failed_server_is_paused,
        single_server_is_never_paused, least_connections_is_chosen, full_servers_are_skipped,
        random_two_uses_all_servers, targets_from_variables,
    };

    return suite_run("balance", tests, COUNT(tests));
}
