/*
 * Subrequests that fetch for the cache.
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/response.h"

enum outcome cached_child_follow_redirect(struct gateway_request *p, const struct gateway_request *from)
{
    if (headers_copy(&p->reply.headers, &p->x->arena, &from->reply.headers) < 0)
        return exchange_error_response(p->x, 500);
    gateway_accel_rate(p, &p->reply.headers);
    return gateway_accel_follow(p);
}

void cached_child_release(struct exchange *child)
{
    const struct gateway_request *p = gateway_request_of(child);

    if (p && gateway_is_connected(p) && cached_of(p) && p->cached->fill)
        exchange_subrequest_detach(child);
    else
        exchange_subrequest_end(child);
}
