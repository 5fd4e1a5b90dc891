/* Servers added by name; new, forged and compromised configurations: which changes the workers apply. */
#include "follow_fixture.h"

#include <errno.h>
#include <stdio.h>

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
        a_name_is_added_with_its_addresses, a_name_may_be_the_last_server, a_new_configuration_begins_again,
        a_forged_configuration_is_replaced, the_newer_configuration_of_retired_workers_is_kept,
        rows_of_a_compromised_worker_are_not_applied,
    };

    return suite_run("follow_configuration", tests, COUNT(tests));
}
