/*
 * Subrequests that fetch for the cache.
 */
#include "modules/gateway/cache/response_cache.h"

/* One subrequest at a time. */

void cached_child_release(struct exchange *child)
{
    const struct gateway_request *p = gateway_request_of(child);

    if (p && gateway_is_connected(p) && cached_of(p) && p->cached->fill)
        exchange_subrequest_detach(child);
    else
        exchange_subrequest_end(child);
}
