/*
 * A 304 from a response that is being stored: the client gets no body, and a detached subrequest continues to store it.
 */
#include "response.h"

#include <errno.h>

/* Keeps the values of variables, which the client's exchange needs after the response. */
static void keep_rest(struct gateway_request *rest, const struct gateway_request *p, struct gateway_cached *cached)
{
    *rest = *p;
    rest->stage = GATEWAY_DONE;
    rest->cached = cached;
    rest->upstream = (struct gateway_upstream){.group = p->upstream.group};
    rest->incoming = (struct gateway_incoming){.result = 0};
    rest->sent.owned = rest->sent.buffered = NULL;
}

int gateway_detach(struct gateway_request *p)
{
    struct exchange *x = p->x, *child;
    struct gateway_request *rest;
    int error = exchange_subrequest(x, (struct str){NULL, 0}, NULL, NULL, &child);

    if (error < 0)
        return error;
    rest = exchange_state_pass(x, child, &gateway_key, sizeof(*rest));
    if (!rest) {
        exchange_subrequest_end(child);
        return -ENOMEM;
    }
    keep_rest(rest, p, p->cache->fill->detach(p, rest));
    p->x = child;
    p->detached = true;
    return 0;
}

bool gateway_respond_not_modified(struct gateway_request *p)
{
    struct exchange *x = p->x;
    struct response *response = &x->response;
    bool delays;

    p->not_modified = true;
    delays = p->cache->fill->delays_head(p);
    if (!delays && p->for_head == FOR_HEAD_NOT && gateway_detach(p) < 0) {
        p->not_modified = false;
        return false;
    }
    headers_remove(&response->headers, STR("Content-Type"));
    response->status = 304;
    if (p->for_head == FOR_HEAD_FETCHES)
        response->body = &p->incoming.body; /* pulled by the subrequest until the response is stored */
    p->stage = GATEWAY_RESPONDING;
    if (!delays)
        exchange_resume(x, OUTCOME_RESPONDED);
    return true;
}
