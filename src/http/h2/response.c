/*
 * Sends a response frame by frame. A DATA frame is its head, then a piece of a chunk of the body. Its length is fixed
 * before its head is sent: at most the windows, and at most the peer's frame size.
 */
#include "http/h2/response.h"

#include "base/limits.h"
#include "http/h2/body.h"
#include "http/h2/deadline.h"
#include "http/h2/field_write.h"
#include "http/h2/frame_log.h"
#include "http/h2/output.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"
#include "http/sendable.h"

#include <errno.h>

static int produce_chunk(struct h2_stream *stream, struct chunk *chunk)
{
    chunk->transfer = &stream->x.transfer;
    chunk->ends_turn = stream->session->schedule.count > 1 && !h2_stream_in_frame(stream);
    stream->x.response.bytes_sent += chunk_length(chunk);
    return 1;
}

static int produce_interims(struct h2_stream *stream, size_t room, struct chunk *out)
{
    struct str rest = str_skip(buffer_str(&stream->interims), stream->interims_at);

    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(rest, 0, room)};
    stream->interims_at += out->bytes.length;
    return produce_chunk(stream, out);
}

static int produce_pending(struct h2_stream *stream, size_t room, struct chunk *out)
{
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(stream->pending, 0, room)};
    stream->pending = str_skip(stream->pending, room);
    return produce_chunk(stream, out);
}

/* A file span of a frame is returned whole; `room` limits only CHUNK_BYTES. */
static int produce_payload(struct h2_stream *stream, size_t room, struct chunk *out)
{
    uint64_t length = stream->frame_left;

    *out = stream->part;
    switch (out->kind) {
    case CHUNK_BYTES:
        out->bytes = str_slice(out->bytes, 0, length < room ? (size_t)length : room);
        break;
    case CHUNK_FILE:
        out->file.run = out->file.length < UINT32_MAX ? (uint32_t)out->file.length : UINT32_MAX;
        out->file.length = length;
        break;
    case CHUNK_PIPE:
        out->pipe.length = (size_t)length;
        break;
    }
    length = chunk_length(out);
    chunk_advance(&stream->part, length);
    stream->frame_left -= (uint32_t)length;
    stream->x.response.body_bytes_sent += length;
    return produce_chunk(stream, out);
}

static enum h2_error abort_code(const struct h2_stream *stream)
{
    if (stream->x.request.tunnel)
        return H2_CANCEL; /* RFC 8441 5 */
    return stream->x.response.reset_code ? (enum h2_error)stream->x.response.reset_code : H2_INTERNAL_ERROR;
}

/* Aborts an incomplete response by RST_STREAM. */
static int abort_response(struct h2_stream *stream, struct str fault)
{
    if (fault.length)
        stream->x.response.fault = fault;
    h2_stream_reset(stream, abort_code(stream));
    return 0;
}

/* Starts the DATA frame of frame_left bytes: nothing else is sent before its end. */
static void begin_frame(struct h2_stream *stream, uint8_t flags)
{
    h2_frame_write_head(stream->head, stream->frame_left, H2_DATA, flags, stream->id);
    stream->pending = str_of(stream->head, sizeof stream->head);
    h2_log_sent(stream->session, stream->pending);
    stream->session->sending = stream;
}

/* Ends the body of unknown length: trailers, or an empty DATA frame. */
static int end_body(struct h2_stream *stream)
{
    struct response *response = &stream->x.response;
    struct h2_section section = {.headers = &response->trailers, .content_length = BODY_LENGTH_UNKNOWN};

    stream->stage = H2_STAGE_END;
    if (stream->x.request.tunnel) /* RFC 9113 8.5: only DATA */
        response->trailers.count = 0;
    while (headers_make_sendable(&response->trailers, &stream->x.arena, &response->fault) == -EINVAL)
        headers_remove(&response->trailers, response->fault);
    if (response->trailers.count > 0)
        return h2_response_write_section(stream, &section, true) == 0 ? 0 : abort_response(stream, STR(""));
    begin_frame(stream, H2_FLAG_END_STREAM);
    return 0;
}

/* Each frame of a file is a span of its own; the wire compares the rest of the file with ssl_ktls_threshold. */
static void announce_length(struct h2_stream *stream)
{
    uint64_t length = chunk_length(&stream->part);

    if (stream->part.kind != CHUNK_FILE)
        return;
    if (stream->rest != BODY_LENGTH_UNKNOWN && stream->rest > length)
        length = stream->rest;
    if (stream->part.file.whole < length)
        stream->part.file.whole = length;
}

/*
 * Pulls a chunk into `part`. 1: there is one; 0: there is none now (the stream waits, has ended, or its end is
 * pending).
 */
static int pull_part(struct h2_stream *stream, unsigned accept)
{
    struct body *body = stream->x.response.body;
    int result;

    do {
        result = body->ops->next(body, accept, H2_FRAME_PAYLOAD, &stream->part);
    } while (result > 0 && chunk_length(&stream->part) == 0);
    if (result <= 0)
        stream->part = (struct chunk){.kind = CHUNK_BYTES}; /* the body may have used it, see http/body.h */
    if (result == -EAGAIN) {
        h2_wait_progress(&stream->send_wait, stream->session->clock->monotonic_ms, 0); /* the body causes this delay */
        stream->response_waits = true;
        h2_stream_unready(stream);
        return 0;
    }
    if (result < 0)
        return abort_response(stream, STR(""));
    if (result == 0 && stream->rest != BODY_LENGTH_UNKNOWN)
        return abort_response(stream, STR("the body is shorter than Content-Length"));
    if (result == 0)
        return end_body(stream);
    if (stream->rest != BODY_LENGTH_UNKNOWN && chunk_length(&stream->part) > stream->rest)
        return abort_response(stream, STR("the body is longer than Content-Length"));
    announce_length(stream);
    return 1;
}

/* Without a window the stream leaves the schedule until WINDOW_UPDATE. */
static void wait_for_window(struct h2_stream *stream)
{
    h2_stream_unready(stream);
    list_push(&stream->session->blocked, &stream->blocked);
    h2_deadline_send(stream, true);
}

/*
 * True if a chunk may be pulled: there is a window for it, or its length is unknown, so that it may be the end of the
 * body, which needs none.
 */
static bool may_pull(const struct h2_stream *stream)
{
    return (stream->window > 0 && stream->session->window > 0) || stream->rest == BODY_LENGTH_UNKNOWN;
}

static uint32_t frame_length(const struct h2_stream *stream)
{
    uint64_t length = chunk_length(&stream->part);
    const uint64_t limits[] = {H2_FRAME_PAYLOAD, stream->x.settings->http2.chunk_size, (uint64_t)stream->window,
                               (uint64_t)stream->session->window};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i] < length)
            length = limits[i];
    }
    return (uint32_t)length;
}

static int begin_payload(struct h2_stream *stream, unsigned accept)
{
    struct h2_session *h2 = stream->session;
    bool last;

    if (chunk_length(&stream->part) == 0 && may_pull(stream) && pull_part(stream, accept) == 0)
        return 0;
    if (stream->window <= 0 || h2->window <= 0) {
        wait_for_window(stream);
        return 0;
    }
    stream->frame_left = frame_length(stream);
    h2_wait_progress(&stream->send_wait, h2->clock->monotonic_ms, stream->frame_left);
    stream->window -= (int32_t)stream->frame_left;
    h2->window -= (int32_t)stream->frame_left;
    if (stream->rest != BODY_LENGTH_UNKNOWN)
        stream->rest -= stream->frame_left;
    last = stream->rest == 0;
    if (last)
        stream->stage = H2_STAGE_END;
    if (stream->frame_left >= LIMIT_H2_SMALL)
        h2_credit_restore(&h2->credit, LIMIT_H2_CREDIT_PER_DATA);
    begin_frame(stream, last ? H2_FLAG_END_STREAM : 0);
    return 0;
}

/*
 * The rest of a request body is received and discarded if it is small; else RST_STREAM stops the client (RFC 9113
 * 8.1), once a PING has shown that it has received the response: some clients lose a response that arrives with
 * RST_STREAM.
 */
static void finish_response(struct h2_stream *stream)
{
    h2_credit_restore(&stream->session->credit, LIMIT_H2_CREDIT_PER_RESPONSE);
    if (stream->body_whole) {
        h2_stream_end(stream, false);
        return;
    }
    stream->reset_due = !h2_body_drainable(stream);
    h2_stream_drain(stream);
    if (stream->reset_due)
        h2_ping_send(stream->session, H2_PING_RESPONSE);
}

static void end_head(struct h2_stream *stream)
{
    stream->x.response.head_sent = true;
    stream->stage = stream->bodiless ? H2_STAGE_END : H2_STAGE_BODY;
}

/* 1 with bytes that are ready in *out; 0: there are none. */
static int produce_ready(struct h2_stream *stream, size_t room, struct chunk *out)
{
    if (stream->interims_at < stream->interims.length)
        return produce_interims(stream, room, out);
    if (stream->pending.length)
        return produce_pending(stream, room, out);
    return stream->frame_left ? produce_payload(stream, room, out) : 0;
}

/*
 * A complete response ends its stream at once, not at the next turn of the stream: the client may already have opened
 * another stream, which is counted against http2_max_concurrent_streams.
 */
void h2_response_chunk_consumed(struct h2_session *h2)
{
    struct h2_stream *stream = h2->sending;

    if (!stream || h2_stream_in_frame(stream))
        return;
    h2->sending = NULL;
    if (stream->cancelled_in_frame) {
        h2_stream_end(stream, true);
        return;
    }
    if (stream->stage == H2_STAGE_HEAD && !stream->failed)
        end_head(stream);
    if (h2_stream_response_produced(stream))
        finish_response(stream);
}

int h2_response_produce(struct h2_stream *stream, unsigned accept, size_t room, struct chunk *out)
{
    int result = produce_ready(stream, room, out);

    if (result > 0) {
        stream->session->sending = stream;
        return result;
    }
    if (stream->failed)
        return abort_response(stream, STR(""));
    if (stream->stage != H2_STAGE_REQUEST)
        return begin_payload(stream, accept);
    h2_stream_unready(stream); /* only an interim response was queued */
    return 0;
}
