/*
 * The entries of the index and their files: finding and using one, adding, replacing, purging and evicting files.
 */
#include "cache/cache_zone_private.h"

#include "base/saturate.h"

#include <errno.h>

static void mark_used(struct node *node, uint32_t now_s)
{
    if (__atomic_load_n(&node->used_s, __ATOMIC_RELAXED) != now_s)
        __atomic_store_n(&node->used_s, now_s, __ATOMIC_RELAXED);
}

bool cache_zone_find(struct cache_zone *zone, const struct cache_hash *hash, bool use, uint32_t now_s,
                     struct cache_view *out, struct cache_victims *victims)
{
    uint32_t node_index;

    cache_zone_lock(zone);
    node_index = use ? cache_zone_insert(zone, hash, now_s, victims) : cache_zone_find_node(zone, hash);
    if (node_index) {
        struct node *node = cache_node(zone, node_index);

        if (use) {
            mark_used(node, now_s);
            node->uses += node->uses < UINT32_MAX;
        }
        *out = (struct cache_view){node_index, node->sequence, node->size, node->uses};
    }
    cache_zone_unlock(zone);
    return node_index != NO_NODE;
}

bool cache_zone_current(struct cache_zone *zone, uint32_t node_index, uint64_t sequence, uint64_t size, uint32_t now_s)
{
    struct node *node = cache_node(zone, node_index);

    if (__atomic_load_n(&node->sequence, __ATOMIC_ACQUIRE) != sequence ||
        __atomic_load_n(&node->size, __ATOMIC_RELAXED) != size)
        return false;
    mark_used(node, now_s);
    return true;
}

static void set_file(struct cache_zone *zone, struct node *node, uint64_t sequence, uint64_t size)
{
    __atomic_store_n(&node->size, size, __ATOMIC_RELAXED);
    zone->totals.files++;
    zone->totals.bytes += size;
    __atomic_store_n(&node->sequence, sequence, __ATOMIC_RELEASE);
}

static bool was_purged(struct cache_zone *zone, const struct cache_origin *origin)
{
    uint32_t node_index = cache_zone_find_node(zone, &origin->hash);
    uint64_t purged = node_index ? cache_node(zone, node_index)->purged : 0;

    if (purged < zone->purged)
        purged = zone->purged;
    if (purged > __atomic_load_n(&zone->sequence, __ATOMIC_RELAXED)) /* forged, or the sequence number is */
        zone->shared.damaged = 1;
    return origin->since < purged;
}

/* Removes that file if it is the stored one. The scan does not add it again before it is deleted. Needs the lock. */
static void remove_file(struct cache_zone *zone, struct node *node, uint64_t sequence, struct cache_victims *victims)
{
    if (node->sequence == sequence)
        cache_zone_evict_file(zone, node, victims);
    node->removed = (uint32_t)sequence;
}

static void store_file(struct cache_zone *zone, struct node *node, uint64_t sequence, uint64_t size, uint32_t now_s,
                       struct cache_victims *victims)
{
    if (node->sequence != sequence) { /* else the scan has added it already */
        cache_zone_evict_file(zone, node, victims);
        set_file(zone, node, sequence, size);
    }
    mark_used(node, now_s);
}

int cache_zone_publish(struct cache_zone *zone, const struct cache_id *id, uint64_t size,
                       const struct cache_origin *origin, uint32_t now_s, struct cache_victims *victims)
{
    uint32_t node_index;
    bool purged;

    cache_zone_lock(zone);
    purged = was_purged(zone, origin);
    node_index = cache_zone_insert(zone, &id->hash, now_s, victims);
    if (node_index && purged)
        remove_file(zone, cache_node(zone, node_index), id->sequence, victims);
    else if (node_index)
        store_file(zone, cache_node(zone, node_index), id->sequence, size, now_s, victims);
    cache_zone_unlock(zone);
    if (purged)
        return -ESTALE;
    return node_index ? 0 : -ENOSPC;
}

bool cache_zone_is_newer(struct cache_zone *zone, uint64_t sequence, uint64_t than)
{
    uint64_t now = __atomic_load_n(&zone->sequence, __ATOMIC_RELAXED);
    bool is_own = sequence > zone->first && sequence <= now;
    bool than_own = than > zone->first && than <= now;

    return is_own != than_own ? is_own : sequence > than;
}

int cache_zone_adopt(struct cache_zone *zone, const struct cache_id *id, uint64_t size, uint32_t now_s,
                     struct cache_victims *victims)
{
    struct node *node;
    uint32_t node_index;

    cache_zone_lock(zone);
    node_index = cache_zone_insert(zone, &id->hash, now_s, victims);
    node = node_index ? cache_node(zone, node_index) : NULL;
    if (node && node->sequence != id->sequence) {
        bool removed = (node->removed && node->removed == (uint32_t)id->sequence) ||
                       (node->purged && !cache_zone_is_newer(zone, id->sequence, node->purged));

        if (removed || (node->sequence && !cache_zone_is_newer(zone, id->sequence, node->sequence))) {
            cache_victims_add(victims, id);
        } else {
            cache_zone_evict_file(zone, node, victims);
            set_file(zone, node, id->sequence, size);
        }
    }
    cache_zone_unlock(zone);
    return node_index ? 0 : -ENOSPC;
}

bool cache_zone_grow(struct cache_zone *zone, uint32_t node_index, uint64_t sequence, uint64_t size)
{
    struct node *node = cache_node(zone, node_index);
    bool current;

    cache_zone_lock(zone);
    current = node->known && node->sequence == sequence;
    if (current) {
        zone->totals.bytes = u64_sub_sat(zone->totals.bytes + size, node->size);
        __atomic_store_n(&node->size, size, __ATOMIC_RELAXED);
    }
    cache_zone_unlock(zone);
    return current;
}

bool cache_zone_purge(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s,
                      struct cache_victims *victims)
{
    uint32_t node_index;
    bool stored;

    cache_zone_lock(zone);
    node_index = cache_zone_insert(zone, hash, now_s, victims);
    stored = node_index && cache_node(zone, node_index)->sequence != 0;
    if (stored)
        cache_zone_evict_file(zone, cache_node(zone, node_index), victims);
    *(node_index ? &cache_node(zone, node_index)->purged : &zone->purged) = cache_zone_sequence(zone);
    cache_zone_unlock(zone);
    return stored;
}

bool cache_zone_remove(struct cache_zone *zone, const struct cache_hash *hash, uint64_t sequence,
                       struct cache_victims *victims)
{
    uint32_t node_index;
    bool stored;

    cache_zone_lock(zone);
    node_index = cache_zone_find_node(zone, hash);
    stored = node_index && cache_node(zone, node_index)->sequence == sequence;
    if (stored)
        remove_file(zone, cache_node(zone, node_index), sequence, victims);
    cache_zone_unlock(zone);
    return stored;
}

bool cache_zone_evict(struct cache_zone *zone, uint32_t inactive_s, uint64_t max_bytes, uint64_t now_ms,
                      struct cache_victims *victims)
{
    bool more = true;

    cache_zone_lock(zone);
    for (unsigned seen = 0; seen < CACHE_EVICT_SCAN && victims->count < CACHE_VICTIMS; seen++) {
        const struct node *oldest = zone->oldest ? cache_node(zone, zone->oldest) : NULL;

        zone->shared.damaged |= !oldest && zone->totals.entries > 0;
        more = oldest && !zone->shared.damaged &&
               (zone->totals.bytes > max_bytes || __atomic_load_n(&oldest->used_s, __ATOMIC_RELAXED) < inactive_s);
        if (!more)
            break;
        (void)cache_zone_age_oldest(zone, inactive_s, now_ms, victims);
    }
    cache_zone_unlock(zone);
    return more;
}

void cache_zone_totals(struct cache_zone *zone, struct cache_totals *out)
{
    cache_zone_lock(zone);
    *out = zone->totals;
    cache_zone_unlock(zone);
}
