/*
 * What the workers know together of their peers: memory that the master makes before it forks. A worker claims a
 * place for each peer, and all who know the peer have the same one.
 */
#ifndef UPSTREAM_UPSTREAM_ZONE_H
#define UPSTREAM_UPSTREAM_ZONE_H

#include "base/must_check.h"
#include "base/str.h"
#include "upstream/resolved_names.h"

#include <stdint.h>

enum upstream_checked { CHECKED_NEVER, CHECKED_GOOD, CHECKED_BAD };

/* One peer. Every number is read and written by all workers, atomically; the texts stand while somebody holds the place. */
struct upstream_shared {
    uint64_t key;                   /* of the group and the line of the configuration */
    char group[64];                 /* cut where longer; for the status page */
    char name[128];
    uint64_t holders;               /* workers; 0: the place is free */
    uint64_t active;                /* connections in use, and being made */
    uint64_t requests;
    uint64_t failures;
    uint64_t fails;                 /* in a row */
    uint64_t failed_ms;             /* the last one; the last retrying */
    uint64_t pause_ms;              /* how long it is left alone; grows */
    uint64_t paused;               /* it is left alone, or tried */
    uint64_t retrying;                 /* one request tries whether it is back */
    uint64_t returned_ms;           /* since then it is asked again; 0: it always was */
    uint64_t header_us, whole_us;   /* averages of its answers; 0: none yet */
    uint64_t checked;               /* enum upstream_checked */
    uint64_t consecutive_failures;                /* of checks that speak against what `checked` says */
};

struct upstream_zone;

/* NULL when out of memory. */
struct upstream_zone *upstream_zone_create(unsigned workers);
/* Accepts NULL. */
void upstream_zone_destroy(struct upstream_zone *zone);
/* The addresses of names, which the zone owns. NULL where there is no zone. */
struct resolved_names *upstream_zone_names(const struct upstream_zone *zone);
/* The worker has died: what it held and counted as active is taken back. */
void upstream_zone_abandon(struct upstream_zone *zone, unsigned worker);

/*
 * The worker's place for a peer, which it may claim once. Its index, or -ENOSPC where LIMIT_UPSTREAM_PEERS are known. A place that nobody
 * holds any more is forgotten.
 */
MUST_CHECK int upstream_zone_claim(struct upstream_zone *zone, unsigned worker, uint64_t key, struct str group, struct str name);
void upstream_zone_release(struct upstream_zone *zone, unsigned worker, int index);
struct upstream_shared *upstream_zone_at(struct upstream_zone *zone, int index);
/* Of the connections that the worker has open to the peer: its part of `active`. */
void upstream_zone_count(struct upstream_zone *zone, unsigned worker, int index, int change);

/* The worker that does for all what need be done but once: true until `now_ms` + `leadership_ms` for whoever has it, or nobody had it. */
bool upstream_zone_lead(struct upstream_zone *zone, unsigned worker, uint64_t now_ms, uint64_t leadership_ms);
/* If it is this worker, it is nobody from now on. */
void upstream_zone_follow(struct upstream_zone *zone, unsigned worker);

/* Numbers of a state. */
static inline uint64_t shared_get(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline void shared_set(uint64_t *number, uint64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELAXED);
}

/* The value before. */
static inline uint64_t shared_add(uint64_t *number, uint64_t value)
{
    return __atomic_fetch_add(number, value, __ATOMIC_RELAXED);
}

static inline uint64_t shared_swap(uint64_t *number, uint64_t value)
{
    return __atomic_exchange_n(number, value, __ATOMIC_RELAXED);
}

/* True where it was `from`, and is `to` now. */
static inline bool shared_change(uint64_t *number, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(number, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#endif
