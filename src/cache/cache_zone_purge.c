/*
 * A purge by prefix: copies the files of the index in pieces, and removes one.
 */
#include "cache/cache_zone_private.h"

#define SCAN 1024                   /* nodes examined under one lock */

uint64_t cache_zone_refuse_fetches(struct cache_zone *zone)
{
    uint64_t now;

    cache_zone_lock(zone);
    now = zone->purged = cache_zone_sequence(zone);
    cache_zone_unlock(zone);
    return now;
}

unsigned cache_zone_files(struct cache_zone *zone, uint32_t *cursor, uint64_t since,
                          struct cache_file files[CACHE_VICTIMS], bool *out_more)
{
    uint32_t last = cache_node_count(zone);
    unsigned count = 0;

    cache_zone_lock(zone);
    for (unsigned seen = 0; seen < SCAN && count < CACHE_VICTIMS && *cursor < last; seen++) {
        const struct node *node = cache_node(zone, ++*cursor);

        if (node->known && node->sequence != 0 && !cache_zone_is_newer(zone, node->sequence, since))
            files[count++] = (struct cache_file){{node->hash, node->sequence}, node->size, *cursor,
                                                 __atomic_load_n(&node->used_s, __ATOMIC_RELAXED)};
    }
    *out_more = *cursor < last;
    cache_zone_unlock(zone);
    return count;
}

bool cache_zone_purge_file(struct cache_zone *zone, const struct cache_id *id, uint64_t since)
{
    struct cache_victims victims = {0};
    uint32_t node_index;

    cache_zone_lock(zone);
    node_index = cache_zone_find_node(zone, &id->hash);
    if (node_index && cache_node(zone, node_index)->sequence == id->sequence) {
        struct node *node = cache_node(zone, node_index);

        cache_zone_evict_file(zone, node, &victims);
        if (node->purged < since)
            node->purged = since;
    }
    cache_zone_unlock(zone);
    return victims.count > 0;
}
