/*
 * The lookup of a response. If responses vary by request fields (Vary), the primary key holds the field names, and
 * the responses are under the key plus field values.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/cache/partial.h"
#include "modules/gateway/fields.h"

#include <errno.h>

static enum outcome find_by_key(struct cached *cached);
static enum outcome use_partial(struct cached *cached, struct cache_entry *entry);

static void lock_wait_done(struct cache_waiter *waiter, bool late)
{
    struct cached *cached = container_of(waiter, struct cached, waiter);

    if (late)
        cached->stores = false;
    gateway_resume(cached->p, late ? cached_fetch(cached) : find_by_key(cached));
}

static bool is_head(const struct cached *cached)
{
    return cached->p->x->request.method == METHOD_HEAD;
}

static enum outcome cache_miss(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    if (cached->partial && !cached->partial->looked_up)
        return cached_partial_lookup(cached, use_partial);
    if (cached->request_control.only_if_cached)
        return exchange_error_response(cached->p->x, 504);
    cached->base.status = CACHED_MISS;
    if (cached->lookup.uses < conf->min_uses && cached->waits == 0)
        cached->stores = false;
    if (cached->sliced && (cached->stores || is_head(cached)))
        return cached->p->conf->cache.slices->fetch(cached->p);
    return cached_fetch_alone(cached);
}

enum outcome cached_slices_missed(struct gateway_request *p)
{
    return cached_fetch_alone(cached_of(p));
}

static enum outcome use_stored(struct cached *cached, struct cache_entry *entry, const struct stored_response *stored)
{
    switch (cached_reuse(cached, stored)) {
    case REUSE_FRESH:
        return cached_respond_with(cached, entry, CACHED_HIT);
    case REUSE_STALE:
        return cached_respond_with(cached, entry, CACHED_STALE);
    case REUSE_UPDATING:
        return cached_expired(cached, entry, true);
    case REUSE_REVALIDATE:
        break;
    }
    return cached_expired(cached, entry, false);
}

/* Uses an incomplete entry that covers the request; NULL: there is none. Takes over the reference. */
static enum outcome use_partial(struct cached *cached, struct cache_entry *entry)
{
    return entry ? use_stored(cached, entry, entry->parsed) : cache_miss(cached);
}

/* Looks up the variant that matches the request. Takes over the reference. */
static enum outcome choose_variant(struct cached *cached, struct cache_entry *entry,
                                   const struct stored_response *stored)
{
    struct arena *arena = &cached->p->x->arena;
    struct str text;

    cached->names = arena_copy(arena, headers_value(&stored->headers, STR("Vary")));
    cached->salt = stored->metadata.salt;
    cache_entry_unref(entry);
    if (!cached->names.data)
        return exchange_error_response(cached->p->x, 500);
    text = vary_text(cached->names, &cached->p->x->request.headers, arena);
    cached->key = cached_key(cached, text);
    return cached->key.data ? find_by_key(cached) : exchange_error_response(cached->p->x, 500);
}

/* The age of a slice is not checked: the metadata determines whether the response is fresh. */
static enum outcome use_slice(struct cached *cached, struct cache_entry *entry)
{
    struct slice_part *slice = &cached->p->slice;

    slice->fits = entry && stored_response_of(entry, cached_now_s(cached)) && entry->body_length == slice_length(slice);
    if (slice->fits)
        return cached_respond_with(cached, entry, CACHED_HIT);
    cache_entry_unref(entry);
    return cache_miss(cached);
}

static enum outcome use_found(struct cached *cached, struct cache_entry *entry)
{
    const struct stored_response *stored = entry ? stored_response_of(entry, cached_now_s(cached)) : NULL;

    if (cached->p->slice.of)
        return use_slice(cached, entry);
    if (!entry)
        return cache_miss(cached);
    if (stored && stored->metadata.status == 0 && !cached->names.data)
        return choose_variant(cached, entry, stored);
    if (stored && stored->metadata.status != 0 &&
        stored->metadata.status != 206) /* incomplete entries have a key of their own */
        return use_stored(cached, entry, stored);
    cache_entry_unref(entry);
    return cache_miss(cached);
}

static void cached_lookup_done(struct cache_lookup *lookup, struct cache_entry *entry)
{
    struct cached *cached = container_of(lookup, struct cached, lookup);

    gateway_resume(cached->p, use_found(cached, entry));
}

static enum outcome find_by_key(struct cached *cached)
{
    struct cache_entry *entry;
    bool pending;

    if (cached->partial)
        cached_partial_reset(cached);
    cached->lookup.found = cached_lookup_done;
    entry = cache_store_get(cached->store, &cached->lookup, cached->key, &pending);
    return pending ? OUTCOME_PENDING : use_found(cached, entry);
}

/* Methods of proxy_cache_methods. A GET with a body is excluded: bodies are not part of the key. */
static bool uses_cache(const struct gateway_request *p)
{
    const struct request *request = &p->x->request;
    bool is_usual = request->method == METHOD_GET || request->method == METHOD_HEAD;

    return p->conf->cache.cache && (p->conf->cache.methods & (1u << request->method)) &&
           (!is_usual || request->content_length == 0) &&
           !headers_find(&request->headers, STR("Upgrade"));
}

void cached_update_release(struct cache_update *update)
{
    if (update->fill_lock)
        cache_store_fill_unlock(update->store, &update->hash, update->fill_lock);
    update->fill_lock = 0;
}

/* Takes over the fill lock of the parent, or releases it if the key of the subrequest differs. */
static void inherit_lock(struct cached *cached)
{
    struct cache_update *update = &cached->p->update;

    cached->base.background = update->fill_lock != 0;
    if (!cached->base.background)
        return;
    if (cached->store == update->store && memcmp(cached_hash(cached), &update->hash, sizeof(update->hash)) == 0) {
        cached->fill_lock = update->fill_lock;
        update->fill_lock = 0;
    } else {
        cached_update_release(update);
    }
}

static struct cached *cached_create(struct gateway_request *p)
{
    const struct gateway_cache_conf *conf = &p->conf->cache;
    struct exchange *x = p->x;
    struct cached *cached = arena_zalloc(&x->arena, 1, sizeof(*cached));

    if (!cached)
        return NULL;
    cached->p = p;
    cached->store = worker_cache(exchange_worker(x), conf->cache);
    cached->primary = cached->key = cached_primary_key(p);
    if (!cached->primary.data)
        return NULL;
    cached->waiter.woken = lock_wait_done;
    inherit_lock(cached);
    if (conf->obey && !cached->base.background && !p->slice.of)
        cache_control_read(&x->request.headers, CACHE_OF_REQUEST, &cached->request_control);
    else
        cache_control_read(&(struct headers){0}, CACHE_OF_REQUEST, &cached->request_control);
    return cached;
}

/* Looks for a complete response if no metadata is stored. */
static enum outcome after_slice_lookup(struct cached *cached, enum outcome outcome)
{
    return outcome == OUTCOME_DECLINED && cached->sliced ? find_by_key(cached) : outcome;
}

void cached_slices_looked_up(struct gateway_request *p, enum outcome outcome)
{
    gateway_resume(p, after_slice_lookup(cached_of(p), outcome));
}

/* A slice of the parent's response; without metadata the first slice is requested to obtain it. */
static enum outcome begin_slice(struct cached *cached)
{
    cached->key = cached->p->slice.functions->key(cached->p);
    if (!cached->key.data)
        return exchange_error_response(cached->p->x, 500);
    if (str_empty(cached->key)) {
        cached->key = cached->primary;
        cached->base.status = CACHED_MISS;
        return cached_fetch(cached);
    }
    cache_hash_key(cached->key, &cached->origin.hash);
    cached->hashed = true;
    return find_by_key(cached);
}

/* If-Match and If-Unmodified-Since are evaluated by the origin server only (RFC 9111 4.3.2). */
static bool is_for_origin(const struct gateway_request *p)
{
    const struct headers *headers = &p->x->request.headers;

    return !p->slice.of &&
           (headers_find(headers, STR("If-Match")) || headers_find(headers, STR("If-Unmodified-Since")));
}

/* The request is passed on unchanged, and its response is not stored. */
static enum outcome bypass_cache(struct cached *cached)
{
    if (cached->request_control.only_if_cached)
        return exchange_error_response(cached->p->x, 504);
    cached->base.status = CACHED_BYPASS;
    return cached_fetch(cached);
}

enum outcome cached_lookup(struct gateway_request *p)
{
    struct exchange *x = p->x;
    struct cached *cached;
    int bypassed;

    if (cached_is_purge(p))
        return cached_purge(p);
    if (!uses_cache(p))
        return OUTCOME_DECLINED;
    cached = cached_create(p);
    if (!cached)
        return exchange_error_response(x, 500);
    p->cached = &cached->base;
    if (cached->primary.length > LIMIT_CACHE_KEY) {
        p->cached = NULL;
        return OUTCOME_DECLINED;
    }
    if (is_for_origin(p))
        return bypass_cache(cached);
    if (cached_convert_head(p) == OUTCOME_PENDING)
        return OUTCOME_PENDING;
    if (cached->base.background)
        exchange_end_with_client(x, false);
    if (p->conf->cache.partial && cached_partial_begin(cached) < 0)
        return exchange_error_response(x, 500);
    cached->stores = x->request.method != METHOD_HEAD && !gateway_drops_fields(&x->request.headers) &&
                     (p->slice.of || cached_uses_slices(p) || !cached_exceeds_range_offset(p) ||
                      (cached->partial && cached->partial->takes_range));
    if (p->slice.of)
        return begin_slice(cached);
    bypassed = cached_test_predicates(x, &p->conf->cache.bypass);
    if (bypassed < 0)
        return exchange_error_response(x, 500);
    if (bypassed) {
        cached->base.status = CACHED_BYPASS;
        return cached_fetch(cached);
    }
    cached->sliced = cached_uses_slices(p);
    return cached->sliced ? after_slice_lookup(cached, p->conf->cache.slices->begin(p)) : find_by_key(cached);
}

void cached_end(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (!cached)
        return;
    if (p->slice_request)
        p->conf->cache.slices->end(p);
    cache_lookup_cancel(&cached->lookup);
    cache_waiter_cancel(&cached->waiter);
    for (size_t i = 0; i < 2; i++) {
        if (cached->publishing[i])
            cached->publishing[i]->ended = NULL;
        cached->publishing[i] = NULL;
    }
    cache_head_update_cancel(&cached->head_update);
    if (cached->partial)
        cached_partial_end(cached);
    cache_fill_discard(cached->base.fill);
    cached->base.fill = NULL;
    cache_entry_unref(cached->stale);
    cached->stale = NULL;
    cached_release_lock(p);
}
