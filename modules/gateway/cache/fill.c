/*
 * A response is stored while it passes.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/fields.h"
#include "modules/gateway/response_body.h"

#include <errno.h>

static void fill_has_room(void *owner)
{
    gateway_read(owner);
}

/* The key of a slice depends on nothing but what it is a slice of. Who hears of the others now waits for this one. */
static int find_slice_key(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    cached->key = cached->p->slice.functions->key(cached->p);
    if (!cached->key.data)
        return -ENOMEM;
    cache_store_hash(cached->key, &cached->origin.hash);
    if (conf->lock && !cached->fill_lock)
        cached->fill_lock = cache_store_fill_lock(cached->store, &cached->origin.hash, conf->lock_age_ms);
    return 0;
}

static int start_fill(struct cached *cached, const struct headers *counting, const struct stored_metadata *metadata)
{
    struct gateway_request *p = cached->p;
    struct headers fields = {0};
    bool slice = p->slice.of && metadata->status == 206;
    int error = slice ? find_slice_key(cached) : cached_find_key(cached, counting);

    if (error == -ENOTSUP)
        return 0;
    if (error == 0)
        error = gateway_end_to_end_fields(p, &p->reply.headers, &fields);
    if (error == 0)
        error = stored_response_date(&fields, &p->x->arena, metadata->received_s);
    if (error < 0)
        return error;
    cached->head = stored_response_write(metadata, &fields, &p->x->arena);
    if (!cached->head.data)
        return -ENOMEM;
    cached->base.fill = cache_fill_begin(cached->store, cached->key, &cached->origin, cached->fill_lock);
    if (!cached->base.fill)
        return -ENOMEM;
    cached->fill_lock = 0;
    cached->base.fill->owner = p;
    cached->base.fill->room = fill_has_room;
    return 0;
}

/* 1: it is kept; 0 or -ENOMEM. */
static int decide_storing(struct gateway_request *p, struct arrival *arrival, struct stored_metadata *metadata)
{
    int result = p->slice.of ? p->slice.functions->response_head(p, arrival, metadata) : -ENOTSUP;

    return result == -ENOTSUP ? cached_may_store(p, arrival, metadata) : result;
}

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS || method == METHOD_TRACE;
}

int cached_response_head(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);
    struct headers counting = {0};
    struct cache_control said;
    struct stored_metadata metadata = {.status = p->reply.status};
    struct arrival arrival = {.authorized = headers_find(&p->x->request.headers, STR("Authorization")) != NULL,
                              .response_control = &said,
                              .headers = &counting,
                              .status = p->reply.status,
                              .received_s = clock_wall_s(exchange_clock(p->x))};
    int result;

    if (p->conf->cache.cache && !is_safe(p->sent.method) && p->reply.status >= 200 && p->reply.status < 400)
        cached_invalidate(p);
    if (!cached)
        return 0;
    if (!is_safe(p->sent.method)) /* what it forgets is what was before it: its own answer may be kept */
        cached->origin.since = cache_zone_sequence(cache_store_conf(cached->store)->zone);
    arrival.request_control = &cached->request_control;
    arrival.request_sent_s = cached->request_sent_s;
    if (cached->revalidates && p->reply.status == 304)
        return cached_revalidated(p, &arrival);
    if (cached_policy(p, &p->reply.headers, arrival.received_s, &counting, &said) < 0)
        return -ENOMEM;
    result = decide_storing(p, &arrival, &metadata);
    if (result > 0)
        result = start_fill(cached, &counting, &metadata);
    if (result == 0 && !cached->base.fill)
        cached_release_lock(p);
    return result;
}

void cached_put(struct gateway_request *p, struct str part)
{
    struct cached *cached = cached_of(p);

    if (!cached || !cached->base.fill)
        return;
    cached->stored_bytes += part.length;
    if (cached->stored_bytes <= cached_most_kept(p)) {
        cache_fill_add(cached->base.fill, part);
        return;
    }
    cache_fill_discard(cached->base.fill); /* nobody had said how long it would be */
    cached->base.fill = NULL;
}

bool cached_fill_is_full(const struct gateway_request *p)
{
    return cached_of(p) && p->cached->fill && cache_fill_must_wait(p->cached->fill);
}

void cached_fill_end(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);
    struct cache_fill *fill = cached ? cached->base.fill : NULL;

    if (!fill)
        return;
    cached_publish(cached, fill);
    cached->base.fill = NULL;
    if (p->slice.of && p->reply.status == 206 && cached->stored_bytes != slice_length(&p->slice))
        cache_fill_discard(fill);
    else
        cache_fill_end(fill, cached->head);
}

void cached_fill_failed(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (!cached)
        return;
    cache_fill_discard(cached->base.fill);
    cached->base.fill = NULL;
    if (cached->holds_head)
        exchange_resume(p->x, OUTCOME_ANSWERED);
    cached->holds_head = false;
}
