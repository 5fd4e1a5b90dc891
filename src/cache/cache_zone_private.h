/*
 * What the files of the index share: cache_zone.c (hashes and files) and cache_zone_fill_lock.c (who fetches, who keeps the folder). Nobody
 * else includes this.
 */
#ifndef CACHE_CACHE_ZONE_PRIVATE_H
#define CACHE_CACHE_ZONE_PRIVATE_H

#include "base/shared_zone.h"
#include "cache/cache_zone.h"

#define NOBODY 0u                   /* places are counted from 1 */

struct node {
    struct cache_hash hash;
    uint64_t sequence;              /* this and `size`: read without the lock */
    uint64_t size;
    uint64_t purged;                /* the sequence then; 0: never */
    uint64_t fill_lock;                 /* whose fill_lock; 0: nobody's */
    uint64_t fill_lock_ms;
    uint32_t next;                  /* in its chain, or among the free */
    uint32_t newer, older;
    uint32_t used_s;                /* atomic: written without the lock */
    uint32_t placed_s;              /* used_s when it was put in front */
    uint32_t uses;
    uint32_t known;                 /* the node is in use: written last, and first taken back */
};

struct cache_zone {
    struct shared_zone shared;      /* each generation has it */
    uint64_t first, sequence;       /* numbers between them are of this index; others of one before it */
    uint64_t purged;                /* the latest of nodes that were forgotten, of which no more is known */
    uint64_t leader;                /* the end of the leadership, and who it is below */
    uint64_t walks, walked;
    uint32_t node_count, chain_count;
    uint32_t unused;                /* the free nodes */
    uint32_t newest, oldest;
    struct cache_totals totals;
    uint32_t *chains;               /* these two point behind it: the mapping stands at one address in all workers */
    struct node *nodes;
};

static inline struct node *cache_node(struct cache_zone *zone, uint32_t place)
{
    return &zone->nodes[place - 1];
}

static inline bool cache_node_fill_locked(const struct node *node, uint64_t now_ms)
{
    return node->fill_lock != 0 && node->fill_lock_ms > now_ms;
}

void cache_zone_lock(struct cache_zone *zone);
void cache_zone_unlock(struct cache_zone *zone);
/* Under the lock. The place of a hash, or NOBODY. */
uint32_t cache_zone_place(struct cache_zone *zone, const struct cache_hash *hash);
/* The same, taken in where it is not known; NOBODY: there is no room. */
uint32_t cache_zone_insert(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s, struct cache_victims *victims);

#endif
