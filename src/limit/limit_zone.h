/*
 * The state of limits per key, in memory shared by all workers, created before they are forked: the level of a leaky
 * bucket (limit_req), or the number of open requests or connections of each worker (limit_conn). A zone is of one
 * kind. Keys are identified by their hash.
 *
 * One lock protects everything. If a process dies while it holds the lock, the next holder rebuilds the chains from the
 * entries. A zone that a compromised process has overwritten is emptied as soon as a call finds numbers that cannot be
 * right. Times are of the monotonic clock, which all processes share.
 */
#ifndef LIMIT_LIMIT_ZONE_H
#define LIMIT_LIMIT_ZONE_H

#include "base/log.h"
#include "base/must_check.h"
#include "limit/limited_keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_DROPS 60000ull        /* per request: a rate of one per minute is one drop per millisecond */

struct limit_zone;

/* Creates a zone of `size` bytes. NULL when out of memory, if `size` is too small, or above LIMIT_ZONE_MAX. */
struct limit_zone *limit_zone_create(size_t size);
/* Adds an owner; the last one destroys the zone. Called by the master only. Returns `zone`. */
struct limit_zone *limit_zone_share(struct limit_zone *zone);
/* Accepts NULL. */
void limit_zone_destroy(struct limit_zone *zone);

/*
 * Adds one request to the key's bucket, which drains `rate` drops per millisecond. *out_level is the resulting level
 * in drops, including LIMIT_DROPS of this request; the level of a new key is 0 after its first request.
 * False: the level would exceed `max`, and nothing was added. A full zone evicts the least recently used key.
 */
bool limit_zone_fill(struct limit_zone *zone, uint64_t key, uint64_t rate, uint64_t max, uint64_t now_ms,
                     uint64_t *out_level);
/* Removes a request that limit_zone_fill added, because another limit rejects it. */
void limit_zone_undo(struct limit_zone *zone, uint64_t key);

/*
 * Counts one more for the key and worker. False if all workers together have `max`, or the zone is full: counts are
 * not evicted.
 */
bool limit_zone_enter(struct limit_zone *zone, uint64_t key, unsigned worker, uint64_t max);
/* Counts one less. */
void limit_zone_leave(struct limit_zone *zone, uint64_t key, unsigned worker);
/* From now on this process logs damage of the zone (shared_zone_set_log). */
void limit_zone_set_log(struct limit_zone *zone, struct log *log, const char *directive, struct str name);
/* The worker died: the next use of the zone drops its counts. Takes no lock (shared_zone_abandon). */
void limit_zone_abandon(struct limit_zone *zone, unsigned worker);

struct limit_zone_totals {
    uint32_t keys, keys_max;        /* entries in use; of limit_conn one for each worker and key */
    uint64_t counts[LIMIT_ACTIONS]; /* of all keys since the zone was created */
};

/* Records that a limit delayed or rejected a request of the key. */
void limit_zone_record(struct limit_zone *zone, struct str key, uint64_t hash, enum limit_action action, int64_t now_s);
/* Copies the totals. */
void limit_zone_totals(struct limit_zone *zone, struct limit_zone_totals *out);
/* limited_keys_copy under the lock of the zone. */
size_t limit_zone_limited(struct limit_zone *zone, struct limited_key *out);

#endif
