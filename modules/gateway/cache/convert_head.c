/*
 * HEAD converted to GET (proxy_cache_convert_head): a subrequest looks the response up, or fetches and stores it;
 * its head becomes the head of this response. Its body is only stored. The head is delayed until a body of at most
 * LIMIT_CACHE_HEAD_DELAY bytes is stored; a larger one may arrive later.
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/fields.h"
#include "modules/gateway/response.h"

#include <errno.h>

/* The length is known, and the body is not pulled. */
static int headless_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    return -EPROTO;
}

static void headless_close(struct body *body)
{
}

/* Copies the attempts for the log: they outlive the subrequest. */
static int copy_attempts(const struct gateway_request *from, struct gateway_request *p)
{
    struct gateway_attempt **last = &p->attempts;

    for (const struct gateway_attempt *attempt = from->attempts; attempt; attempt = attempt->next) {
        struct gateway_attempt *copy = arena_alloc(&p->x->arena, sizeof(*copy));

        if (!copy)
            return -ENOMEM;
        *copy = *attempt;
        copy->next = NULL;
        copy->server = arena_copy(&p->x->arena, attempt->server);
        *last = copy;
        last = &copy->next;
    }
    return 0;
}

static int copy_head(struct gateway_request *p, const struct response *from)
{
    static const struct body_ops ops = {.next = headless_next, .close = headless_close};
    struct exchange *x = p->x;
    struct response *to = &x->response;
    int error = headers_copy(&to->headers, &x->arena, &from->headers);

    if (from->body && !status_bodiless(from->status)) {
        to->body = arena_zalloc(&x->arena, 1, sizeof(*to->body));
        if (!to->body)
            return -ENOMEM;
        *to->body = (struct body){.ops = &ops, .length = from->body->length};
    }
    to->status = from->status;
    to->reason.status = from->reason.status;
    to->reason.text = arena_copy(&x->arena, from->reason.text);
    return error;
}

/* An error of the subrequest becomes one of this exchange; an upstream error may be intercepted here. */
static enum outcome copy_child_response(struct gateway_request *p, const struct exchange *child)
{
    const struct response *response = &child->response;
    const struct gateway_request *from = gateway_request_of(child);

    p->stage = GATEWAY_DONE;
    if (from && cached_of(from))
        p->cached->status = from->cached->status;
    if (from && copy_attempts(from, p) < 0)
        return exchange_error_response(p->x, 500);
    if (from && from->for_head == FOR_HEAD_REDIRECTED)
        return cached_child_follow_redirect(p, from);
    if (!response->body && response->status >= 400)
        return exchange_error_response(p->x, response->status);
    if (gateway_intercept(p, response->status, &response->headers))
        return OUTCOME_RESPONDED;
    p->x->response.headers.count = 0;
    return copy_head(p, response) < 0 ? exchange_error_response(p->x, 500) : OUTCOME_RESPONDED;
}

static void child_responded(struct exchange *child, void *owner)
{
    struct gateway_request *p = owner;
    enum outcome outcome = copy_child_response(p, child);

    cached_child_release(child);
    gateway_resume(p, outcome);
}

/* The first slice is fetched by GET in any case. */
static bool converts_head_to_get(const struct gateway_request *p)
{
    return p->x->request.method == METHOD_HEAD && p->conf->cache.convert_head && !cached_uses_slices(p) &&
           !gateway_drops_fields(&p->x->request.headers);
}

enum outcome cached_convert_head(struct gateway_request *p)
{
    struct exchange *child;
    struct gateway_request *fetching;

    if (!converts_head_to_get(p) || exchange_subrequest(p->x, (struct str){NULL, 0}, child_responded, p, &child) < 0)
        return OUTCOME_DECLINED;
    fetching = gateway_request_make(child);
    if (fetching)
        fetching->for_head = FOR_HEAD_FETCHES;
    headers_remove(&child->request.headers, STR("Range")); /* has no meaning for HEAD */
    headers_remove(&child->request.headers, STR("If-Range"));
    return OUTCOME_PENDING;
}
