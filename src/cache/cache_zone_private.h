/*
 * State shared by the files of the index: cache_zone_nodes.c (the structure), cache_zone.c (entries and their files),
 * cache_zone_fill_lock.c (fill locks, leadership) and cache_zone_purge.c (purge by prefix). Private to them.
 */
#ifndef CACHE_CACHE_ZONE_PRIVATE_H
#define CACHE_CACHE_ZONE_PRIVATE_H

#include "base/shared_zone.h"
#include "cache/cache_zone.h"

#define NO_NODE 0u                  /* node numbers start at 1 */
#define CACHE_EVICT_SCAN 1024       /* nodes examined under one lock */

/* Numbers of nodes are volatile: each is read once for check and use, because a compromised process may change it. */
struct node {
    struct cache_hash hash;
    uint64_t sequence;              /* sequence and size are read without the lock */
    uint64_t size;
    uint64_t purged;                /* sequence number at the last purge; 0: never */
    uint64_t fill_lock;             /* holder of the fill lock; 0: none */
    uint64_t fill_lock_ms;
    volatile uint32_t next;         /* in its chain, or in the free list */
    volatile uint32_t newer, older;
    uint32_t used_s;                /* atomic: written without the lock */
    uint32_t moved_s;               /* used_s when the node was moved to the front of the list */
    uint32_t uses;
    uint32_t removed;               /* the low half of the last removed file's sequence number; 0: none */
    uint32_t known;                 /* the node is in use: set last, and cleared first */
};

struct cache_zone {
    struct shared_zone shared;      /* each generation is an owner */
    uint64_t first, sequence;       /* sequence numbers between them are of this index, others of a previous index */
    uint64_t purged;                /* the latest purge of all fetches, or of a node that was removed */
    uint64_t leader;                /* end of the leadership in ms; the low bits are the worker's number */
    uint64_t scans_requested, scans_done; /* numbers of the last ones */
    uint64_t complete;              /* the scan after which the index has all files */
    struct cache_totals totals;
    /* Atomic. */
    uint64_t responses[CACHED_STATUSES];
    volatile uint32_t unused;       /* the free list */
    volatile uint32_t newest, oldest;
    struct node nodes[];            /* the first one stands in for numbers that no node has; the chains follow */
};

/* The number of nodes after the first one, and of chains: follows from the size, which is private to each process. */
static inline uint32_t cache_node_count(const struct cache_zone *zone)
{
    const size_t each = sizeof(struct node) + sizeof(uint32_t);

    return (uint32_t)((shared_zone_size(&zone->shared) - sizeof(*zone) - sizeof(struct node)) / each);
}

static inline struct node *cache_node(struct cache_zone *zone, uint32_t node_index)
{
    if (node_index == NO_NODE || node_index > cache_node_count(zone)) {
        zone->shared.damaged = 1;
        node_index = 0;
    }
    return &zone->nodes[node_index];
}

static inline bool cache_node_fill_locked(const struct node *node, uint64_t now_ms)
{
    return node->fill_lock != 0 && node->fill_lock_ms > now_ms;
}

/* Locks the index and repairs it: shared_zone_lock_repaired. */
void cache_zone_lock(struct cache_zone *zone);
void cache_zone_unlock(struct cache_zone *zone);
/* Returns the node number of a hash, or NO_NODE. Needs the lock. */
uint32_t cache_zone_find_node(struct cache_zone *zone, const struct cache_hash *hash);
/* The same, adding the hash if it is absent; NO_NODE: no room. */
uint32_t cache_zone_insert(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s,
                           struct cache_victims *victims);
/*
 * Returns true if `sequence` is newer than `than`. Sequence numbers start with the time, which may have been set back:
 * the numbers of a previous index are older than all numbers of this one, regardless of their values.
 */
bool cache_zone_is_newer(struct cache_zone *zone, uint64_t sequence, uint64_t than);
/* Removes the file of a node, which stays: the file becomes a victim. Needs the lock. */
void cache_zone_evict_file(struct cache_zone *zone, struct node *node, struct cache_victims *victims);
/*
 * Moves the oldest node, which exists, to the front if it was used since it was moved there last, and not before
 * `inactive_s`, or if its fill lock is held. Otherwise removes it, and returns true. Needs the lock.
 */
bool cache_zone_age_oldest(struct cache_zone *zone, uint32_t inactive_s, uint64_t now_ms,
                           struct cache_victims *victims);

#endif
