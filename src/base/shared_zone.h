/*
 * Memory that all processes forked from here on have together, at one address, and the lock that keeps it in order. A
 * process that dies with the lock stops nobody (pthread_mutexattr_setrobust(3)).
 */
#ifndef BASE_SHARED_ZONE_H
#define BASE_SHARED_ZONE_H

#include "base/must_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* What lies in such memory begins with it. */
struct shared_zone {
    size_t size;                    /* bytes, with this */
    unsigned sharers;               /* who has it, but for the first: counted by the one process that makes and ends zones */
    pthread_mutex_t lock;
};

/* `size` bytes, zeroed behind the struct. NULL where there is no room for so many, or fewer than the struct has. */
MUST_CHECK void *shared_zone_create(size_t size);
/* One more has it: shared_zone_destroy has to be called once more. */
void shared_zone_share(struct shared_zone *zone);
/* The last one gives this process's view of it back. NULL: nothing happens. */
void shared_zone_destroy(struct shared_zone *zone);

/* Waits for the lock. True: whoever had it last has died, and the caller puts in order what may be half done. */
bool shared_zone_lock(struct shared_zone *zone);
void shared_zone_unlock(struct shared_zone *zone);

#endif
