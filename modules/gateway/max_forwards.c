/*
 * Max-Forwards (RFC 9110 7.6.2) of OPTIONS and TRACE.
 */
#include "gateway.h"

#include <errno.h>

/* False if there is no limit, or Max-Forwards is not a number. */
static bool hops_left(const struct exchange *x, uint64_t *out_hops)
{
    const struct request *request = &x->request;
    struct str value;

    if (!gateway_counts_hops(x))
        return false;
    value = headers_value(&request->headers, STR("Max-Forwards"));
    return value.data && str_to_u64(value, out_hops) == 0;
}

bool gateway_is_last_hop(const struct exchange *x)
{
    uint64_t hops;

    return hops_left(x, &hops) && hops == 0;
}

enum outcome gateway_respond_last_hop(struct exchange *x)
{
    if (x->request.method == METHOD_OPTIONS) {
        x->response.status = 204;
        return OUTCOME_RESPONDED;
    }
    (void)exchange_error_response(x, 405); /* TRACE would disclose fields added by proxies */
    if (headers_add(&x->response.headers, &x->arena, STR("Allow"), STR("OPTIONS")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

int gateway_forward_hops(const struct gateway_request *p, struct headers *fields)
{
    struct arena *arena = &p->x->arena;
    uint64_t hops;
    struct str value;

    if (!hops_left(p->x, &hops) || hops == 0)
        return 0;
    value = arena_print_number(arena, hops - 1);
    return value.data ? headers_set(fields, arena, STR("Max-Forwards"), value) : -ENOMEM;
}
