/*
 * The index of a cache: hashes of stored responses with their sizes, times of last use and fill locks. In shared
 * memory created before the workers are forked. It holds hashes and sequence numbers, no file names or contents.
 *
 * One lock protects the nodes; cache_zone_current, which is called for each hit, takes no lock. If a process dies while
 * it holds the lock, the next process rebuilds the chains from the nodes. If a call finds impossible numbers, written
 * by a compromised process, the next call empties the index and requests a scan of the directory. Times are those of
 * the monotonic clock, which is the same in all processes.
 */
#ifndef CACHE_CACHE_ZONE_H
#define CACHE_CACHE_ZONE_H

#include "base/log.h"
#include "base/must_check.h"
#include "cache/cached_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_VICTIMS 64            /* files that one call removes at most */

struct cache_hash {
    unsigned char bytes[16];
};

/* One file: a response under a hash. Each stored response has its own sequence number; 0 is none. */
struct cache_id {
    struct cache_hash hash;
    uint64_t sequence;
};

/* Files removed from the index: the caller deletes them. */
struct cache_victims {
    unsigned count;
    struct cache_id ids[CACHE_VICTIMS];
};

/*
 * Adds a file. The capacity is exceeded only if a compromised process changes the index meanwhile: then the file is
 * left out.
 */
static inline void cache_victims_add(struct cache_victims *victims, const struct cache_id *id)
{
    if (victims->count < CACHE_VICTIMS)
        victims->ids[victims->count++] = *id;
}

/* The index data of a hash. */
struct cache_view {
    uint32_t node;                  /* index of the node, for cache_zone_current and cache_zone_grow */
    uint64_t sequence;              /* 0: nothing is stored */
    uint64_t size;                  /* valid bytes of the file: bytes after them are ignored */
    uint32_t uses;                  /* number of requests since it was added */
};

struct cache_totals {
    uint64_t entries;               /* number of hashes */
    uint64_t files;                 /* number of stored files */
    uint64_t bytes;
};

struct cache_zone;

/*
 * Creates an index in `size` bytes; sequence numbers start above `first` (the time in microseconds: unused before).
 * NULL when out of memory, if `size` is too small, or above LIMIT_CACHE_ZONE_MAX.
 */
struct cache_zone *cache_zone_create(size_t size, uint64_t first);
/* Adds an owner: the last cache_zone_destroy frees the zone. Called by the master only. Returns the zone. */
struct cache_zone *cache_zone_share(struct cache_zone *zone);
/* Accepts NULL. */
void cache_zone_destroy(struct cache_zone *zone);
/* From now on this process logs damage of the index (shared_zone_set_log). `name`: of the cache. */
void cache_zone_set_log(struct cache_zone *zone, struct log *log, struct str name);
/*
 * The worker died: the next use of the index releases its fill locks, and requests another scan for its temporary
 * files. Takes no lock (shared_zone_abandon).
 */
void cache_zone_abandon(struct cache_zone *zone, unsigned worker);

/*
 * Returns true if the hash is in the index. With `use` counts a use at `now_s`, and adds an absent hash, which may
 * remove another.
 */
bool cache_zone_find(struct cache_zone *zone, const struct cache_hash *hash, bool use, uint32_t now_s,
                     struct cache_view *out, struct cache_victims *victims);
/*
 * Returns true if the node still has that file, with that number of valid bytes, and records the use. Takes no lock.
 */
bool cache_zone_current(struct cache_zone *zone, uint32_t node, uint64_t sequence, uint64_t size, uint32_t now_s);

/* Returns a sequence number that no file has had. */
uint64_t cache_zone_sequence(struct cache_zone *zone);
/*
 * The fetch that a file results from: it was for `hash`, and started when `since` (from cache_zone_sequence) was the
 * newest sequence number.
 */
struct cache_origin {
    struct cache_hash hash;
    uint64_t since;
};

/*
 * Adds a complete file, replacing the previous one, which becomes a victim. Returns 0; -ENOSPC: no room; or -ESTALE:
 * its origin was purged meanwhile; then the index does not contain the file, and cache_zone_adopt does not add it while
 * the hash has a node, and until another file of the hash is removed.
 */
MUST_CHECK int cache_zone_publish(struct cache_zone *zone, const struct cache_id *id, uint64_t size,
                                  const struct cache_origin *origin, uint32_t now_s, struct cache_victims *victims);
/*
 * Adds a file found on disk; the file itself becomes the victim if a newer one is known, or it was removed or purged.
 * Returns 0 or -ENOSPC.
 */
MUST_CHECK int cache_zone_adopt(struct cache_zone *zone, const struct cache_id *id, uint64_t size, uint32_t now_s,
                                struct cache_victims *victims);
/* Sets the number of valid bytes of a file after an update. Returns false if it is no longer the stored one. */
bool cache_zone_grow(struct cache_zone *zone, uint32_t node, uint64_t sequence, uint64_t size);
/* Removes the stored file; responses of fetches that started before will not be stored. False: nothing was stored. */
bool cache_zone_purge(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s,
                      struct cache_victims *victims);
/* Removes that file. Returns false if it was not there. */
bool cache_zone_remove(struct cache_zone *zone, const struct cache_hash *hash, uint64_t sequence,
                       struct cache_victims *victims);

/* cache_zone_purge.c */

/* A stored file. */
struct cache_file {
    struct cache_id id;
    uint64_t size;
    uint32_t node;                  /* its position: a cursor with this value continues after it */
    uint32_t used_s;
};
/* Responses of all fetches that started before will not be stored. Returns a sequence number newer than all files. */
uint64_t cache_zone_refuse_fetches(struct cache_zone *zone);
/*
 * Copies the next files that are not newer than `since`, and returns their number, which may be 0; *out_more: there may
 * be more. *cursor is 0 before the first call. The lock is held for a bounded number of nodes.
 */
unsigned cache_zone_files(struct cache_zone *zone, uint32_t *cursor, uint64_t since,
                          struct cache_file files[CACHE_VICTIMS], bool *out_more);
/* Removes that file from the index, as purged at `since`: the caller deletes it. Returns false if it was not there. */
bool cache_zone_purge_file(struct cache_zone *zone, const struct cache_id *id, uint64_t since);

/*
 * Acquires the fill lock of a hash until `until_ms` for the holder `fill_lock`: a number other than 0, whose remainder
 * by LIMIT_WORKERS is the slot of the worker. Returns false if another holder has it, and true without a lock if the
 * index is full.
 */
bool cache_zone_fill_lock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock, uint64_t now_ms,
                          uint64_t until_ms, struct cache_victims *victims);
/* Releases the fill lock of a hash, unless another holder has it. */
void cache_zone_fill_unlock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock);
/* Returns true while the fill lock is held. */
bool cache_zone_fill_locked(struct cache_zone *zone, const struct cache_hash *hash, uint64_t now_ms);

/*
 * Removes files not used since `inactive_s`, then the least recently used while the total exceeds `max_bytes`; at
 * most CACHE_VICTIMS per call. Returns true if there may be more.
 */
bool cache_zone_evict(struct cache_zone *zone, uint32_t inactive_s, uint64_t max_bytes, uint64_t now_ms,
                      struct cache_victims *victims);
/* Copies the sums over all entries. */
void cache_zone_totals(struct cache_zone *zone, struct cache_totals *out);
/* Counts a response with that status, unless it is CACHED_NOT. Takes no lock. */
void cache_zone_count(struct cache_zone *zone, enum cached_status status);
/* Copies the numbers of responses by status since the index was created. Takes no lock. */
void cache_zone_counts(const struct cache_zone *zone, uint64_t out_counts[CACHED_STATUSES]);

/*
 * Acquires or extends the leadership of the cache manager until `now_ms` + `leadership_ms`. Returns false if another
 * worker has it.
 */
bool cache_zone_acquire_leadership(struct cache_zone *zone, unsigned worker, uint64_t now_ms, uint64_t leadership_ms);
/* Returns the number of requested scans: the first one, one for each worker that died, and one after damage. */
uint64_t cache_zone_scans_requested(struct cache_zone *zone);
/* Marks the scan of that number as done. */
void cache_zone_scan_done(struct cache_zone *zone, uint64_t scan);
/* Returns true once the first scan is done; after damage, the one that it requested. */
bool cache_zone_loaded(const struct cache_zone *zone);
/* Returns true if the scan of that number is not done. */
bool cache_zone_scan_is_pending(const struct cache_zone *zone, uint64_t scan);

#endif
