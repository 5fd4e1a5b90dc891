/*
 * Memory with a lock, shared at one address by all processes that are forked after its creation. If a process dies
 * while it holds the lock, the next process gets the lock (pthread_mutexattr_setrobust(3)).
 */
#ifndef BASE_SHARED_ZONE_H
#define BASE_SHARED_ZONE_H

#include "base/must_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The header of every shared zone. */
struct shared_zone {
    size_t size;                    /* bytes, this header included */
    unsigned sharers;               /* additional owners; only the process that creates and destroys zones counts them */
    pthread_mutex_t lock;
};

/* Maps `size` bytes, zeroed after the header. NULL when out of memory, or where `size` is smaller than the header. */
MUST_CHECK void *shared_zone_create(size_t size);
/* Adds an owner, which calls shared_zone_destroy once more. */
void shared_zone_share(struct shared_zone *zone);
/* The last owner's call unmaps the zone in this process. Accepts NULL. */
void shared_zone_destroy(struct shared_zone *zone);

/* Waits for the lock. True: the previous holder died, and the caller must repair the contents. */
bool shared_zone_lock(struct shared_zone *zone);
void shared_zone_unlock(struct shared_zone *zone);

#endif
