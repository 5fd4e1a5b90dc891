/*
 * The response cache's table of functions for gateways.
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/cache/partial.h"

static bool serve_stale(struct gateway_request *p, enum gateway_failure failure)
{
    static const unsigned reasons[] = {[GATEWAY_FAILED_ERROR] = STALE_ERROR,
                                       [GATEWAY_FAILED_TIMEOUT] = STALE_TIMEOUT,
                                       [GATEWAY_FAILED_INVALID_HEADER] = STALE_INVALID_HEADER};

    if (failure == GATEWAY_FAILED_STATUS)
        return cached_serve_stale_for_status(p, p->reply.status);
    return cached_serve_stale(p, reasons[failure]);
}

static void fill_end(struct gateway_request *p, bool whole)
{
    if (whole)
        cached_fill_end(p);
    else
        cached_fill_failed(p);
}

/* Responses to clients and to subrequests of other modules; a response of several slices counts once. */
static bool is_counted(const struct gateway_request *p)
{
    return p->cached && !p->cached->background && !p->slice.of && p->for_head == FOR_HEAD_NOT;
}

static void cache_part_finish(struct gateway_request *p)
{
    if (is_counted(p))
        cache_zone_count(p->conf->cache.cache->zone, p->cached->status);
    cached_update_release(&p->update);
    cached_end(p);
}

static const struct gateway_fill fill = {
    .put = cached_put,
    .end = fill_end,
    .is_full = cached_fill_is_full,
    .delays_body = cached_delays_body,
    .delays_head = cached_delays_head,
    .is_not_modified = cached_is_not_modified,
    .detach = cached_detach,
};

const struct gateway_cache response_cache = {
    .lookup = cached_lookup,
    .request_fields = cached_request_fields,
    .response_head = cached_response_head,
    .combined_fields = cached_combined_fields,
    .combine = cached_combine,
    .serve_stale = serve_stale,
    .release_lock = cached_release_lock,
    .end = cached_end,
    .finish = cache_part_finish,
    .fill = &fill,
};
