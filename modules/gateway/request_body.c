/*
 * Buffers the client's body before an upstream server is contacted (proxy_request_buffering), until the end of the
 * exchange, for further attempts; and proxy_set_body, which replaces it.
 */
#include "request_body.h"

#include <errno.h>

bool gateway_body_is_consumed(const struct gateway_request *p)
{
    return p->sent.request.pulled > 0 && !(p->sent.buffered && p->sent.buffered->whole) &&
           !p->sent.replacement_body.data;
}

bool gateway_body_is_lost(const struct exchange *x)
{
    const struct gateway_request *p = gateway_request_of(x);

    return p && p->x && (p->sent.consumed || gateway_body_is_consumed(p));
}

int gateway_buffer_body(struct exchange *x, void (*done)(void *owner, int error), void *owner)
{
    const struct gateway_module_conf *conf = exchange_conf(x, &module_gateway);
    struct gateway_request *p = gateway_request_make(x);

    if (p)
        p->sent.owned = arena_zalloc(&x->arena, 1, sizeof(*p->sent.owned));
    return p && p->sent.owned ? buffered_body_read(p->sent.owned, x, conf->body_directory, done, owner) : -ENOMEM;
}

int gateway_share_body(struct exchange *x, struct exchange *child)
{
    struct gateway_request *p = gateway_request_make(child);

    if (p)
        p->sent.owned = arena_zalloc(&child->arena, 1, sizeof(*p->sent.owned));
    return p && p->sent.owned ? buffered_body_share(buffered_body_of(&x->request), p->sent.owned, child) : -ENOMEM;
}

int gateway_buffer_request(struct gateway_request *p, void (*done)(void *owner, int error))
{
    struct request *request = &p->x->request;
    bool buffers = p->conf->buffering.requests ||
                  (request->content_length == BODY_LENGTH_UNKNOWN && p->conf->gateway->needs_content_length);
    int error;

    if (!buffers || p->sent.replacement_body.data || p->sent.buffered || request->content_length == 0)
        return 0;
    p->stage = GATEWAY_READING_BODY;
    error = gateway_buffer_body(p->x, done, p);
    p->sent.buffered = buffered_body_of(request);
    return error;
}

/* A constant body: never -EAGAIN. */
static int replacement_body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct gateway_request *p = container_of(body, struct gateway_request, sent.own);
    struct str part = str_slice(str_skip(p->sent.replacement_body, p->sent.replacement_body_at), 0, room);

    p->sent.replacement_body_at += part.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = part};
    return !str_empty(part);
}

static struct body *replacement_body(struct gateway_request *p)
{
    static const struct body_ops ops = {.next = replacement_body_next};

    p->sent.replacement_body_at = 0;
    p->sent.own = (struct body){.ops = &ops, .length = p->sent.replacement_body.length};
    return &p->sent.own;
}

/* More of the client's body arrived. Called inside the session, so the work is only queued. */
static void request_woken(void *owner)
{
    struct gateway_request *p = owner;

    if (p->upstream.connection)
        upstream_wake(p->upstream.connection);
    else if (p->upstream.stream)
        p->conf->gateway->streams->wake(p);
}

static struct body *woken_body(struct gateway_request *p, struct body *body)
{
    body->wake = request_woken;
    body->owner = p;
    return body;
}

struct body *gateway_request_body(struct gateway_request *p)
{
    if (p->sent.replacement_body.data)
        return replacement_body(p);
    if (p->sent.buffered)
        buffered_body_rewind(p->sent.buffered);
    return woken_body(p, p->x->request.body);
}

void gateway_send_tunnel(struct gateway_request *p)
{
    p->sent.request.body = woken_body(p, p->x->request.tunnel);
    p->sent.state = SENDING_WAITS;
    upstream_wake(p->upstream.connection);
}
