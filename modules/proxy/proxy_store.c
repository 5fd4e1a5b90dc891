/*
 * The client's body, read whole before a server is asked (proxy_request_buffering). It is kept to the exchange's
 * end: other servers are sent it, too. And what is sent in its place (proxy_set_body).
 */
#include "proxy.h"

#include <errno.h>

bool proxy_body_is_spent(const struct proxying *p)
{
    return p->request.pulled > 0 && !(p->kept && p->kept->whole) && !p->own_body.data;
}

bool proxy_body_is_lost(const struct exchange *x)
{
    const struct proxying *p = exchange_state_found(x, &module_proxy);

    return p && p->x && (p->spent || proxy_body_is_spent(p));
}

int proxy_keep_body(struct exchange *x, void (*done)(void *owner, int error), void *owner)
{
    struct proxying *p = exchange_state(x, &module_proxy, sizeof(*p));
    const struct proxy_conf *conf = exchange_conf(x, &module_proxy);

    if (p)
        p->made = arena_zalloc(&x->arena, 1, sizeof(*p->made));
    return p && p->made ? kept_body_read(p->made, x, conf->buffering.requests_folder, done, owner) : -ENOMEM;
}

int proxy_give_body(struct exchange *x, struct exchange *child)
{
    struct proxying *p = exchange_state(child, &module_proxy, sizeof(*p));

    if (p)
        p->made = arena_zalloc(&child->arena, 1, sizeof(*p->made));
    return p && p->made ? kept_body_give(kept_body_of(&x->request), p->made, child) : -ENOMEM;
}

static void kept(void *owner, int error)
{
    struct proxying *p = owner;
    int status = error ? 0 : proxy_begin(p);

    if (error)
        proxy_request_broke(p, error);
    else if (status)
        proxy_give_up(p, status);
}

bool proxy_store(struct proxying *p)
{
    struct request *request = &p->x->request;
    bool wanted = p->conf->buffering.requests ||
                  (request->content_length == BODY_LENGTH_UNKNOWN && p->conf->speech->measured);
    int error;

    if (!wanted || p->own_body.data || p->kept || request->content_length == 0)
        return false;
    p->stage = PROXY_STORING;
    error = proxy_keep_body(p->x, kept, p);
    p->kept = kept_body_of(request);
    if (error && error != -EAGAIN)
        proxy_request_broke(p, error);
    return error != 0;
}

/* The configuration's words: there are always more of them, up to the last. */
static int own_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct proxying *p = container_of(body, struct proxying, own);
    struct str part = str_slice(str_skip(p->own_body, p->own_body_at), 0, room);

    p->own_body_at += part.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = part};
    return !str_empty(part);
}

static struct body *own_body(struct proxying *p)
{
    static const struct body_ops ops = {.next = own_next};

    p->own_body_at = 0;
    p->own = (struct body){.ops = &ops, .length = p->own_body.length};
    return &p->own;
}

struct body *proxy_request_body(struct proxying *p)
{
    struct body *body = p->x->request.body;

    if (p->own_body.data)
        return own_body(p);
    if (p->kept)
        kept_body_rewind(p->kept);
    body->wake = proxy_request_woken;
    body->owner = p;
    return body;
}
