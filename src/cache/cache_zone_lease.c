/*
 * Who fetches what a hash stands for, and which worker keeps the folder for all.
 */
#include "cache/cache_zone_private.h"

#include "base/limits.h"

bool cache_zone_lease(struct cache_zone *zone, const struct cache_hash *hash, uint64_t token, uint64_t now_ms,
                      uint64_t until_ms, struct cache_victims *victims)
{
    bool taken = true; /* where there is no room to note it, everybody may */
    uint32_t place;

    cache_zone_lock(zone);
    place = cache_zone_take_in(zone, hash, (uint32_t)(now_ms / 1000), victims);
    if (place) {
        struct node *node = cache_node(zone, place);

        taken = node->lease == token || !cache_node_leased(node, now_ms);
        if (taken) {
            node->lease = token;
            node->lease_ms = until_ms;
        }
    }
    cache_zone_unlock(zone);
    return taken;
}

void cache_zone_release(struct cache_zone *zone, const struct cache_hash *hash, uint64_t token)
{
    uint32_t place;

    cache_zone_lock(zone);
    place = cache_zone_place(zone, hash);
    if (place && cache_node(zone, place)->lease == token)
        cache_node(zone, place)->lease = 0;
    cache_zone_unlock(zone);
}

bool cache_zone_leased(struct cache_zone *zone, const struct cache_hash *hash, uint64_t now_ms)
{
    uint32_t place;
    bool leased;

    cache_zone_lock(zone);
    place = cache_zone_place(zone, hash);
    leased = place && cache_node_leased(cache_node(zone, place), now_ms);
    cache_zone_unlock(zone);
    return leased;
}

void cache_zone_abandon(struct cache_zone *zone, unsigned worker)
{
    cache_zone_lock(zone);
    for (uint32_t place = 1; place <= zone->node_count; place++) {
        if (cache_node(zone, place)->lease != 0 && cache_node(zone, place)->lease % LIMIT_WORKERS == worker)
            cache_node(zone, place)->lease = 0;
    }
    if (zone->leader % LIMIT_WORKERS == worker)
        __atomic_store_n(&zone->leader, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&zone->walks, 1, __ATOMIC_RELAXED);
    cache_zone_unlock(zone);
}

/* The lease's end and the worker are one number, so that both change at once. */
bool cache_zone_lead(struct cache_zone *zone, unsigned worker, uint64_t now_ms, uint64_t lease_ms)
{
    uint64_t seen = __atomic_load_n(&zone->leader, __ATOMIC_RELAXED);
    bool ours = seen % LIMIT_WORKERS == worker && seen != 0;

    if (!ours && seen / LIMIT_WORKERS > now_ms)
        return false;
    return __atomic_compare_exchange_n(&zone->leader, &seen, (now_ms + lease_ms) * LIMIT_WORKERS + worker, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

uint64_t cache_zone_walks(const struct cache_zone *zone)
{
    return __atomic_load_n(&zone->walks, __ATOMIC_RELAXED);
}

void cache_zone_walked(struct cache_zone *zone, uint64_t walk)
{
    __atomic_store_n(&zone->walked, walk, __ATOMIC_RELAXED);
}

bool cache_zone_unwalked(const struct cache_zone *zone, uint64_t walk)
{
    return __atomic_load_n(&zone->walked, __ATOMIC_RELAXED) < walk;
}

bool cache_zone_loaded(const struct cache_zone *zone)
{
    return !cache_zone_unwalked(zone, 1);
}
