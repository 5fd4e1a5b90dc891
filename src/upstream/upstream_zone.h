/*
 * The state of peers shared by all workers, in memory created by the master before it forks. Workers claim an entry
 * for each peer and share it.
 */
#ifndef UPSTREAM_UPSTREAM_ZONE_H
#define UPSTREAM_UPSTREAM_ZONE_H

#include "base/latency.h"
#include "base/must_check.h"
#include "base/str.h"
#include "upstream/resolved_names.h"
#include "upstream/upstream_changes.h"

#include <stdint.h>

enum upstream_checked { CHECKED_NEVER, CHECKED_GOOD, CHECKED_BAD };

/* Set by the configuration (`down`) or by `sluice ctl`. Each mode permits fewer requests than the one before. */
enum upstream_mode {
    UPSTREAM_UP,
    UPSTREAM_DRAINING,              /* only requests of its sticky sessions */
    UPSTREAM_DOWN,                  /* no requests */
};

/* One peer. Numbers are accessed atomically by all workers; texts are constant while the entry is held. */
struct upstream_shared {
    uint64_t key;                   /* of group and server, or of the change that added it */
    char group[64];                 /* for the status page; truncated */
    char name[128];
    uint64_t holders;               /* workers; 0: the entry is free */
    uint64_t active;                /* connections in use or being opened */
    uint64_t requests;
    uint64_t failures;
    uint64_t fails;                 /* consecutive */
    uint64_t failed_ms;             /* time of the last failure or retry */
    uint64_t pause_ms;              /* current pause; grows */
    uint64_t paused;                /* nonzero: the peer pauses or is being retried */
    uint64_t retrying;              /* nonzero: a retry is in progress */
    uint64_t recovered_ms;          /* start of slow_start: recovery, addition, or `sluice ctl`; 0: none */
    uint64_t header_us, total_us;   /* average response times; 0: none yet */
    struct latency latency;         /* of complete responses */
    uint64_t checked;               /* enum upstream_checked */
    uint64_t contrary_checks;       /* consecutive checks that contradict `checked` */
    uint64_t mode;                  /* enum upstream_mode */
    uint64_t weight;                /* at least 1 */
    uint64_t configured_weight;     /* weight and mode were set by `sluice ctl` where they differ from these */
    uint64_t configured_mode;
    uint64_t removed;               /* number of the configuration in which it was removed at run time; 0: never */
};

/* A peer of the configuration. */
struct upstream_claim {
    uint64_t key;
    struct str group, name;
    uint64_t weight;                /* at least 1 */
    bool down;
};

struct upstream_zone;

/* NULL when out of memory. */
struct upstream_zone *upstream_zone_create(unsigned workers);
/* Accepts NULL. */
void upstream_zone_destroy(struct upstream_zone *zone);
/* The addresses of names, owned by the zone. NULL if `zone` is NULL. */
struct resolved_names *upstream_zone_names(const struct upstream_zone *zone);
/* Servers added and removed at run time, owned by the zone. NULL if `zone` is NULL. */
struct upstream_changes *upstream_zone_changes(const struct upstream_zone *zone);
/* The number of the configuration of this process, for upstream_zone_is_removed. */
void upstream_zone_set_configuration(struct upstream_zone *zone, uint64_t configuration);
/*
 * True if the server was removed at run time from this configuration: the entry is held until all workers have noticed.
 */
bool upstream_zone_is_removed(const struct upstream_zone *zone, const struct upstream_shared *state);
/*
 * Removes the claims and counts of a worker that died. Called by the master: takes no lock, and no value that a worker
 * wrote selects the memory that changes.
 */
void upstream_zone_abandon(struct upstream_zone *zone, unsigned worker);

/*
 * Claims the entry of a peer for the worker, once per worker. Returns its index, or -ENOSPC if LIMIT_UPSTREAM_PEERS are
 * in use. An entry without holders is reset, but keeps mode and weight if its last holder died. A value that the
 * configuration has changed since the last claim replaces one that `sluice ctl` has set.
 */
MUST_CHECK int upstream_zone_claim(struct upstream_zone *zone, unsigned worker, const struct upstream_claim *peer);
/* Releases the claim of the worker, and its counts. An entry is freed with its last holder. */
void upstream_zone_release(struct upstream_zone *zone, unsigned worker, int index);
/* While the zone is locked, no entry is allocated or freed. */
void upstream_zone_lock(struct upstream_zone *zone);
void upstream_zone_unlock(struct upstream_zone *zone);
/* Returns the entry at an index from upstream_zone_claim. */
struct upstream_shared *upstream_zone_at(struct upstream_zone *zone, int index);
/* Changes the worker's number of open connections to the peer, a part of `active`. */
void upstream_zone_count(struct upstream_zone *zone, unsigned worker, int index, int change);

/*
 * Elects the worker that makes the health checks for all. If this worker is the leader or there is none, it becomes the
 * leader until `now_ms` + `leadership_ms`, and true is returned. All workers pass the same `leadership_ms`: a
 * leadership that ends later was not acquired, but written by a compromised worker, and another worker takes it.
 */
bool upstream_zone_acquire_leadership(struct upstream_zone *zone, unsigned worker, uint64_t now_ms,
                                      uint64_t leadership_ms);
/* Gives up the leadership if this worker has it. */
void upstream_zone_release_leadership(struct upstream_zone *zone, unsigned worker);

/* Atomic access to numbers of the shared state. */
static inline uint64_t shared_get(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline void shared_set(uint64_t *number, uint64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELAXED);
}

/* Returns the previous value. */
static inline uint64_t shared_add(uint64_t *number, uint64_t value)
{
    return __atomic_fetch_add(number, value, __ATOMIC_RELAXED);
}

static inline uint64_t shared_swap(uint64_t *number, uint64_t value)
{
    return __atomic_exchange_n(number, value, __ATOMIC_RELAXED);
}

/* Compare-and-swap from `from` to `to`; true on success. */
static inline bool shared_change(uint64_t *number, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(number, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#endif
