/*
 * The client's body, read whole before a server is asked (proxy_request_buffering). It is kept to the exchange's
 * end: other servers are sent it, too. And what is sent in its place (proxy_set_body).
 */
#include "modules/proxy/proxy.h"

#include <errno.h>

bool gateway_body_is_spent(const struct gateway_request *p)
{
    return p->request.pulled > 0 && !(p->kept && p->kept->whole) && !p->own_body.data;
}

bool gateway_body_is_lost(const struct exchange *x)
{
    const struct gateway_request *p = exchange_state_found(x, &module_proxy);

    return p && p->x && (p->spent || gateway_body_is_spent(p));
}

int gateway_buffer_body(struct exchange *x, void (*done)(void *owner, int error), void *owner)
{
    struct gateway_request *p = exchange_state(x, &module_proxy, sizeof(*p));
    const struct proxy_conf *conf = exchange_conf(x, &module_proxy);

    if (p)
        p->made = arena_zalloc(&x->arena, 1, sizeof(*p->made));
    return p && p->made ? buffered_body_read(p->made, x, conf->buffering.requests_folder, done, owner) : -ENOMEM;
}

int gateway_share_body(struct exchange *x, struct exchange *child)
{
    struct gateway_request *p = exchange_state(child, &module_proxy, sizeof(*p));

    if (p)
        p->made = arena_zalloc(&child->arena, 1, sizeof(*p->made));
    return p && p->made ? buffered_body_give(buffered_body_of(&x->request), p->made, child) : -ENOMEM;
}

static void kept(void *owner, int error)
{
    struct gateway_request *p = owner;
    int status = error ? 0 : gateway_begin(p);

    if (error)
        gateway_request_failed(p, error);
    else if (status)
        gateway_fail(p, status);
}

bool gateway_buffer_request(struct gateway_request *p)
{
    struct request *request = &p->x->request;
    bool wanted = p->conf->buffering.requests ||
                  (request->content_length == BODY_LENGTH_UNKNOWN && p->conf->gateway->measured);
    int error;

    if (!wanted || p->own_body.data || p->kept || request->content_length == 0)
        return false;
    p->stage = GATEWAY_READING_BODY;
    error = gateway_buffer_body(p->x, kept, p);
    p->kept = buffered_body_of(request);
    if (error && error != -EAGAIN)
        gateway_request_failed(p, error);
    return error != 0;
}

/* The configuration's words: there are always more of them, up to the last. */
static int own_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct gateway_request *p = container_of(body, struct gateway_request, own);
    struct str part = str_slice(str_skip(p->own_body, p->own_body_at), 0, room);

    p->own_body_at += part.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = part};
    return !str_empty(part);
}

static struct body *own_body(struct gateway_request *p)
{
    static const struct body_ops ops = {.next = own_next};

    p->own_body_at = 0;
    p->own = (struct body){.ops = &ops, .length = p->own_body.length};
    return &p->own;
}

struct body *gateway_request_body(struct gateway_request *p)
{
    struct body *body = p->x->request.body;

    if (p->own_body.data)
        return own_body(p);
    if (p->kept)
        buffered_body_rewind(p->kept);
    body->wake = gateway_request_woken;
    body->owner = p;
    return body;
}
