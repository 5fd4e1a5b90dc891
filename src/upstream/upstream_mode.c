/*
 * Mode and weight. Workers read them for each selection of a peer.
 */
#include "upstream/upstream_mode.h"

#include "base/limits.h"

#include <string.h>

const char *const upstream_mode_names[] = {
    [UPSTREAM_UP] = "up", [UPSTREAM_DRAINING] = "draining", [UPSTREAM_DOWN] = "down", NULL};

struct upstream_names upstream_read_names(const struct upstream_shared *state)
{
    struct upstream_names names;

    memcpy(names.group, state->group, sizeof(names.group));
    memcpy(names.server, state->name, sizeof(names.server));
    names.group[sizeof(names.group) - 1] = '\0';
    names.server[sizeof(names.server) - 1] = '\0';
    return names;
}

uint64_t upstream_read_weight(const struct upstream_shared *state)
{
    uint64_t weight = shared_get(&state->weight);

    if (weight == 0)
        return 1;
    return weight < LIMIT_UPSTREAM_WEIGHT ? weight : LIMIT_UPSTREAM_WEIGHT;
}

static bool is_mode(uint64_t value)
{
    return value == UPSTREAM_UP || value == UPSTREAM_DRAINING || value == UPSTREAM_DOWN;
}

const char *upstream_state_name(const struct upstream_shared *state)
{
    uint64_t mode = shared_get(&state->mode);

    if (mode == UPSTREAM_DRAINING || mode == UPSTREAM_DOWN)
        return upstream_mode_names[mode];
    if (shared_get(&state->checked) == CHECKED_BAD)
        return "unhealthy";
    return shared_get(&state->paused) ? "unavailable" : "up";
}

enum upstream_mode upstream_set_mode(struct upstream_shared *state, enum upstream_mode mode, uint64_t now_ms)
{
    uint64_t before;

    if (mode == UPSTREAM_UP) {
        shared_set(&state->fails, 0);
        shared_set(&state->retrying, 0);
        shared_set(&state->paused, 0);
        shared_set(&state->recovered_ms, now_ms);
    }
    before = shared_swap(&state->mode, mode);
    return is_mode(before) ? (enum upstream_mode)before : UPSTREAM_UP;
}

uint64_t upstream_set_weight(struct upstream_shared *state, uint64_t weight)
{
    return shared_swap(&state->weight, weight);
}

void upstream_configure_weight(struct upstream_shared *state, uint64_t weight)
{
    uint64_t before = shared_get(&state->configured_weight);

    if (before != weight && shared_change(&state->configured_weight, before, weight))
        shared_set(&state->weight, weight);
}
