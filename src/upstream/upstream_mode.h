/*
 * The administrative state of a peer in shared memory: mode and weight, as configured or as set by `sluice ctl`, and
 * its names. A compromised worker may write any value there: these functions return valid ones.
 */
#ifndef UPSTREAM_UPSTREAM_MODE_H
#define UPSTREAM_UPSTREAM_MODE_H

#include "upstream/upstream_zone.h"

/* "up", "draining" and "down", by enum upstream_mode; NULL-terminated. */
extern const char *const upstream_mode_names[];

/* A copy of the names of a peer, terminated. */
struct upstream_names {
    char group[sizeof(((struct upstream_shared *)NULL)->group)];
    char server[sizeof(((struct upstream_shared *)NULL)->name)];
};

struct upstream_names upstream_read_names(const struct upstream_shared *state);

/* The weight, from 1 to LIMIT_UPSTREAM_WEIGHT. */
uint64_t upstream_read_weight(const struct upstream_shared *state);

/* The name of the mode, or if that is "up": "unhealthy" by health checks, "unavailable" after failures, or "up". */
const char *upstream_state_name(const struct upstream_shared *state);

/*
 * Sets the mode. UPSTREAM_UP also ends a pause after failures, and begins slow_start at `now_ms` of the monotonic
 * clock. Returns the mode before, or UPSTREAM_UP if the value before is not a mode.
 */
enum upstream_mode upstream_set_mode(struct upstream_shared *state, enum upstream_mode mode, uint64_t now_ms);
/* Sets the weight, at least 1. Returns the weight before. */
uint64_t upstream_set_weight(struct upstream_shared *state, uint64_t weight);
/*
 * Sets the weight of an SRV record, unless it is the same as in the last call: then `sluice ctl` may have changed it.
 */
void upstream_configure_weight(struct upstream_shared *state, uint64_t weight);

#endif
