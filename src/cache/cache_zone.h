/*
 * The index of a cache: what is stored, how large, when it was last used, and who fetches it now. In memory
 * that all workers see, made before they are forked. It knows hashes and numbers of files, never their names or bytes.
 *
 * Everything is under one lock but cache_zone_current, which a hit asks. Whoever dies with the lock stops nobody: the next one
 * puts the chains together again from the nodes. Times are those of the monotonic clock, which all processes share.
 */
#ifndef CACHE_CACHE_ZONE_H
#define CACHE_CACHE_ZONE_H

#include "base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_VICTIMS 64            /* files that one call may give up */

struct cache_hash {
    unsigned char bytes[16];
};

/* One file: an answer under a hash. Each that is stored has a sequence number of its own; 0 is none. */
struct cache_id {
    struct cache_hash hash;
    uint64_t sequence;
};

/* Files that are in the index no more: whoever asked deletes them. */
struct cache_victims {
    unsigned count;
    struct cache_id ids[CACHE_VICTIMS];
};

/* What the index says of a hash. */
struct cache_view {
    uint32_t node;                  /* its place, for cache_zone_current and cache_zone_grow */
    uint64_t sequence;              /* 0: nothing is stored */
    uint64_t size;                  /* bytes of the file that count: what lies behind them is none of it */
    uint32_t uses;                  /* how often it was asked for while it was known */
};

struct cache_totals {
    uint64_t entries;               /* known hashes */
    uint64_t files;                 /* those that are stored */
    uint64_t bytes;
};

struct cache_zone;

/* An index in `size` bytes; sequence numbers begin above `first` (the time in microseconds: never used before). NULL when out of memory, or too small. */
struct cache_zone *cache_zone_create(size_t size, uint64_t first);
/* Another who destroys it; the last one does. Only the master asks. Returns it. */
struct cache_zone *cache_zone_share(struct cache_zone *zone);
/* Accepts NULL. */
void cache_zone_destroy(struct cache_zone *zone);
/* The worker has died: what it was fetching, somebody else may fetch, and the folder is walked again for what it left. */
void cache_zone_abandon(struct cache_zone *zone, unsigned worker);

/* True where the hash is known. With `use` it counts as asked for at `now_s`; a hash that is not known is then taken in, which may cost another. */
bool cache_zone_find(struct cache_zone *zone, const struct cache_hash *hash, bool use, uint32_t now_s, struct cache_view *out,
                     struct cache_victims *victims);
/* True while that file is the one stored there, with so many bytes that count: two plain reads, and a note of its use. */
bool cache_zone_current(struct cache_zone *zone, uint32_t node, uint64_t sequence, uint64_t size, uint32_t now_s);

/* A number that no file has had. */
uint64_t cache_zone_sequence(struct cache_zone *zone);
/* Of which fetch a file is: it was begun when `since` (of cache_zone_sequence) was new, to answer what `hash` stands for. */
struct cache_origin {
    struct cache_hash hash;
    uint64_t since;
};

/*
 * The file is complete, and takes the place of the one before, which is a victim. 0, -ENOSPC: there is room for none, or -ESTALE: what it was fetched for
 * was purged meanwhile.
 */
MUST_CHECK int cache_zone_publish(struct cache_zone *zone, const struct cache_id *id, uint64_t size, const struct cache_origin *origin,
                                  uint32_t now_s, struct cache_victims *victims);
/* A file that was found on disk; it is the victim itself where a newer one is known, or it was purged since. 0 or -ENOSPC. */
MUST_CHECK int cache_zone_adopt(struct cache_zone *zone, const struct cache_id *id, uint64_t size, uint32_t now_s,
                                struct cache_victims *victims);
/* The file has `size` bytes that count now, written past those before. False: it is no longer the one stored. */
bool cache_zone_grow(struct cache_zone *zone, uint32_t node, uint64_t sequence, uint64_t size);
/* Takes out whatever is stored, and lets nothing in that was asked for before. False: there was nothing. */
bool cache_zone_purge(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s, struct cache_victims *victims);
/* Takes out that one file. False: it was not there. */
bool cache_zone_remove(struct cache_zone *zone, const struct cache_hash *hash, uint64_t sequence, struct cache_victims *victims);

/*
 * Who fetches what a hash stands for: true for one worker's fill_lock at a time, until `until_ms`. A fill_lock is any number but 0, of
 * which the lowest ten bits are the worker's.
 */
bool cache_zone_fill_lock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock, uint64_t now_ms, uint64_t until_ms,
                          struct cache_victims *victims);
void cache_zone_fill_unlock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock);
/* True while somebody fetches it. */
bool cache_zone_fill_locked(struct cache_zone *zone, const struct cache_hash *hash, uint64_t now_ms);

/*
 * Gives up what was not used since `inactive_s`, then the least recently used while there are more than `max_bytes`; at most CACHE_VICTIMS at once: true
 * where there is more to do.
 */
bool cache_zone_evict(struct cache_zone *zone, uint32_t inactive_s, uint64_t max_bytes, uint64_t now_ms, struct cache_victims *victims);
void cache_zone_totals(struct cache_zone *zone, struct cache_totals *out);

/* The worker that keeps the folder for all: true until `now_ms` + `leadership_ms` for whoever has it, or nobody had it. */
bool cache_zone_lead(struct cache_zone *zone, unsigned worker, uint64_t now_ms, uint64_t leadership_ms);
/* Walks of the folder that were asked for: the first one, and one for each worker that died. */
uint64_t cache_zone_walks(const struct cache_zone *zone);
/* The walk of that number is done. */
void cache_zone_walked(struct cache_zone *zone, uint64_t walk);
/* True once the folder was walked for the first time. */
bool cache_zone_loaded(const struct cache_zone *zone);
/* True where the walk of that number is not done. */
bool cache_zone_unwalked(const struct cache_zone *zone, uint64_t walk);

#endif
