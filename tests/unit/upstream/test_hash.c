/* Consistent hashing: the server of a key, also if servers are added or removed. */
#include "balance_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS 200 /* for each server */
#define KEYS_OF_ALL 1000

START_TEST(a_key_stays_with_its_server)
{
    char first[200];
    unsigned counts[4] = {0};
    unsigned moved = 0;

    open_group(BALANCE_HASH, three);
    open_pool();
    for (unsigned i = 0; i < sizeof(first); i++) {
        char key[16];
        int length = snprintf(key, sizeof(key), "/page/%u", i);

        first[i] = chosen_digit(str_of(key, (size_t)length));
        ck_assert_int_eq(chosen_digit(str_of(key, (size_t)length)), first[i]);
        counts[first[i] - '0']++;
    }
    for (unsigned i = 1; i <= 3; i++)
        ck_assert_uint_gt(counts[i], 40);
    (void)upstream_set_mode(peer_at(1)->state, UPSTREAM_DOWN, 0);
    for (unsigned i = 0; i < sizeof(first); i++) {
        char key[16];
        int length = snprintf(key, sizeof(key), "/page/%u", i);

        moved += chosen_digit(str_of(key, (size_t)length)) != first[i];
    }
    ck_assert_uint_eq(moved, counts[2]); /* only the keys of the removed server move */
    close_pool();
}
END_TEST

static const struct upstream_peer *choose_for_number(unsigned number)
{
    char key[16];
    int length = snprintf(key, sizeof(key), "/page/%u", number);
    struct upstream_choice choice = {.key = str_of(key, (size_t)length)};
    int error;

    return upstream_choose(group, &choice, &error);
}

/* Opens a pool of `count` servers, without that of the number `left_out`. */
static void open_numbered(unsigned count, unsigned left_out)
{
    static char texts[MAX_SERVERS][24];
    const char *addresses[MAX_SERVERS + 1] = {NULL};
    unsigned used = 0;

    for (unsigned i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "10.0.1.%u:80", i);
        if (i != left_out)
            addresses[used++] = texts[i];
    }
    open_group(BALANCE_HASH, addresses);
    open_pool();
}

/* While the server does not take part, exactly its own keys are elsewhere; then they return. The number of its keys. */
static unsigned keys_moved_without(unsigned removed, const struct upstream_peer *const *first, unsigned keys)
{
    const struct upstream_peer *server = peer_at(removed);
    unsigned own = 0, wrong = 0;

    (void)upstream_set_mode(server->state, UPSTREAM_DRAINING, 0);
    for (unsigned i = 0; i < keys; i++) {
        wrong += (choose_for_number(i) != first[i]) != (first[i] == server);
        own += first[i] == server;
    }
    (void)upstream_set_mode(server->state, UPSTREAM_UP, 0);
    for (unsigned i = 0; i < keys; i++)
        wrong += first[i] == server && choose_for_number(i) != server;
    ck_assert_uint_eq(wrong, 0);
    return own;
}

/* Each key moves when one of the servers is removed: on average over the servers, 1/count of the keys. */
START_TEST(removed_server_moves_only_its_share_of_keys)
{
    static const unsigned counts[] = {3, 4, 10, 33, 100};
    static const struct upstream_peer *first[KEYS_OF_ALL];

    for (size_t at = 0; at < COUNT(counts); at++) {
        unsigned count = counts[at], moved = 0;

        open_numbered(count, MAX_SERVERS);
        for (unsigned i = 0; i < KEYS_OF_ALL; i++)
            first[i] = choose_for_number(i);
        for (unsigned removed = 0; removed < count; removed++)
            moved += keys_moved_without(removed, first, KEYS_OF_ALL);
        ck_assert_uint_eq(moved, KEYS_OF_ALL);
        close_pool();
    }
}
END_TEST

/* Finds the number of each key's server among `count` servers without that of the number `left_out`. */
static void choose_all(unsigned count, unsigned left_out, unsigned *numbers)
{
    open_numbered(count, left_out);
    for (unsigned i = 0; i < count * KEYS; i++)
        numbers[i] = (unsigned)atoi(choose_for_number(i)->name + sizeof("10.0.1.") - 1);
    close_pool();
}

/* Another configuration, with one server more or less: only the keys of that server differ, about 1/count of all. */
START_TEST(added_server_takes_only_its_share_of_keys)
{
    static const unsigned counts[] = {3, 4, 10, 33, 100};
    static unsigned without[MAX_SERVERS * KEYS], with[MAX_SERVERS * KEYS];

    for (size_t at = 0; at < COUNT(counts); at++) {
        unsigned count = counts[at], added = count / 2, moved = 0;

        choose_all(count, added, without);
        choose_all(count, MAX_SERVERS, with);
        for (unsigned i = 0; i < count * KEYS; i++) {
            if (with[i] == without[i])
                continue;
            ck_assert_uint_eq(with[i], added);
            moved++;
        }
        ck_assert_uint_gt(moved, KEYS / 2);
        ck_assert_uint_lt(moved, KEYS * 3 / 2);
    }
}
END_TEST

/* As in nginx: otherwise all clients without the cookie of `hash: $cookie_x` would use one server. */
START_TEST(empty_key_uses_round_robin)
{
    char seen[16];

    open_group(BALANCE_HASH, three);
    open_pool();
    choose_several(6, seen);
    ck_assert_str_eq(seen, "123123");
    close_pool();
}
END_TEST

START_TEST(a_network_stays_with_its_server)
{
    char first;

    open_group(BALANCE_IP_HASH, three);
    open_pool();
    first = chosen_digit(STR("192.0.2.1"));
    ck_assert_int_eq(chosen_digit(STR("192.0.2.200")), first);
    ck_assert_int_ne(chosen_digit(STR("2001:db8::1")), '-');
    close_pool();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_key_stays_with_its_server, removed_server_moves_only_its_share_of_keys,
        added_server_takes_only_its_share_of_keys, empty_key_uses_round_robin, a_network_stays_with_its_server,
    };

    return suite_run("hash", tests, COUNT(tests));
}
