/*
 * Stores a response while it is passed on.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/cache/partial.h"
#include "modules/gateway/fields.h"
#include "modules/gateway/response_body.h"

#include <errno.h>

/* Sets the key of the slice. Requests that waited for the metadata wait for this slice from now on. */
static int find_slice_key(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    cached->key = cached->p->slice.functions->key(cached->p);
    if (!cached->key.data)
        return -ENOMEM;
    cache_hash_key(cached->key, &cached->origin.hash);
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
    cached->head = stored_response_write(metadata, p->reply.reason, &fields, &p->x->arena);
    if (!cached->head.data)
        return -ENOMEM;
    if (cached->partial)
        cached_partial_record(cached, &fields, metadata);
    return cached_fill_begin(cached, cached->key);
}

/* Starts to store the response if allowed. 0 or -ENOMEM. `response` will point to `control`. */
static int store_response(struct cached *cached, struct received_response *received, struct cache_control *control,
                          struct stored_metadata *metadata)
{
    struct gateway_request *p = cached->p;
    struct headers counting = {0};
    int result;

    if (cached_policy(p, &p->reply.headers, received->received_s, &counting, control) < 0)
        return -ENOMEM;
    received->headers = &counting;
    received->response_control = control;
    result = p->slice.of ? p->slice.functions->response_head(p, received, metadata) : -ENOTSUP;
    if (result == -ENOTSUP)
        result = cached_may_store(p, received, metadata);
    return result > 0 ? start_fill(cached, &counting, metadata) : result;
}

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS || method == METHOD_TRACE;
}

int cached_response_head(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);
    struct cache_control control;
    struct stored_metadata metadata = {.status = p->reply.status};
    struct received_response received = {
        .authorized = headers_find(&p->x->request.headers, STR("Authorization")) != NULL,
        .status = p->reply.status,
        .received_s = clock_wall_s(exchange_clock(p->x))};
    int result;

    if (p->conf->cache.cache && !is_safe(p->sent.method) && p->reply.status >= 200 && p->reply.status < 400)
        cached_invalidate(p);
    if (!cached)
        return 0;
    cached->storable = false;
    if (!is_safe(p->sent.method)) /* cached_invalidate does not concern the response of this request */
        cached->origin.since = cache_zone_sequence(cache_store_conf(cached->store)->zone);
    received.request_control = &cached->request_control;
    received.request_sent_s = cached->request_sent_s;
    if (cached->revalidates && p->reply.status == 304) {
        result = cached_revalidated(p, &received);
        if (result == -EAGAIN && cached->partial)
            cached_partial_reset(cached);
        return result;
    }
    result = cached->partial ? cached_partial_head(cached, &received, &metadata) : -ENOTSUP;
    if (result == -ENOTSUP)
        result = store_response(cached, &received, &control, &metadata);
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
    if (cached->stored_bytes > LIMIT_CACHE_HEAD_DELAY)
        cached_release_head(cached);
    if (cached->stored_bytes <= cached_max_stored_size(p)) {
        cache_fill_add(cached->base.fill, part);
        return;
    }
    cache_fill_discard(cached->base.fill); /* there was no Content-Length */
    cached->base.fill = NULL;
    cached_release_head(cached);
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
    else if (cached->partial && !cached_partial_whole(cached))
        cache_fill_discard(fill);
    else
        cache_fill_end(fill, cached->head);
}

void cached_fill_failed(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (!cached)
        return;
    if (cached->partial)
        cached_partial_store_interrupted(cached);
    cache_fill_discard(cached->base.fill);
    cached->base.fill = NULL;
    cached_release_head(cached);
}
