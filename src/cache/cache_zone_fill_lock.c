/*
 * Fill locks of hashes, and the leadership of the cache manager.
 */
#include "cache/cache_zone_private.h"

#include "base/limits.h"
#include "base/saturate.h"

bool cache_zone_fill_lock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock, uint64_t now_ms,
                          uint64_t until_ms, struct cache_victims *victims)
{
    bool taken = true; /* if the index has no room for the lock, every request may fetch */
    uint32_t node_index;

    cache_zone_lock(zone);
    node_index = cache_zone_insert(zone, hash, (uint32_t)(now_ms / 1000), victims);
    if (node_index) {
        struct node *node = cache_node(zone, node_index);

        taken = node->fill_lock == fill_lock || !cache_node_fill_locked(node, now_ms);
        if (taken) {
            node->fill_lock = fill_lock;
            node->fill_lock_ms = until_ms;
        }
    }
    cache_zone_unlock(zone);
    return taken;
}

void cache_zone_fill_unlock(struct cache_zone *zone, const struct cache_hash *hash, uint64_t fill_lock)
{
    uint32_t node_index;

    cache_zone_lock(zone);
    node_index = cache_zone_find_node(zone, hash);
    if (node_index && cache_node(zone, node_index)->fill_lock == fill_lock)
        cache_node(zone, node_index)->fill_lock = 0;
    cache_zone_unlock(zone);
}

bool cache_zone_fill_locked(struct cache_zone *zone, const struct cache_hash *hash, uint64_t now_ms)
{
    uint32_t node_index;
    bool locked;

    cache_zone_lock(zone);
    node_index = cache_zone_find_node(zone, hash);
    locked = node_index && cache_node_fill_locked(cache_node(zone, node_index), now_ms);
    cache_zone_unlock(zone);
    return locked;
}

void cache_zone_set_log(struct cache_zone *zone, struct log *log, struct str name)
{
    shared_zone_set_log(&zone->shared, log, "cache", name);
}

void cache_zone_abandon(struct cache_zone *zone, unsigned worker)
{
    shared_zone_abandon(&zone->shared, worker);
}

/* Locks the index if a worker died, which removes its values: leadership and scans are read without the lock. */
static void remove_dead_workers(struct cache_zone *zone)
{
    if (!shared_zone_has_abandoned(&zone->shared))
        return;
    cache_zone_lock(zone);
    cache_zone_unlock(zone);
}

/*
 * One number holds the end of the leadership and the worker, so that both change atomically. A later end than a leader
 * sets is not valid: a compromised worker could stop the cache manager for ever. Clocks of workers differ slightly.
 */
bool cache_zone_acquire_leadership(struct cache_zone *zone, unsigned worker, uint64_t now_ms, uint64_t leadership_ms)
{
    uint64_t seen, left_ms;
    bool is_leader;

    remove_dead_workers(zone);
    seen = __atomic_load_n(&zone->leader, __ATOMIC_RELAXED);
    is_leader = seen % LIMIT_WORKERS == worker && seen != 0;
    left_ms = u64_sub_sat(seen / LIMIT_WORKERS, now_ms);
    if (!is_leader && left_ms > 0 && left_ms <= 2 * leadership_ms)
        return false;
    return __atomic_compare_exchange_n(&zone->leader, &seen, (now_ms + leadership_ms) * LIMIT_WORKERS + worker, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

uint64_t cache_zone_scans_requested(struct cache_zone *zone)
{
    remove_dead_workers(zone);
    return __atomic_load_n(&zone->scans_requested, __ATOMIC_RELAXED);
}

/* A greater number than those of requested scans is from before the index was emptied. */
void cache_zone_scan_done(struct cache_zone *zone, uint64_t scan)
{
    if (scan <= __atomic_load_n(&zone->scans_requested, __ATOMIC_RELAXED))
        __atomic_store_n(&zone->scans_done, scan, __ATOMIC_RELAXED);
}

bool cache_zone_scan_is_pending(const struct cache_zone *zone, uint64_t scan)
{
    return __atomic_load_n(&zone->scans_done, __ATOMIC_RELAXED) < scan;
}

bool cache_zone_loaded(const struct cache_zone *zone)
{
    return !cache_zone_scan_is_pending(zone, __atomic_load_n(&zone->complete, __ATOMIC_RELAXED));
}
