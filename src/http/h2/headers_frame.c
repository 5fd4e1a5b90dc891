/*
 * The block of a refused stream is decoded as well, because the connection has one decoder table.
 */
#include "http/h2/headers_frame.h"

#include "http/h1_frame.h"
#include "http/h2/body.h"
#include "http/h2/output.h"
#include "http/h2/response.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"

#include <errno.h>

static void field_decoded(void *owner, struct str name, struct str value)
{
    struct h2_session *h2 = owner;

    if (h2->receiving)
        h2_request_field(&h2->reader, name, value);
}

/* RFC 9218 5: the client's field; PRIORITY_UPDATE may change it later. */
static void read_priority(struct h2_stream *stream)
{
    struct h2_priority priority = stream->schedule_entry.priority;

    h2_priority_parse(&priority, headers_value(&stream->x.request.headers, STR("priority")));
    h2_schedule_change(&stream->session->schedule, &stream->schedule_entry, priority);
}

/* Calls `begun`, or `rejected` if `status` (of the rejection) is not 0. */
static void announce_request(struct h2_stream *stream, int status)
{
    struct h2_session *h2 = stream->session;

    stream->announced = true;
    stream->rejected = status != 0;
    stream->body_length = stream->x.request.tunnel ? BODY_LENGTH_UNKNOWN : stream->x.request.content_length;
    h2->last_accepted = stream->id;
    if (++h2->requests >= h2->settings->keepalive_requests || !h2->settings->keepalive)
        h2_shutdown_start(h2);
    if (status) {
        h2->events->rejected(h2->owner, &stream->x, status);
        return;
    }
    read_priority(stream);
    if (!stream->body_whole)
        h2_body_open(stream);
    h2->events->begun(h2->owner, &stream->x);
}

static void request_complete(struct h2_stream *stream)
{
    struct h2_session *h2 = stream->session;
    int result;

    stream->body_whole = h2->block_ends_stream;
    result = h2_request_finish(&h2->reader, h2->block_ends_stream);
    if (result >= 0)
        announce_request(stream, result);
    else if (result == -EBADMSG)
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
    else
        h2_stream_reset(stream, H2_INTERNAL_ERROR);
}

static void trailers_complete(struct h2_stream *stream)
{
    enum h2_error error = H2_PROTOCOL_ERROR;

    h1_remove_forbidden_trailers(&stream->x.request.trailers);
    if (h2_trailers_finish(&stream->session->reader) == 0)
        error = h2_body_end(stream);
    if (error)
        h2_stream_fail(stream, error);
    else if (stream->draining)
        h2_stream_end(stream, false);
}

static void block_complete(struct h2_session *h2)
{
    struct h2_stream *stream = h2->receiving;

    h2->receiving = NULL;
    if (!stream)
        return;
    if (stream->announced)
        trailers_complete(stream);
    else
        request_complete(stream);
}

static void decode_fragment(struct h2_session *h2, struct str fragment, bool last)
{
    enum h2_error error = h2_header_block_decode(&h2->block, fragment, last, field_decoded, h2);

    if (error)
        h2_session_fail(h2, error);
    else if (last)
        block_complete(h2);
}

static void begin_section(struct h2_session *h2, struct h2_stream *stream, bool trailers)
{
    h2->receiving = stream;
    h2->reader = h2_request_start(&stream->x, stream->x.settings, trailers);
}

/* A second section of an open stream: its trailers, which end the stream (RFC 9113 8.1). */
static void begin_trailers(struct h2_session *h2, struct h2_stream *stream, const struct h2_frame *frame)
{
    if (stream->body_whole)
        h2_session_fail(h2, H2_STREAM_CLOSED);
    else if (!(frame->flags & H2_FLAG_END_STREAM) || stream->x.request.tunnel) /* RFC 9113 8.5: only DATA */
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
    else
        begin_section(h2, stream, true);
}

/* A section of a closed stream: an error, unless the server has just reset the stream. */
static void begin_closed(struct h2_session *h2, const struct h2_frame *frame)
{
    if (!h2_stream_recent(h2, frame->stream))
        h2_session_fail(h2, H2_STREAM_CLOSED);
    else
        h2_session_charge(h2, H2_EVENT_IGNORED);
}

static void begin_request(struct h2_session *h2, const struct h2_frame *frame)
{
    struct h2_stream *stream;

    h2->last_stream = frame->stream;
    if (h2->shutdown == H2_LAST_STREAM) {
        /* GOAWAY has informed the client that the stream is not processed (RFC 9113 6.8). */
        h2_session_charge(h2, H2_EVENT_IGNORED);
        return;
    }
    if (h2_stream_open_count(h2) >= h2->settings->http2.max_concurrent_streams) {
        h2_session_charge(h2, H2_EVENT_SERVER_RESET);
        h2_stream_refuse(h2, frame->stream, H2_REFUSED_STREAM);
        return;
    }
    stream = h2_stream_create(h2, frame->stream);
    if (!stream) {
        h2_stream_refuse(h2, frame->stream, H2_REFUSED_STREAM);
        return;
    }
    stream->x.ops = &h2_exchange_ops;
    begin_section(h2, stream, false);
}

static void begin_block(struct h2_session *h2, const struct h2_frame *frame)
{
    struct h2_stream *stream = h2_stream_find(h2, frame->stream);

    h2->receiving = NULL;
    h2->block_ends_stream = frame->flags & H2_FLAG_END_STREAM;
    if (stream)
        begin_trailers(h2, stream, frame);
    else if (frame->stream % 2 == 0)
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    else if (frame->stream <= h2->last_stream)
        begin_closed(h2, frame);
    else
        begin_request(h2, frame);
}

void h2_headers_received(struct h2_session *h2, struct h2_frame *frame)
{
    uint32_t depends;
    enum h2_error error = h2_frame_unpad(frame, &depends);

    if (!error)
        error = h2_header_block_start(&h2->block, frame->stream);
    if (error) {
        h2_session_fail(h2, error);
        return;
    }
    begin_block(h2, frame);
    if (h2->receiving && depends == frame->stream) /* RFC 7540 5.3.1 */
        h2_stream_fail(h2->receiving, H2_PROTOCOL_ERROR);
    if (!h2_session_over(h2))
        decode_fragment(h2, frame->payload, frame->flags & H2_FLAG_END_HEADERS);
}

void h2_continuation_received(struct h2_session *h2, struct h2_frame *frame)
{
    h2_session_charge(h2, H2_EVENT_CONTINUATION);
    if (!h2_session_over(h2))
        decode_fragment(h2, frame->payload, frame->flags & H2_FLAG_END_HEADERS);
}
