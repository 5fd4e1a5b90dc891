/*
 * Memory with a lock, shared at one address by all processes that are forked after its creation. If a process dies
 * while it holds the lock, the next process gets the lock (shared_lock.h). Locks of several zones are released in
 * reverse order.
 *
 * The process that creates zones (the master) never locks them, and uses no value that other processes can write: it
 * neither waits for a process that holds the lock, nor depends on the contents. It creates, shares, abandons and
 * destroys. Size and owners are in a page before the zone, of which each process has its own copy.
 */
#ifndef BASE_SHARED_ZONE_H
#define BASE_SHARED_ZONE_H

#include "base/limits.h"
#include "base/log.h"
#include "base/must_check.h"
#include "base/shared_lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header of every shared zone. */
struct shared_zone {
    struct shared_lock lock;
    /* A bit for each slot of a worker whose process died; atomic. */
    uint64_t abandoned[LIMIT_WORKERS / 64];
    uint64_t any_abandoned;         /* nonzero: a bit was set since the slots were removed; atomic */
    uint32_t damaged;               /* nonzero: the contents are inconsistent; for shared_zone_lock_repaired */
};

/* How a zone repairs its contents. The functions are called with the lock. */
struct shared_zone_repair {
    void (*empty)(struct shared_zone *zone);    /* removes the contents, and clears `damaged` */
    /* Makes the contents consistent: a process died while it changed them. */
    void (*rebuild)(struct shared_zone *zone);
    /* Removes the values of the process that was at `slot` and died. */
    void (*remove)(struct shared_zone *zone, unsigned slot);
};

#define SHARED_ZONE_LABEL   80      /* bytes of the text that names a zone in the log */

/* Directly before each zone. */
struct shared_zone_owner {
    size_t size;                    /* of the zone */
    unsigned sharers;               /* additional owners */
    struct log *log;                /* of damage; not owned; NULL: it is not logged */
    struct log_limit damage_logged;
    char label[SHARED_ZONE_LABEL];
    struct shared_lock_link link;   /* directly before the lock */
};

/* Maps `size` bytes, zeroed after the header. NULL when out of memory, or where `size` is smaller than the header. */
MUST_CHECK void *shared_zone_create(size_t size);
/* Bytes of the zone, the header included. */
static inline size_t shared_zone_size(const struct shared_zone *zone)
{
    return ((const struct shared_zone_owner *)(const void *)zone - 1)->size;
}
/* True if the zone has more than one owner. */
bool shared_zone_is_shared(const struct shared_zone *zone);
/* Adds an owner, which calls shared_zone_destroy once more. */
void shared_zone_share(struct shared_zone *zone);
/* The last owner's call unmaps the zone in this process. Accepts NULL. */
void shared_zone_destroy(struct shared_zone *zone);
/*
 * Marks the values of the process at `slot` (below LIMIT_WORKERS), which died: the next shared_zone_lock_repaired
 * removes them. Takes no lock. Must be called before another process gets this slot.
 */
void shared_zone_abandon(struct shared_zone *zone, unsigned slot);

/* Waits for the lock. True: the previous holder died, and the caller must repair the contents. */
bool shared_zone_lock(struct shared_zone *zone);
/*
 * Waits for the lock, and repairs the contents: empties a damaged zone and logs it, or rebuilds the zone if the
 * previous holder died. Then removes each abandoned slot. For zones that contain values of processes.
 */
void shared_zone_lock_repaired(struct shared_zone *zone, const struct shared_zone_repair *repair);
void shared_zone_unlock(struct shared_zone *zone);
/* True if shared_zone_lock_repaired will remove slots. Takes no lock. */
static inline bool shared_zone_has_abandoned(const struct shared_zone *zone)
{
    return __atomic_load_n(&zone->any_abandoned, __ATOMIC_RELAXED);
}
/*
 * From now on this process logs damage of the zone to `log`, which must exist until the process ends. `directive` and
 * `name` name the zone in the log; they are copied, the end of a long name is left out.
 */
void shared_zone_set_log(struct shared_zone *zone, struct log *log, const char *directive, struct str name);
/*
 * Logs at level alert, at most once per second for each zone, that the zone is inconsistent and is emptied: only a
 * compromised process causes this. Does nothing in a process that has not called shared_zone_set_log.
 */
void shared_zone_log_damage(struct shared_zone *zone);

#endif
