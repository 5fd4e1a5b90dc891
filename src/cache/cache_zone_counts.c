/*
 * The responses of a cache by $upstream_cache_status, on the status page.
 */
#include "cache/cache_zone_private.h"

void cache_zone_count(struct cache_zone *zone, enum cached_status status)
{
    if (status != CACHED_NOT)
        __atomic_fetch_add(&zone->responses[status], 1, __ATOMIC_RELAXED);
}

void cache_zone_counts(const struct cache_zone *zone, uint64_t out_counts[CACHED_STATUSES])
{
    for (unsigned status = 0; status < CACHED_STATUSES; status++)
        out_counts[status] = __atomic_load_n(&zone->responses[status], __ATOMIC_RELAXED);
}
