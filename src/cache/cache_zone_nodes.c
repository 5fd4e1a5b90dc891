/*
 * The structure of the index: a hash table of chains over a fixed array of nodes, and a list ordered by use. Chains,
 * list and sums can be rebuilt from the nodes at any time. A use only stores its time in the node; the list is
 * reordered when the node reaches the end of the list.
 *
 * The layout follows from the private size of the zone, and every traversal ends after as many steps as there are
 * nodes: see cache_zone_private.h.
 */
#include "cache/cache_zone_private.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/saturate.h"

#include <string.h>

static volatile uint32_t *chains_of(struct cache_zone *zone)
{
    return (volatile uint32_t *)(void *)(zone->nodes + cache_node_count(zone) + 1);
}

static volatile uint32_t *hash_chain(struct cache_zone *zone, const struct cache_hash *hash)
{
    uint32_t number;

    memcpy(&number, hash->bytes, sizeof(number));
    return &chains_of(zone)[number % cache_node_count(zone)];
}

static void unlink_use(struct cache_zone *zone, struct node *node)
{
    *(node->newer ? &cache_node(zone, node->newer)->older : &zone->newest) = node->older;
    *(node->older ? &cache_node(zone, node->older)->newer : &zone->oldest) = node->newer;
}

static void link_as_newest_node(struct cache_zone *zone, uint32_t node_index)
{
    struct node *node = cache_node(zone, node_index);

    node->moved_s = __atomic_load_n(&node->used_s, __ATOMIC_RELAXED);
    node->newer = NO_NODE;
    node->older = zone->newest;
    *(zone->newest ? &cache_node(zone, zone->newest)->newer : &zone->oldest) = node_index;
    zone->newest = node_index;
}

static void link_in_hash_chain(struct cache_zone *zone, uint32_t node_index)
{
    volatile uint32_t *chain = hash_chain(zone, &cache_node(zone, node_index)->hash);

    cache_node(zone, node_index)->next = *chain;
    *chain = node_index;
}

static void count_node(struct cache_zone *zone, const struct node *node)
{
    zone->totals.entries++;
    zone->totals.files += node->sequence != 0;
    zone->totals.bytes += node->size;
}

/* Rebuilds chains, list and sums, which are inconsistent if a process died while it changed them. */
static void rebuild_zone(struct shared_zone *shared)
{
    struct cache_zone *zone = container_of(shared, struct cache_zone, shared);
    uint32_t count = cache_node_count(zone);

    memset((void *)(zone->nodes + count + 1), 0, count * sizeof(uint32_t));
    zone->newest = zone->oldest = zone->unused = NO_NODE;
    zone->totals = (struct cache_totals){0};
    for (uint32_t node_index = count; node_index >= 1; node_index--) {
        struct node *node = cache_node(zone, node_index);

        if (!node->known) {
            node->next = zone->unused;
            zone->unused = node_index;
            continue;
        }
        if (node->sequence == 0)
            node->size = 0;
        link_in_hash_chain(zone, node_index);
        link_as_newest_node(zone, node_index);
        count_node(zone, node);
    }
}

/*
 * The requested scan finds the files again. Purges are forgotten with the nodes, so no response of a fetch that started
 * before is stored.
 */
static void empty_zone(struct shared_zone *shared)
{
    struct cache_zone *zone = container_of(shared, struct cache_zone, shared);

    memset((void *)zone->nodes, 0, ((size_t)cache_node_count(zone) + 1) * sizeof(*zone->nodes));
    zone->purged = cache_zone_sequence(zone);
    zone->complete = zone->scans_requested % UINT32_MAX + 1;
    __atomic_store_n(&zone->scans_done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&zone->scans_requested, zone->complete, __ATOMIC_RELAXED);
    __atomic_store_n(&zone->leader, 0, __ATOMIC_RELAXED);
    zone->shared.damaged = 0;
    rebuild_zone(&zone->shared);
}

/* Releases the fill locks of a worker that died, and requests a scan. */
static void remove_worker(struct shared_zone *shared, unsigned worker)
{
    struct cache_zone *zone = container_of(shared, struct cache_zone, shared);

    for (uint32_t node_index = cache_node_count(zone); node_index >= 1; node_index--) {
        struct node *node = cache_node(zone, node_index);

        if (node->fill_lock != 0 && node->fill_lock % LIMIT_WORKERS == worker)
            node->fill_lock = 0;
    }
    if (zone->leader % LIMIT_WORKERS == worker)
        __atomic_store_n(&zone->leader, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&zone->scans_requested, 1, __ATOMIC_RELAXED);
}

void cache_zone_lock(struct cache_zone *zone)
{
    static const struct shared_zone_repair repair = {empty_zone, rebuild_zone, remove_worker};

    shared_zone_lock_repaired(&zone->shared, &repair);
}

void cache_zone_unlock(struct cache_zone *zone)
{
    shared_zone_unlock(&zone->shared);
}

struct cache_zone *cache_zone_create(size_t size, uint64_t first)
{
    struct cache_zone *zone;

    if (size < sizeof(*zone) + 17 * (sizeof(struct node) + sizeof(uint32_t)) || size > LIMIT_CACHE_ZONE_MAX)
        return NULL;
    zone = shared_zone_create(size);
    if (!zone)
        return NULL;
    zone->first = zone->sequence = first;
    zone->scans_requested = zone->complete = 1;
    rebuild_zone(&zone->shared);
    return zone;
}

struct cache_zone *cache_zone_share(struct cache_zone *zone)
{
    shared_zone_share(&zone->shared);
    return zone;
}

void cache_zone_destroy(struct cache_zone *zone)
{
    if (zone)
        shared_zone_destroy(&zone->shared);
}

uint32_t cache_zone_find_node(struct cache_zone *zone, const struct cache_hash *hash)
{
    uint32_t node_index = *hash_chain(zone, hash);

    for (uint32_t left = cache_node_count(zone); node_index; left--) {
        const struct node *node = cache_node(zone, node_index);

        if (memcmp(&node->hash, hash, sizeof(*hash)) == 0)
            return node_index;
        if (left == 0) {
            zone->shared.damaged = 1;
            return NO_NODE;
        }
        node_index = node->next;
    }
    return NO_NODE;
}

void cache_zone_evict_file(struct cache_zone *zone, struct node *node, struct cache_victims *victims)
{
    if (node->sequence == 0)
        return;
    cache_victims_add(victims, &(struct cache_id){node->hash, node->sequence});
    zone->totals.files--;
    zone->totals.bytes = u64_sub_sat(zone->totals.bytes, node->size);
    __atomic_store_n(&node->sequence, 0, __ATOMIC_RELEASE);
    node->size = 0;
}

/* The link to a node in its chain; NULL if the chain does not contain it. */
static volatile uint32_t *find_link(struct cache_zone *zone, uint32_t node_index)
{
    volatile uint32_t *link = hash_chain(zone, &cache_node(zone, node_index)->hash);

    for (uint32_t left = cache_node_count(zone); left > 0; left--) {
        uint32_t linked = *link;

        if (linked == node_index)
            return link;
        if (linked == NO_NODE)
            break;
        link = &cache_node(zone, linked)->next;
    }
    zone->shared.damaged = 1;
    return NULL;
}

static void remove_node(struct cache_zone *zone, uint32_t node_index, struct cache_victims *victims)
{
    struct node *node = cache_node(zone, node_index);
    volatile uint32_t *link = find_link(zone, node_index);

    if (!link)
        return;
    cache_zone_evict_file(zone, node, victims);
    if (node->purged > zone->purged)
        zone->purged = node->purged;
    node->known = 0;
    *link = node->next;
    unlink_use(zone, node);
    zone->totals.entries--;
    node->next = zone->unused;
    zone->unused = node_index;
}

bool cache_zone_age_oldest(struct cache_zone *zone, uint32_t inactive_s, uint64_t now_ms,
                           struct cache_victims *victims)
{
    uint32_t node_index = zone->oldest;
    struct node *node = cache_node(zone, node_index);
    uint32_t used_s = __atomic_load_n(&node->used_s, __ATOMIC_RELAXED);

    if ((used_s > node->moved_s && used_s >= inactive_s) || cache_node_fill_locked(node, now_ms)) {
        unlink_use(zone, node);
        link_as_newest_node(zone, node_index);
        return false;
    }
    remove_node(zone, node_index, victims);
    return true;
}

/* Returns a free node, by removing an old one if needed. NO_NODE: none of the oldest could be removed. */
static uint32_t allocate_node(struct cache_zone *zone, struct cache_victims *victims)
{
    uint32_t node_index = zone->unused;

    for (unsigned seen = 0; !node_index && !zone->shared.damaged && seen < CACHE_EVICT_SCAN; seen++) {
        if (cache_zone_age_oldest(zone, 0, 0, victims))
            node_index = zone->unused;
    }
    if (node_index)
        zone->unused = cache_node(zone, node_index)->next;
    return node_index;
}

uint32_t cache_zone_insert(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s,
                           struct cache_victims *victims)
{
    uint32_t node_index = cache_zone_find_node(zone, hash);

    if (node_index)
        return node_index;
    node_index = allocate_node(zone, victims);
    if (!node_index)
        return NO_NODE;
    *cache_node(zone, node_index) = (struct node){.hash = *hash, .used_s = now_s};
    link_in_hash_chain(zone, node_index);
    link_as_newest_node(zone, node_index);
    zone->totals.entries++;
    __atomic_store_n(&cache_node(zone, node_index)->known, 1, __ATOMIC_RELEASE);
    return node_index;
}

uint64_t cache_zone_sequence(struct cache_zone *zone)
{
    return __atomic_add_fetch(&zone->sequence, 1, __ATOMIC_RELAXED);
}
