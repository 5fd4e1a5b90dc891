/*
 * Conditional requests whose response was not stored: the complete response is requested without conditions, and its
 * validators are compared with the client's conditions.
 */
#include "modules/gateway/cache/response_cache.h"

/* Subrequests need the response itself, except that of a HEAD. */
static bool may_be_not_modified(const struct gateway_request *p)
{
    const struct exchange *x = p->x;
    bool reads = x->request.method == METHOD_GET || x->request.method == METHOD_HEAD;

    if (!p->cached || !(p->cached->fill || cached_of(p)->storable))
        return false;
    return !p->cached->combined && p->reply.status == 200 && reads &&
           (p->for_head == FOR_HEAD_FETCHES || !exchange_is_subrequest(x)) && !exchange_is_error_page(x);
}

bool cached_is_not_modified(const struct gateway_request *p)
{
    int64_t now_s = clock_wall_s(exchange_clock(p->x));
    struct validators validators = {.modified = -1};

    if (!may_be_not_modified(p))
        return false;
    stored_response_validators(&p->reply.headers, now_s, now_s, &validators);
    validators.dated = 0;
    return conditional_check(&p->x->request, &validators, now_s, false) == 304;
}

struct gateway_cached *cached_detach(struct gateway_request *p, struct gateway_request *rest)
{
    struct cached *cached = cached_of(p);
    struct cached *other = arena_zalloc(&p->x->arena, 1, sizeof(*other));

    cached->base.background = true;
    if (!other)
        return NULL;
    other->p = rest;
    other->store = cached->store;
    other->base.status = cached->base.status;
    return &other->base;
}
