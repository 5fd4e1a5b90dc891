/*
 * What limits know of their keys, in memory that all workers see, made before they are forked: how full the bucket of a
 * key is (limit_req), or how many each worker has of it open (limit_conn). A zone is of one kind. Keys are known by
 * their hash alone.
 *
 * Everything is under one lock. Whoever dies with it stops nobody: the next one puts the chains together again from the
 * places. Times are those of the monotonic clock, which all processes share.
 */
#ifndef LIMIT_LIMIT_ZONE_H
#define LIMIT_LIMIT_ZONE_H

#include "base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_DROPS 60000ull        /* of one request: a rate of one a minute is a drop a millisecond */

struct limit_zone;

/* A zone in `size` bytes. NULL when out of memory, or too small. */
struct limit_zone *limit_zone_create(size_t size);
/* Another who destroys it; the last one does. Only the master asks. Returns it. */
struct limit_zone *limit_zone_share(struct limit_zone *zone);
/* Accepts NULL. */
void limit_zone_destroy(struct limit_zone *zone);

/*
 * One request into the key's bucket, which loses `rate` drops a millisecond. *out_level is how full the bucket would be, in
 * drops, the request's own LIMIT_DROPS among them; a key that is not known begins empty, and its first request counts for
 * nothing. False: that is more than `most`, and nothing was poured. Where the zone is full, the key goes that was
 * asked for least recently.
 */
bool limit_zone_pour(struct limit_zone *zone, uint64_t key, uint64_t rate, uint64_t most, uint64_t now_ms, uint64_t *out_level);
/* Takes one request back out: another limit has refused it. */
void limit_zone_take_back(struct limit_zone *zone, uint64_t key);

/* One more of the key for the worker. False where all workers have `most` of it together, or the zone is full: nothing of it may be forgotten. */
bool limit_zone_enter(struct limit_zone *zone, uint64_t key, unsigned worker, uint64_t most);
/* One that has entered is gone. */
void limit_zone_leave(struct limit_zone *zone, uint64_t key, unsigned worker);
/* The worker has died: all that it had of any key is gone. */
void limit_zone_abandon(struct limit_zone *zone, unsigned worker);

#endif
