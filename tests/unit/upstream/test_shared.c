/* Failures of upstream servers, pauses and recoveries, which all workers see. */
#include "shared_fixture.h"

#include <errno.h>

static bool is_chosen(unsigned worker, int number)
{
    bool seen = false;

    for (int i = 0; i < 12; i++)
        seen |= chosen_number(worker) == number;
    return seen;
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

/* Another worker takes the last connection between the choice of the server and the connect. */
START_TEST(max_conns_reached_is_not_a_failure)
{
    static const struct upstream_events no_events;
    const struct upstream_transport plain = {0};
    struct upstream_connection *connection = NULL;
    struct upstream_peer *peer, *other;
    int error;

    open_servers(BALANCE_ROUND_ROBIN, 2);
    servers[0].max_fails = servers[0].max_conns = 1;
    open_pools();
    peer = find(0, 1);
    other = find(1, 1);
    ck_assert(upstream_use_begin(other));
    error = upstream_connect(peer, &plain, &no_events, NULL, 1000, true, &connection);
    ck_assert_int_eq(error, -EBUSY);
    ck_assert(upstream_is_local_error(error));
    ck_assert(!is_chosen(0, 1));
    upstream_use_end(other);
    ck_assert(is_chosen(0, 1));
    close_pools();
}
END_TEST

START_TEST(local_errors_are_not_failures)
{
    static const int local[] = {EBUSY, EMFILE, ENFILE, ENOMEM};
    static const int others[] = {ECONNREFUSED, ETIMEDOUT, EPROTO, EHOSTUNREACH};

    for (size_t i = 0; i < 4; i++) {
        ck_assert(upstream_is_local_error(-local[i]));
        ck_assert(!upstream_is_local_error(-others[i]));
    }
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

int main(void)
{
    const TTest *const tests[] = {
        worker_with_a_clock_behind, all_workers_see_failures, pause_doubles_after_failed_retries,
        max_conns_reached_is_not_a_failure, local_errors_are_not_failures,
        concurrent_requests_retry_one_by_one, recovered_server_starts_slowly, route_selects_its_server,
    };

    return suite_run("shared", tests, COUNT(tests));
}
