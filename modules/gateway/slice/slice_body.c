/*
 * The body of a response from slices: one subrequest after another, each with the slice of the next byte.
 */
#include "modules/gateway/slice/slice.h"

#include "base/saturate.h"

#include <errno.h>

struct slice_body {
    struct body body;
    struct slice_request *request;
    uint64_t at, left;
};

void slice_child_release(struct slice_request *s)
{
    struct exchange *child = s->child;
    bool had_response = s->has_response;

    s->child = NULL;
    s->has_response = false;
    if (child && had_response)
        cached_child_release(child);
}

static void child_responded(struct exchange *child, void *owner)
{
    struct slice_request *s = owner;
    struct slice_body *waiting = s->waiting;

    if (child != s->child) {
        cached_child_release(child);
        return;
    }
    s->has_response = true;
    s->waiting = NULL;
    if (!s->begun)
        s->responded(s);
    else if (waiting)
        waiting->body.wake(waiting->body.owner);
}

int slice_child_request(struct slice_request *s, uint64_t index)
{
    struct gateway_request *p;
    int error;

    slice_child_release(s);
    error = exchange_subrequest(s->p->x, (struct str){NULL, 0}, child_responded, s, &s->child);
    if (error < 0) {
        s->child = NULL;
        return error;
    }
    p = gateway_request_make(s->child);
    if (!p) {
        s->child = NULL; /* a subrequest that was answered is detached, too */
        return -ENOMEM;
    }
    p->slice = (struct slice_part){.functions = s->p->conf->cache.slices, .of = s, .index = index};
    s->index = index;
    s->at = index * slice_size(s);
    return 0;
}

static void child_body_woken(void *owner)
{
    struct slice_body *own = owner;

    own->body.wake(own->body.owner);
}

/* Trims the chunk to the wanted bytes. False: none are left. */
static bool trim_chunk(struct slice_body *own, struct chunk *chunk)
{
    struct slice_request *s = own->request;
    uint64_t skipped = u64_sub_sat(own->at, s->at), length = chunk_length(chunk);

    s->at += length;
    chunk_advance(chunk, skipped);
    length = chunk_length(chunk);
    if (length > own->left)
        length = own->left;
    if (chunk->kind == CHUNK_FILE)
        chunk->file.length = length;
    else
        chunk->bytes.length = (size_t)length;
    own->at += length;
    own->left -= length;
    return length > 0;
}

/* True if the response is the requested slice. After X-Accel-Redirect it may be another response with its own range. */
static bool has_piece(const struct exchange *child)
{
    const struct gateway_request *p = gateway_request_of(child);

    return p && p->slice.fits && child->response.status == 206;
}

/* As `next`, from the body of the subrequest; 2: no bytes, continue with the next chunk or slice. */
static int next_piece(struct slice_body *own, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_request *s = own->request;
    struct body *body = s->child->response.body;
    uint64_t end = slice_range(&(struct slice_part){.of = s, .index = s->index}).last + 1;
    int result;

    if (!has_piece(s->child) || !body)
        return -EPROTO;
    body->wake = child_body_woken;
    body->owner = own;
    result = body->ops->next(body, accept & ~(unsigned)CHUNK_PIPE, room, out);
    if (result < 0)
        return result;
    if (result == 1 ? s->at + chunk_length(out) > end : s->at != end)
        return -EPROTO; /* the slice is longer or shorter than announced */
    if (result == 1)
        return trim_chunk(own, out) ? 1 : 2;
    slice_child_release(s);
    return 2;
}

static int slice_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct slice_request *s = own->request;
    int result = 2;

    while (result == 2 && own->left > 0) {
        uint64_t index = own->at / slice_size(s);

        if (s->error < 0)
            return s->error;
        if (!s->child || s->index != index || s->at > own->at)
            result = slice_child_request(s, index);
        if (result < 0)
            return result;
        if (!s->has_response) {
            s->waiting = own;
            return -EAGAIN;
        }
        result = next_piece(own, accept, room, out);
    }
    return result == 2 ? 0 : result;
}

static void slice_closed(struct body *body)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct slice_request *s = own->request;

    if (s->waiting == own)
        s->waiting = NULL;
    slice_child_release(s);
}

struct body *slice_span(struct arena *arena, void *resource, uint64_t at, uint64_t length)
{
    static const struct body_ops ops = {.next = slice_next, .close = slice_closed};
    struct slice_body *own = arena_zalloc(arena, 1, sizeof(*own));

    if (!own)
        return NULL;
    *own = (struct slice_body){
        .body = {.ops = &ops, .length = length}, .request = resource, .at = at, .left = length};
    return &own->body;
}

/* The body of the subrequest, which has a complete response instead of a slice, or an error. */
static int whole_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct body *inner = own->request->child->response.body;

    inner->wake = child_body_woken;
    inner->owner = own;
    return inner->ops->next(inner, accept, room, out);
}

static void whole_closed(struct body *body)
{
    slice_child_release(container_of(body, struct slice_body, body)->request);
}

int slice_child_pass_on(struct slice_request *s)
{
    static const struct body_ops ops = {.next = whole_next, .close = whole_closed};
    struct response *from = &s->child->response, *to = &s->p->x->response;
    struct arena *arena = &s->p->x->arena;
    struct slice_body *own = arena_zalloc(arena, 1, sizeof(*own));

    to->headers.count = 0;
    if (!own || headers_copy(&to->headers, arena, &from->headers) < 0)
        return -ENOMEM;
    own->body = (struct body){.ops = &ops, .length = from->body->length};
    own->request = s;
    to->status = from->status;
    to->body = &own->body;
    return 0;
}
