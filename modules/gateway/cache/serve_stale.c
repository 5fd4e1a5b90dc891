/*
 * Stale responses: used during an update, or if no upstream is available (RFC 9111 4.2.4, RFC 5861).
 */
#include "modules/gateway/cache/response_cache.h"

/*
 * Starts a detached subrequest that updates the entry while the stale response is sent. Returns the status of that
 * response, as in nginx: UPDATING if another request updates the entry.
 */
static enum cached_status start_background_update(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;
    struct exchange *x = cached->p->x;
    struct exchange *child;
    struct gateway_request *background;
    uint64_t fill_lock = cache_store_fill_lock(cached->store, cached_hash(cached), conf->lock_age_ms);

    if (fill_lock == 0)
        return CACHED_UPDATING;
    if (exchange_subrequest(x, (struct str){NULL, 0}, NULL, NULL, &child) < 0) {
        cache_store_fill_unlock(cached->store, &cached->origin.hash, fill_lock);
        return CACHED_STALE;
    }
    background = gateway_request_make(child);
    if (!background) {
        cache_store_fill_unlock(cached->store, &cached->origin.hash, fill_lock);
        return CACHED_STALE;
    }
    background->cache = cached->p->cache;
    background->update = (struct cache_update){cached->store, cached->origin.hash, fill_lock};
    return CACHED_STALE;
}

/* Handles a stale entry. `allowed`: it permits use during an update. */
enum outcome cached_expired(struct cached *cached, struct cache_entry *entry, bool allowed)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;
    const struct stored_response *stored = stored_response_of(entry, cached_now_s(cached));
    struct freshness now = stored->freshness;
    bool updating;

    now.age_s = cached_age(cached, &stored->metadata);
    updating = allowed || ((conf->use_stale & STALE_UPDATING) && cached->request_control.max_age == DELTA_NONE &&
                           now.age_s >= now.lifetime_s && freshness_in_error(&now, &cached->request_control, true));
    if (updating && conf->background_update && !cached->base.background)
        return cached_respond_with(cached, entry, start_background_update(cached));
    if (updating && cached->fill_lock == 0) {
        cached->fill_lock = cache_store_fill_lock(cached->store, cached_hash(cached), conf->lock_age_ms);
        if (cached->fill_lock == 0)
            return cached_respond_with(cached, entry, CACHED_UPDATING);
    }
    if (cached->request_control.only_if_cached) {
        cache_entry_unref(entry);
        return exchange_error_response(cached->p->x, 504);
    }
    cached->base.status = CACHED_EXPIRED;
    cache_entry_unref(cached->stale);
    cached->stale = entry;
    return cached_fetch_alone(cached);
}

bool cached_may_serve_stale(const struct cached *cached, struct cache_entry *entry, unsigned reason)
{
    const struct stored_response *stored = entry ? stored_response_of(entry, cached_now_s(cached)) : NULL;
    unsigned use = cached->p->conf->cache.use_stale;
    struct freshness now;

    if (!stored || cached->base.background)
        return false;
    now = stored->freshness;
    now.age_s = cached_age(cached, &stored->metadata);
    return freshness_in_error(&now, &cached->request_control, (use & reason) && !(use & STALE_OFF));
}

bool cached_serve_stale(struct gateway_request *p, unsigned reason)
{
    struct cached *cached = cached_of(p);
    struct cache_entry *entry = cached ? cached->stale : NULL;

    if (p->slice.of) /* only the parent's response can be stale */
        p->slice.functions->failed(p, reason);
    if (p->slice.of || !entry || !cached_may_serve_stale(cached, entry, reason))
        return false;
    cached->stale = NULL;
    (void)cached_respond_with(cached, entry, CACHED_STALE);
    return true;
}

bool cached_serve_stale_for_status(struct gateway_request *p, int status)
{
    static const struct {
        int status;
        unsigned reason;
    } reasons[] = {{500, STALE_HTTP_500}, {502, STALE_HTTP_502}, {503, STALE_HTTP_503}, {504, STALE_HTTP_504},
                   {403, STALE_HTTP_403}, {404, STALE_HTTP_404}, {429, STALE_HTTP_429}};

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        bool counts = status >= 500 || (p->conf->cache.use_stale & reasons[i].reason);

        if (reasons[i].status == status)
            return counts && cached_serve_stale(p, reasons[i].reason);
    }
    return false;
}
