/*
 * The client's body, read whole before a server is asked (proxy_request_buffering). It is kept to the exchange's
 * end: other servers are sent it, too. Where it can be stored no further, its rest is passed on as it comes. And what
 * is sent in its place (proxy_set_body).
 */
#include "proxy.h"

#include "base/limits.h"

#include <errno.h>

bool proxy_body_is_spent(const struct proxying *p)
{
    return p->request.pulled > 0 && !p->stored_whole && !p->own_body.data;
}

static void go_on(struct proxying *p)
{
    int status = proxy_begin(p);

    if (status)
        proxy_give_up(p, status);
}

/* As much as has come. */
static void store(struct proxying *p)
{
    struct body *body = p->x->request.body;
    struct chunk chunk;
    int result = 1;

    while (result == 1 && !spool_full(p->stored)) {
        result = body->ops->next(body, CHUNK_BYTES, LIMIT_LENT_BYTES, &chunk);
        if (result == 1 && spool_put(p->stored, chunk.bytes) < 0)
            result = -ENOMEM;
    }
    p->stored_whole = result == 0;
    if (result == 0 || (result == 1 && spool_streams(p->stored)))
        go_on(p);
    else if (result < 0 && result != -EAGAIN)
        proxy_request_broke(p, result);
}

static void stored_moved(void *owner)
{
    struct proxying *p = owner;

    if (p->stage == PROXY_STORING)
        store(p);
    else
        proxy_request_woken(p);
}

static void storing_failed(void *owner, const char *doing, int error)
{
    struct proxying *p = owner;

    exchange_say(p->x, LOG_ERROR, "%s in \"" STR_FMT "\" failed (%d: %s): the body is passed on as it comes", doing,
                 STR_ARG(p->conf->buffering.requests_folder), -error, strerror(-error));
}

/* More of the client's body has come. Only queued: this is called inside the session. */
static void storing_woken(void *owner)
{
    struct proxying *p = owner;

    spool_wake(p->stored);
}

bool proxy_store(struct proxying *p)
{
    static const struct spool_events events = {.moved = stored_moved, .failed = storing_failed};
    struct request *request = &p->x->request;
    const struct spool_settings settings = {.memory = p->x->settings->body_buffer_size,
                                            .block = LIMIT_STORED_BLOCK,
                                            .file_max = LIMIT_SPOOL_FILE,
                                            .folder = p->conf->buffering.requests_folder,
                                            .keeps = true};
    bool wanted = p->conf->buffering.requests;

    if (p->own_body.data)
        return false;
    if (request->content_length == BODY_LENGTH_UNKNOWN && p->conf->speech->measured)
        wanted = true;
    if (!wanted || p->stored || request->content_length == 0)
        return false;
    p->stored = spool_create(exchange_worker(p->x), &settings, &events, p);
    if (!p->stored) {
        proxy_give_up(p, 500);
        return true;
    }
    p->stage = PROXY_STORING;
    request->body->wake = storing_woken;
    request->body->owner = p;
    store(p);
    return true;
}

/* What was stored, and behind it, where that is not all, what still comes. */
static int stored_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct proxying *p = container_of(body, struct proxying, stored_body);
    struct body *source = p->x->request.body;
    int result = spool_next(p->stored, accept, room, out);

    return result == 0 && !p->stored_whole ? source->ops->next(source, accept, room, out) : result;
}

/* The configuration's words: there are always more of them, up to the last. */
static int own_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct proxying *p = container_of(body, struct proxying, stored_body);
    struct str part = str_slice(str_skip(p->own_body, p->own_body_at), 0, room);

    p->own_body_at += part.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = part};
    return !str_empty(part);
}

static struct body *own_body(struct proxying *p)
{
    static const struct body_ops ops = {.next = own_next};

    p->own_body_at = 0;
    p->stored_body = (struct body){.ops = &ops, .length = p->own_body.length};
    return &p->stored_body;
}

struct body *proxy_request_body(struct proxying *p)
{
    static const struct body_ops ops = {.next = stored_next};
    struct body *body = p->x->request.body;

    if (p->own_body.data)
        return own_body(p);
    body->wake = proxy_request_woken;
    body->owner = p;
    if (!p->stored)
        return body;
    if (p->stored_whole)
        spool_rewind(p->stored);
    p->stored_body = (struct body){.ops = &ops, .length = p->content_length};
    return &p->stored_body;
}
