/*
 * Mode and weight. Workers read them for each selection of a peer.
 */
#include "upstream/upstream_mode.h"

const char *const upstream_mode_names[] = {
    [UPSTREAM_UP] = "up", [UPSTREAM_DRAINING] = "draining", [UPSTREAM_DOWN] = "down", NULL};

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
    if (mode == UPSTREAM_UP) {
        shared_set(&state->fails, 0);
        shared_set(&state->retrying, 0);
        shared_set(&state->paused, 0);
        shared_set(&state->recovered_ms, now_ms);
    }
    return (enum upstream_mode)shared_swap(&state->mode, mode);
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
