/* Servers added and removed at run time: two pools over one zone, over a scripted loop. */
#include "upstream/upstream_follow.h"
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"
#include "upstream/upstream_servers.h"

#include "../http/suite.h"
#include "scripted.h"

#include <errno.h>
#include <stdio.h>

#define WORKERS 2
#define SERVERS 3

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_server servers[SERVERS];
static struct upstream_server other_server;
static struct upstream upstream, other;
static struct upstreams upstreams;
static struct upstream_zone *zone;
static struct upstream_pool *pools[WORKERS];

static void open_pool(unsigned worker, uint64_t configuration)
{
    pools[worker] = upstream_pool_create(&loop, &silent, &upstreams, zone, worker);
    ck_assert_ptr_nonnull(pools[worker]);
    upstream_pool_follow(pools[worker], configuration);
}

/* The servers 10.0.0.1 and 10.0.0.2, and the backup 10.0.0.3; a second group has no zone. */
static void open_all(void)
{
    static const char *const names[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};

    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    scripted_advance(&loop, 1000000);
    for (size_t i = 0; i < SERVERS; i++)
        ck_assert_int_eq(upstream_server_parse(str_from(names[i]), 80, &servers[i]), 0);
    servers[2].backup = true;
    ck_assert_int_eq(upstream_server_parse(STR("10.9.0.1"), 80, &other_server), 0);
    other = (struct upstream){.name = STR("other"), .servers = &other_server, .count = 1, .index = 1};
    upstream = (struct upstream){
        .name = STR("app"), .servers = servers, .count = SERVERS, .zone = true, .next = &other};
    upstreams = (struct upstreams){.first = &upstream, .count = 2};
    zone = upstream_zone_create(WORKERS);
    ck_assert_ptr_nonnull(zone);
    for (unsigned i = 0; i < WORKERS; i++)
        open_pool(i, 1);
}

static void close_pool(unsigned worker)
{
    upstream_pool_stop(pools[worker]);
    scripted_settle(&loop, 1000);
    upstream_pool_destroy(pools[worker]);
}

static void close_all(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        close_pool(i);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
    upstream_zone_destroy(zone);
}

static struct upstream_group *group_of(unsigned worker)
{
    return upstream_pool_group(pools[worker], &upstream);
}

static int add_server(unsigned worker, const char *text, bool backup)
{
    struct upstream_server server;

    ck_assert_int_eq(upstream_server_parse(str_from(text), 80, &server), 0);
    server.backup = backup;
    server.weight = 2;
    return upstream_group_add_server(group_of(worker), &server);
}

static int remove_server(unsigned worker, const char *name)
{
    return upstream_group_remove_server(group_of(worker), str_from(name));
}

/* The peer with this name among those that the worker chooses for its next requests. NULL: none. */
static struct upstream_peer *find(unsigned worker, const char *name)
{
    struct upstream_peer *found = NULL;
    int error;

    for (int i = 0; i < 20; i++) {
        struct upstream_choice choice = {0};
        struct upstream_peer *peer = upstream_choose(group_of(worker), &choice, &error);

        if (peer && strcmp(peer->name, name) == 0)
            found = peer;
    }
    return found;
}

/* The workers that hold the entry of this server; 0: there is none. */
static uint64_t holders_of(const char *name)
{
    uint64_t holders = 0;

    for (int i = 0; i < LIMIT_UPSTREAM_PEERS; i++) {
        if (strcmp(upstream_zone_at(zone, i)->name, name) == 0)
            holders += upstream_zone_at(zone, i)->holders;
    }
    return holders;
}

static void pass_time(uint64_t ms)
{
    scripted_advance(&loop, ms);
    scripted_settle(&loop, 10);
}

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

/* An idle worker, which chooses no server, claims and releases the entry, too. */
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

/* Workers of an older configuration keep their servers while they drain. */
START_TEST(a_new_configuration_begins_again)
{
    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.4", false), 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    close_pool(1);
    open_pool(1, 2);
    ck_assert_ptr_null(find(1, "10.0.0.4:80"));
    ck_assert_ptr_nonnull(find(1, "10.0.0.1:80"));
    ck_assert_ptr_nonnull(find(0, "10.0.0.4:80"));
    ck_assert_int_eq(add_server(1, "10.0.0.5", false), 0);
    ck_assert_int_eq(remove_server(1, "10.0.0.2:80"), 0);
    ck_assert_ptr_nonnull(find(0, "10.0.0.4:80"));
    ck_assert_ptr_nonnull(find(0, "10.0.0.2:80"));
    ck_assert_ptr_null(find(0, "10.0.0.5:80"));
    ck_assert_int_eq(add_server(0, "10.0.0.6", false), -ESTALE);
    ck_assert_int_eq(remove_server(0, "10.0.0.2:80"), -ESTALE);
    close_all();
}
END_TEST

static void forge(uint64_t group, const char *name, enum upstream_change_kind kind)
{
    struct upstream_changes *changes = upstream_zone_changes(zone);
    struct upstream_change change = {.kind = kind, .group = group, .weight = 1};
    uint64_t serial;

    snprintf(change.name, sizeof(change.name), "%s", name);
    upstream_changes_lock(changes);
    ck_assert_int_eq(upstream_changes_write(changes, 1, &change, &serial), 0);
    upstream_changes_unlock(changes);
}

START_TEST(rows_of_a_compromised_worker_are_not_applied)
{
    open_all();
    forge(0, "app internal:80", CHANGE_ADDED);
    forge(0, "10.0.0.4:99999", CHANGE_ADDED);
    forge(1, "10.0.0.4:80", CHANGE_ADDED);
    forge(1, "10.9.0.1:80", CHANGE_REMOVED);
    forge(2, "10.0.0.4:80", CHANGE_ADDED);
    forge(UINT64_MAX, "10.0.0.4:80", CHANGE_REMOVED);
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_uint_eq(group_of(0)->count, SERVERS);
    ck_assert_uint_eq(upstream_pool_group(pools[0], &other)->count, 1);
    close_all();
}
END_TEST

/* As the query of a name before its addition. */
static void resolve(const char *host, unsigned count)
{
    struct resolver_address addresses[2];
    const struct resolver_answer answer = {.addresses = addresses, .count = count};
    struct upstream_server server;

    for (unsigned i = 0; i < count; i++) {
        struct listen_address address;
        char text[32];

        snprintf(text, sizeof(text), "10.1.0.%u:80", i + 1);
        ck_assert_int_eq(listen_address_parse(str_from(text), &address), 0);
        addresses[i] = (struct resolver_address){.socket = address.socket, .length = address.length};
    }
    ck_assert_int_eq(upstream_server_parse(str_from(host), 80, &server), 0);
    upstream_addresses_store(group_of(0), &server, &answer);
}

/* All workers begin with the addresses that the first one has found. */
START_TEST(a_name_is_added_with_its_addresses)
{
    bool entries[LIMIT_UPSTREAM_PEERS] = {false};
    unsigned count = 0;

    open_all();
    resolve("app.internal", 2);
    ck_assert_int_eq(add_server(0, "app.internal", false), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_ptr_nonnull(find(i, "10.1.0.1:80"));
        ck_assert_ptr_nonnull(find(i, "10.1.0.2:80"));
        ck_assert_uint_eq(find(i, "10.1.0.1:80")->server->weight, 2);
    }
    ck_assert_ptr_eq(find(0, "10.1.0.2:80")->state, find(1, "10.1.0.2:80")->state);
    upstream_group_find_server(group_of(1), STR("APP.internal:80"), entries);
    for (unsigned i = 0; i < LIMIT_UPSTREAM_PEERS; i++)
        count += entries[i];
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(add_server(1, "App.Internal:80", false), -EEXIST);
    ck_assert_int_eq(add_server(1, "app.internal:81", false), 0);
    ck_assert_int_eq(remove_server(1, "10.1.0.1:80"), -EADDRNOTAVAIL);
    ck_assert_int_eq(remove_server(1, "app.internal:82"), -ENOENT);
    ck_assert_int_eq(remove_server(1, "app.internal:81"), 0);
    ck_assert_int_eq(remove_server(1, "app.internal:80"), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_ptr_null(find(i, "10.1.0.1:80"));
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_uint_eq(holders_of("10.1.0.1:80"), 0);
    close_all();
}
END_TEST

/* A name counts as a server that is not a backup, and may be the last one. */
START_TEST(a_name_may_be_the_last_server)
{
    open_all();
    resolve("app.internal", 1);
    ck_assert_int_eq(add_server(0, "app.internal", false), 0);
    ck_assert_int_eq(remove_server(0, "10.0.0.1:80"), 0);
    ck_assert_int_eq(remove_server(1, "10.0.0.2:80"), 0);
    ck_assert_int_eq(remove_server(1, "app.internal:80"), -EBUSY);
    close_pool(1);
    open_pool(1, 1);
    ck_assert_ptr_nonnull(find(1, "10.1.0.1:80"));
    ck_assert_int_eq(add_server(1, "10.0.0.1", false), 0);
    ck_assert_int_eq(remove_server(0, "app.internal:80"), 0);
    ck_assert_ptr_null(find(1, "10.1.0.1:80"));
    close_all();
}
END_TEST

static void forge_configuration(uint64_t number)
{
    upstream_changes_lock(upstream_zone_changes(zone));
    upstream_changes_set_configuration(upstream_zone_changes(zone), number);
    upstream_changes_unlock(upstream_zone_changes(zone));
}

/* The servers added before remain. */
START_TEST(a_forged_configuration_is_replaced)
{
    open_all();
    ck_assert_int_eq(add_server(0, "10.0.0.4", false), 0);
    forge_configuration(UINT64_MAX);
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_int_eq(add_server(0, "10.0.0.5", false), -ESTALE);
    for (unsigned ms = 0; ms < LIMIT_UPSTREAM_FORGED_MS; ms += LIMIT_UPSTREAM_FOLLOW_MS)
        pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_ptr_nonnull(find(1, "10.0.0.4:80"));
    ck_assert_int_eq(add_server(0, "10.0.0.5", false), 0);
    ck_assert_ptr_nonnull(find(1, "10.0.0.5:80"));
    forge_configuration(2); /* the time begins again */
    pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_int_eq(remove_server(0, "10.0.0.4:80"), -ESTALE);
    close_all();
}
END_TEST

/* These workers are about to end. */
START_TEST(the_newer_configuration_of_retired_workers_is_kept)
{
    open_all();
    upstream_pool_retire(pools[0]);
    upstream_pool_retire(pools[1]);
    forge_configuration(2);
    for (unsigned ms = 0; ms < 2 * LIMIT_UPSTREAM_FORGED_MS; ms += LIMIT_UPSTREAM_FOLLOW_MS)
        pass_time(LIMIT_UPSTREAM_FOLLOW_MS);
    ck_assert_int_eq(add_server(0, "10.0.0.5", false), -ESTALE);
    ck_assert_uint_eq(upstream_changes_configuration(upstream_zone_changes(zone)), 2);
    close_all();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        all_workers_use_an_added_server, an_added_server_starts_slowly, a_server_is_added_down, idle_workers_follow,
        a_removed_server_of_the_configuration_can_be_added_again, a_running_request_is_completed,
        invalid_changes_are_refused, a_full_table_refuses_further_servers, a_replaced_worker_follows,
        a_name_is_added_with_its_addresses, a_name_may_be_the_last_server,
        a_new_configuration_begins_again, a_forged_configuration_is_replaced,
        the_newer_configuration_of_retired_workers_is_kept, rows_of_a_compromised_worker_are_not_applied,
    };

    return suite_run("follow", tests, COUNT(tests));
}
