/*
 * A request body: the session adds received bytes, a module pulls them. At most body_buffer_size bytes are buffered;
 * while the buffer is full, consume accepts no more.
 */
#include "http/h1_session.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/saturate.h"

#include <errno.h>

static void wake_consumer(struct h1_exchange *h)
{
    if (!h->wake_pending)
        return;
    h->wake_pending = false;
    if (h->request_body.wake)
        h->request_body.wake(h->request_body.owner);
}

/* Sends 100 Continue (RFC 9110 10.1.1) at the first pull, if the client expects it. */
static void send_continue(struct h1_exchange *h)
{
    if (!h->continue_due || h->stage != STAGE_REQUEST)
        return;
    h->continue_due = false;
    if (h1_interim_queue(h, 100, NULL) != 0)
        h->continue_due = true; /* out of memory: the next pull tries again */
}

static int next_input(struct h1_exchange *h, size_t room, struct chunk *out)
{
    struct str ready = str_slice(str_skip(buffer_str(&h->input), h->input_at), 0, room);

    h->input_at += ready.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = ready};
    return 1;
}

static int request_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct h1_exchange *h = container_of(body, struct h1_exchange, request_body);

    if (h->input_at < h->input.length)
        return next_input(h, room, out);
    h->input.length = h->input_at = 0;
    h1_session_resume_input(h->session);
    if (h->body_error)
        return h->body_error;
    if (h->body_whole)
        return 0;
    h->wake_pending = true;
    send_continue(h);
    h1_session_wake(h->session); /* client_body_timeout applies now: the owner updates its timer */
    return -EAGAIN;
}

static void request_close(struct body *body)
{
    /* The session owns the body: it lives as long as the exchange. */
}

static const struct body_ops request_body_ops = {.next = request_next, .close = request_close};

int h1_body_open(struct h1_exchange *h)
{
    struct request *request = &h->x.request;

    h->left = request->content_length;
    if (h->left == 0) {
        h->body_whole = true;
        return 0;
    }
    h->request_body = (struct body){.ops = &request_body_ops, .length = request->content_length};
    request->body = &h->request_body;
    h->continue_due = request->expects_continue;
    if (request->content_length != BODY_LENGTH_UNKNOWN)
        return 0;
    h->chunked = arena_alloc(&h->x.arena, sizeof(*h->chunked));
    if (!h->chunked)
        return -ENOMEM;
    h1_chunked_init(h->chunked, &h->x.arena, &request->trailers, h->session->settings->max_headers,
                    h->session->settings->underscores_in_headers);
    return 0;
}

void h1_body_fail(struct h1_exchange *h, int error)
{
    if (h->body_whole || h->body_error)
        return;
    h->body_error = error;
    h->session->keepalive = false;
    h->session->input_closed = true;
    wake_consumer(h);
}

/*
 * Room for received bytes without moving buffered ones, to which a pulled chunk may point. After an internal redirect
 * the buffer may hold more than the new location's client_body_buffer_size.
 */
static size_t input_room(struct h1_exchange *h)
{
    size_t size = h->x.settings->body_buffer_size;

    if (h->stage == STAGE_DRAINING)
        return SIZE_MAX;
    if (h->input.capacity == 0) {
        if (!h->chunked && h->left < size)
            size = (size_t)h->left;
        if (buffer_reserve(&h->input, size ? size : 1) != 0) {
            h1_body_fail(h, -ENOMEM);
            return 0;
        }
    }
    if (size == 0 || size > h->input.capacity)
        size = h->input.capacity;
    return size_sub_sat(size, h->input.length);
}

static void append_body_part(struct h1_exchange *h, struct str part)
{
    if (h->stage == STAGE_DRAINING)
        return;
    h->decoded += part.length;
    if (h->chunked && h->x.request.body_limit && h->decoded > h->x.request.body_limit) {
        h1_body_fail(h, -EMSGSIZE);
        return;
    }
    memcpy(h->input.data + h->input.length, part.data, part.length);
    h->input.length += part.length;
}

static size_t consume_length(struct h1_exchange *h, struct str bytes)
{
    size_t taken = h->left < bytes.length ? (size_t)h->left : bytes.length;

    append_body_part(h, str_slice(bytes, 0, taken));
    h->left -= taken;
    h->body_whole = h->left == 0;
    return taken;
}

static size_t consume_chunked(struct h1_exchange *h, struct str bytes)
{
    struct str in = bytes;
    struct str part;
    int result;

    while ((result = h1_chunked_next(h->chunked, &in, &part)) == 1 && !h->body_error)
        append_body_part(h, part);
    if (result == 0)
        h->body_whole = true;
    else if (result < 0 && result != -EAGAIN)
        h1_body_fail(h, result);
    return bytes.length - in.length;
}

size_t h1_body_consume(struct h1_exchange *h, struct str bytes)
{
    size_t room;
    size_t taken;

    if (h->body_whole)
        return 0;
    room = input_room(h);
    if (room == 0)
        return 0;
    bytes = str_slice(bytes, 0, room);
    taken = h->chunked ? consume_chunked(h, bytes) : consume_length(h, bytes);
    h->continue_due = false;
    h->x.request.bytes += taken;
    if (h->request_body.length != BODY_LENGTH_UNKNOWN)
        h->request_body.length = h->left + size_sub_sat(h->input.length, h->input_at);
    if (h->stage == STAGE_DRAINING)
        h->drained += taken;
    wake_consumer(h);
    return taken;
}

bool h1_body_drainable(const struct h1_exchange *h)
{
    if (h->body_whole)
        return true;
    if (h->body_error || h->continue_due)
        return false;
    return h->chunked || h->left <= LIMIT_PIPELINE_DRAIN;
}

void h1_body_drain(struct h1_exchange *h)
{
    h->stage = STAGE_DRAINING;
    h->wake_pending = false; /* the module that pulled has ended: its wake must not be called */
    buffer_finish(&h->input);
    h->input_at = 0;
}

void h1_body_finish(struct h1_exchange *h)
{
    buffer_finish(&h->input);
    if (h->chunked)
        h1_chunked_finish(h->chunked);
}
