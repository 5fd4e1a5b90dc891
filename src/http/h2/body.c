/*
 * Bytes are appended to `input`. A pull moves all of it to `pulled_bytes` and continues with an empty buffer, so that
 * the bytes of a pulled chunk never move.
 */
#include "http/h2/body.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "http/h2/output.h"
#include "http/h2/deadline.h"
#include "http/h2/interim.h"

#include <errno.h>

#define KEPT_BYTES 1024 /* buffers up to this size are kept while the body waits: short messages need no allocation */

void h2_body_release(struct h2_session *h2, uint32_t bytes)
{
    uint32_t increment = h2_receive_window_release(&h2->receive, bytes);

    if (increment)
        h2_output_number(h2, H2_WINDOW_UPDATE, 0, increment);
}

void h2_body_release_stream(struct h2_stream *stream, uint32_t bytes)
{
    uint32_t increment;

    if (stream->body_whole || stream->reset_due)
        return;
    h2_receive_window_resize(&stream->receive, stream->session->body_window);
    increment = h2_receive_window_release(&stream->receive, bytes);
    if (increment)
        h2_output_number(stream->session, H2_WINDOW_UPDATE, stream->id, increment);
}

/* An open tunnel may be idle for any time. */
static void set_awaited(struct h2_stream *stream, bool awaited)
{
    bool timed = awaited && (!stream->x.request.tunnel || stream->draining);

    if (stream->timed != timed)
        stream->session->awaiting += timed ? 1 : -1;
    stream->timed = timed;
    stream->wake_pending = awaited;
    h2_deadline_body(stream, timed);
}

static void wake_consumer(struct h2_stream *stream)
{
    if (!stream->wake_pending)
        return;
    set_awaited(stream, false);
    if (stream->request_body.wake)
        stream->request_body.wake(stream->request_body.owner);
}

/* Sends 100 Continue (RFC 9110 10.1.1) at the first pull, if the client expects it. */
static void send_continue(struct h2_stream *stream)
{
    if (!stream->continue_due || stream->stage != H2_STAGE_REQUEST)
        return;
    stream->continue_due = h2_interim_queue(stream, 100, NULL) != 0;
}

/* Frees the buffers of bytes that were pulled. */
static void free_buffers(struct h2_stream *stream)
{
    buffer_finish(&stream->input);
    buffer_finish(&stream->pulled_bytes);
    stream->pulled_at = 0;
}

/* Returns bytes of `pulled_bytes`; when it is used up, both buffers are swapped. */
static bool next_input(struct h2_stream *stream, size_t room, struct chunk *out)
{
    struct str ready;

    if (stream->pulled_at >= stream->pulled_bytes.length) {
        struct buffer empty = stream->pulled_bytes;

        stream->pulled_bytes = stream->input;
        stream->input = empty;
        stream->input.length = 0;
        stream->pulled_at = 0;
    }
    ready = str_slice(str_skip(buffer_str(&stream->pulled_bytes), stream->pulled_at), 0, room);
    if (str_empty(ready))
        return false;
    stream->pulled_at += ready.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = ready};
    memory_budget_release(&stream->session->budget, ready.length);
    h2_body_release(stream->session, (uint32_t)ready.length);
    h2_body_release_stream(stream, (uint32_t)ready.length);
    return true;
}

static int request_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct h2_stream *stream = container_of(body, struct h2_stream, request_body);

    if (next_input(stream, room, out))
        return 1;
    if (stream->body_error)
        return stream->body_error;
    if (stream->body_whole)
        return 0;
    if (stream->pulled_bytes.capacity + stream->input.capacity > KEPT_BYTES)
        free_buffers(stream); /* the client may send nothing for hours */
    set_awaited(stream, true);
    send_continue(stream);
    h2_session_wake(stream->session); /* client_body_timeout applies now: the owner updates its timer */
    return -EAGAIN;
}

static void request_close(struct body *body)
{
    /* The session owns the body: it lives as long as the exchange. */
}

static const struct body_ops request_body_ops = {.next = request_next, .close = request_close};

void h2_body_open(struct h2_stream *stream)
{
    struct request *request = &stream->x.request;

    stream->request_body = (struct body){.ops = &request_body_ops, .length = stream->body_length};
    *(request->tunnel ? &request->tunnel : &request->body) = &stream->request_body;
    stream->continue_due = request->expects_continue;
}

void h2_body_fail(struct h2_stream *stream, int error)
{
    if (stream->body_whole || stream->body_error || stream->draining)
        return;
    stream->body_error = error;
    wake_consumer(stream);
}

/* True if no module pulls the body any more: only the last frames of the response are missing, or the body failed. */
static bool is_discarded(const struct h2_stream *stream)
{
    return stream->body_error || stream->request_body.ops == NULL;
}

static bool exceeds_length(const struct h2_stream *stream)
{
    uint64_t length = stream->body_length;

    return length != BODY_LENGTH_UNKNOWN && stream->received > length;
}

/* False: out of memory, or past LIMIT_CONNECTION_MEMORY. */
static bool keep_input(struct h2_stream *stream, struct str bytes)
{
    struct memory_budget *budget = &stream->session->budget;

    if (!memory_budget_reserve(budget, bytes.length))
        return false;
    if (buffer_append(&stream->input, bytes) == 0)
        return true;
    memory_budget_release(budget, bytes.length);
    return false;
}

enum h2_error h2_body_receive(struct h2_stream *stream, struct str bytes)
{
    const struct request *request = &stream->x.request;
    uint64_t limit = request->tunnel ? 0 : request->body_limit;

    stream->received += bytes.length;
    stream->x.request.bytes += bytes.length;
    h2_wait_progress(&stream->body_wait, stream->session->clock->monotonic_ms, bytes.length);
    stream->continue_due = false;
    if (!stream->rejected && exceeds_length(stream))
        return H2_PROTOCOL_ERROR;
    if (stream->body_length == BODY_LENGTH_UNKNOWN && limit && stream->received > limit)
        h2_body_fail(stream, -EMSGSIZE);
    if (!is_discarded(stream) && keep_input(stream, bytes)) {
        wake_consumer(stream);
        return H2_NO_ERROR;
    }
    h2_body_release(stream->session, (uint32_t)bytes.length);
    h2_body_release_stream(stream, (uint32_t)bytes.length);
    if (!is_discarded(stream))
        h2_body_fail(stream, -ENOMEM);
    return H2_NO_ERROR;
}

enum h2_error h2_body_end(struct h2_stream *stream)
{
    uint64_t length = stream->body_length;

    if (!stream->rejected && length != BODY_LENGTH_UNKNOWN && stream->received != length)
        return H2_PROTOCOL_ERROR;
    stream->body_whole = true;
    wake_consumer(stream);
    return H2_NO_ERROR;
}

bool h2_body_drainable(const struct h2_stream *stream)
{
    uint64_t length = stream->body_length;

    if (stream->body_error || stream->continue_due)
        return false;
    return length == BODY_LENGTH_UNKNOWN || u64_sub_sat(length, stream->received) <= LIMIT_PIPELINE_DRAIN;
}

/* Drops unread bytes. Releases the connection's window for the bytes that were not pulled, and returns their number. */
static uint32_t drop_unread(struct h2_stream *stream)
{
    uint32_t unread = (uint32_t)(stream->input.length + size_sub_sat(stream->pulled_bytes.length, stream->pulled_at));

    free_buffers(stream);
    memory_budget_release(&stream->session->budget, unread);
    if (unread)
        h2_body_release(stream->session, unread);
    return unread;
}

void h2_body_drain(struct h2_stream *stream)
{
    stream->drained_from = stream->received;
    stream->request_body = (struct body){0}; /* the module that pulled has ended: its wake must not be called */
    set_awaited(stream, true);
    h2_body_release_stream(stream, drop_unread(stream));
}

void h2_body_finish(struct h2_stream *stream)
{
    set_awaited(stream, false);
    drop_unread(stream);
}
