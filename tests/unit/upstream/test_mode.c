/* Mode and weight of a peer: names, changes, and how long they last. */
#include "upstream/upstream_mode.h"

#include "base/limits.h"

#include "../http/suite.h"

static struct upstream_zone *zone;

static struct upstream_shared *claim(unsigned worker, uint64_t weight, bool down)
{
    const struct upstream_claim peer = {
        .key = 7, .group = STR("app"), .name = STR("10.0.0.1:80"), .weight = weight, .down = down};
    int index = upstream_zone_claim(zone, worker, &peer);

    ck_assert_int_eq(index, 0);
    return upstream_zone_at(zone, index);
}

static void assert_values(const struct upstream_shared *state, enum upstream_mode mode, uint64_t weight)
{
    ck_assert_uint_eq(state->mode, mode);
    ck_assert_uint_eq(state->weight, weight);
}

START_TEST(states_have_names)
{
    struct upstream_shared state = {.mode = UPSTREAM_UP, .weight = 1};

    ck_assert_str_eq(upstream_state_name(&state), "up");
    state.paused = 1;
    ck_assert_str_eq(upstream_state_name(&state), "unavailable");
    state.checked = CHECKED_BAD;
    ck_assert_str_eq(upstream_state_name(&state), "unhealthy");
    state.mode = UPSTREAM_DRAINING;
    ck_assert_str_eq(upstream_state_name(&state), "draining");
    state.mode = UPSTREAM_DOWN;
    ck_assert_str_eq(upstream_state_name(&state), "down");
    state.mode = 12345; /* another process may write any value */
    ck_assert_str_eq(upstream_state_name(&state), "unhealthy");
}
END_TEST

START_TEST(values_of_a_compromised_worker_are_not_used)
{
    struct upstream_shared state = {.mode = 12345, .weight = 1};
    struct upstream_names names;

    memset(state.group, 'g', sizeof(state.group));
    memset(state.name, 'n', sizeof(state.name));
    ck_assert_int_eq(upstream_set_mode(&state, UPSTREAM_DOWN, 0), UPSTREAM_UP);
    names = upstream_read_names(&state);
    ck_assert_uint_eq(strlen(names.group), sizeof(state.group) - 1);
    ck_assert_uint_eq(strlen(names.server), sizeof(state.name) - 1);
    state.weight = 0;
    ck_assert_uint_eq(upstream_read_weight(&state), 1);
    state.weight = UINT64_MAX;
    ck_assert_uint_eq(upstream_read_weight(&state), LIMIT_UPSTREAM_WEIGHT);
}
END_TEST

START_TEST(up_ends_a_pause)
{
    struct upstream_shared state = {.weight = 1, .fails = 3, .paused = 1, .retrying = 1, .checked = CHECKED_GOOD};

    ck_assert_int_eq(upstream_set_mode(&state, UPSTREAM_DOWN, 100), UPSTREAM_UP);
    ck_assert_uint_eq(state.fails, 3);
    ck_assert_int_eq(upstream_set_mode(&state, UPSTREAM_UP, 200), UPSTREAM_DOWN);
    ck_assert_uint_eq(state.fails + state.paused + state.retrying, 0);
    ck_assert_uint_eq(state.recovered_ms, 200);
    ck_assert_uint_eq(state.checked, CHECKED_GOOD);
}
END_TEST

START_TEST(changes_outlive_a_dead_worker)
{
    struct upstream_shared *state;

    zone = upstream_zone_create(2);
    state = claim(0, 2, false);
    assert_values(state, UPSTREAM_UP, 2);
    (void)upstream_set_mode(state, UPSTREAM_DRAINING, 0);
    ck_assert_uint_eq(upstream_set_weight(state, 9), 2);
    state->requests = 5;
    upstream_zone_abandon(zone, 0);
    ck_assert_uint_eq(state->holders, 0);
    claim(0, 2, false); /* the replacement */
    assert_values(state, UPSTREAM_DRAINING, 9);
    ck_assert_uint_eq(state->requests, 0);
    upstream_zone_destroy(zone);
}
END_TEST

START_TEST(changes_end_with_the_last_worker_that_ends_in_order)
{
    struct upstream_shared *state;

    zone = upstream_zone_create(2);
    state = claim(0, 2, true);
    assert_values(state, UPSTREAM_DOWN, 2);
    (void)upstream_set_mode(state, UPSTREAM_UP, 0);
    (void)upstream_set_weight(state, 9);
    upstream_zone_release(zone, 0, 0);
    claim(0, 2, true);
    assert_values(state, UPSTREAM_DOWN, 2);
    upstream_zone_destroy(zone);
}
END_TEST

/* A new configuration replaces only the values that it changes. */
START_TEST(reload_applies_changed_values)
{
    struct upstream_shared *state;

    zone = upstream_zone_create(2);
    state = claim(0, 2, false);
    (void)upstream_set_mode(state, UPSTREAM_DOWN, 0);
    (void)upstream_set_weight(state, 9);
    claim(1, 2, false);
    assert_values(state, UPSTREAM_DOWN, 9);
    upstream_zone_release(zone, 0, 0);
    claim(0, 3, false);
    assert_values(state, UPSTREAM_DOWN, 3);
    (void)upstream_set_weight(state, 9);
    (void)upstream_set_mode(state, UPSTREAM_UP, 0);
    upstream_zone_release(zone, 1, 0);
    claim(1, 3, true);
    assert_values(state, UPSTREAM_DOWN, 9);
    upstream_zone_destroy(zone);
}
END_TEST

START_TEST(weight_of_a_record_changes_once)
{
    struct upstream_shared state = {.weight = 4, .configured_weight = 4};

    (void)upstream_set_weight(&state, 9);
    upstream_configure_weight(&state, 4);
    ck_assert_uint_eq(state.weight, 9);
    upstream_configure_weight(&state, 5);
    ck_assert_uint_eq(state.weight, 5);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        states_have_names, values_of_a_compromised_worker_are_not_used, up_ends_a_pause, changes_outlive_a_dead_worker,
        changes_end_with_the_last_worker_that_ends_in_order, reload_applies_changed_values,
        weight_of_a_record_changes_once,
    };

    return suite_run("mode", tests, COUNT(tests));
}
