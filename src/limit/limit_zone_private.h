/*
 * The entries of a zone, shared by limit_zone.c (buckets and counts) and limit_zone_entries.c (the structure).
 */
#ifndef LIMIT_LIMIT_ZONE_PRIVATE_H
#define LIMIT_LIMIT_ZONE_PRIVATE_H

#include "base/shared_zone.h"
#include "limit/limit_zone.h"

#define NO_ENTRY 0u                 /* entries are numbered from 1 */

/* Numbers of entries are volatile: a number is read once for its check and its use. */
struct zone_entry {
    uint64_t key;
    uint64_t level;                 /* drops in the bucket; or the count of the worker */
    uint64_t last_ms;               /* time of that level */
    volatile uint32_t next;         /* next in its chain, or in the free list */
    volatile uint32_t newer, older;
    uint32_t worker;
    uint32_t known;                 /* in use: written last, cleared first */
};

struct limit_zone {
    struct shared_zone shared;      /* shared by generations */
    uint32_t used;                  /* entries in use */
    volatile uint32_t unused;       /* the free list */
    volatile uint32_t newest, oldest;
    struct limited_keys limited;
    struct zone_entry entries[];    /* entry 0 is used in place of one that does not exist; the chains follow */
};

/* The number of entries after the first one, and of chains. */
static inline uint32_t limit_zone_entry_count(const struct limit_zone *zone)
{
    const size_t each = sizeof(struct zone_entry) + sizeof(uint32_t);

    return (uint32_t)((shared_zone_size(&zone->shared) - sizeof(*zone) - sizeof(struct zone_entry)) / each);
}

static inline struct zone_entry *limit_zone_entry(struct limit_zone *zone, uint32_t number)
{
    if (number == NO_ENTRY || number > limit_zone_entry_count(zone)) {
        zone->shared.damaged = 1;
        number = 0;
    }
    return &zone->entries[number];
}

/* Locks the zone and repairs it: shared_zone_lock_repaired. */
void limit_zone_lock(struct limit_zone *zone);
void limit_zone_unlock(struct limit_zone *zone);
/* The following functions need the lock. Returns the entry of a key and worker; NO_ENTRY: there is none. */
uint32_t limit_zone_find(struct limit_zone *zone, uint64_t key, unsigned worker);
/* Takes an entry for a key; NO_ENTRY: none is free. */
uint32_t limit_zone_add(struct limit_zone *zone, struct zone_entry made);
/* Frees the entry. */
void limit_zone_remove(struct limit_zone *zone, uint32_t number);
/* The entry is the most recently used one. */
void limit_zone_touch(struct limit_zone *zone, uint32_t number);
/* Returns the sum of the key's levels. */
uint64_t limit_zone_sum(struct limit_zone *zone, uint64_t key);

#endif
