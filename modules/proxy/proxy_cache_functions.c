/*
 * The cache of proxy_cache as a gateway sees it: its table of functions.
 */
#include "proxy_cache.h"

#include "modules/gateway/gateway.h"

static bool serve_stale(struct gateway_request *p, enum gateway_failure failure)
{
    static const unsigned reasons[] = {[GATEWAY_FAILED_ERROR] = STALE_ERROR,
                                       [GATEWAY_FAILED_TIMEOUT] = STALE_TIMEOUT,
                                       [GATEWAY_FAILED_INVALID_HEADER] = STALE_INVALID_HEADER};

    if (failure == GATEWAY_FAILED_STATUS)
        return proxy_cache_serve_stale_for_status(p, p->reply.status);
    return proxy_cache_serve_stale(p, reasons[failure]);
}

static void fill_end(struct gateway_request *p, bool whole)
{
    if (whole)
        proxy_cache_whole(p);
    else
        proxy_cache_abort(p);
}

static void cache_part_finish(struct gateway_request *p)
{
    proxy_cache_unlock(&p->update);
    proxy_cache_end(p);
}

static const struct gateway_fill fill = {
    .put = proxy_cache_part,
    .end = fill_end,
    .is_full = proxy_cache_fill_must_wait,
    .delays_body = proxy_cache_holds,
    .delays_head = proxy_cache_holds_head,
};

const struct gateway_cache proxy_cache = {
    .lookup = proxy_cache_begin,
    .request_fields = proxy_cache_fields,
    .response_head = proxy_cache_head,
    .serve_stale = serve_stale,
    .release_lock = proxy_cache_yield,
    .end = proxy_cache_end,
    .finish = cache_part_finish,
    .fill = &fill,
};
