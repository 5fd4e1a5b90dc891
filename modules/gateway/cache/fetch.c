/*
 * Requests a missing response from the upstream server: one request at a time (proxy_cache_lock), or each request.
 */
#include "modules/gateway/cache/response_cache.h"

#define WAITS 3 /* number of waits for another request's fill, before the request is sent to the upstream server */

static uint64_t cached_now_ms(const struct cached *cached)
{
    return exchange_clock(cached->p->x)->monotonic_ms;
}

/* The hash that identifies a fetch for all workers. A hit does not need it. */
const struct cache_hash *cached_hash(struct cached *cached)
{
    if (!cached->hashed)
        cache_hash_key(cached->primary, &cached->origin.hash);
    cached->hashed = true;
    return &cached->origin.hash;
}

/* Continues without the stored response: the request is sent to the upstream server. */
enum outcome cached_fetch(struct cached *cached)
{
    (void)cached_hash(cached);
    cached->origin.since = cache_zone_sequence(cache_store_conf(cached->store)->zone);
    cached->request_sent_s = cached_now_s(cached);
    return OUTCOME_DECLINED;
}

/* Waits until another request has filled the entry. */
static enum outcome wait_for_lock(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    if (cached->waits == 0)
        cached->began_wait_ms = cached_now_ms(cached);
    if (cached->waits++ == WAITS)
        return cached_fetch(cached);
    cached->waiter.hash = *cached_hash(cached);
    cached->waiter.until_ms = cached->began_wait_ms + conf->lock_timeout_ms;
    cache_store_wait(cached->store, &cached->waiter);
    return OUTCOME_PENDING;
}

/* With proxy_cache_lock only one request is sent; the others wait. */
enum outcome cached_fetch_alone(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    if (!conf->lock || !cached->stores || cached->fill_lock)
        return cached_fetch(cached);
    cached->fill_lock = cache_store_fill_lock(cached->store, cached_hash(cached), conf->lock_age_ms);
    return cached->fill_lock ? cached_fetch(cached) : wait_for_lock(cached);
}
