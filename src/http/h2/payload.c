/*
 * Flow control counts the whole payload with its padding (RFC 9113 6.1), also for closed streams.
 */
#include "http/h2/payload.h"

#include "base/limits.h"
#include "http/h2/body.h"
#include "http/h2/output.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"

/* DATA for a stream that is not open. */
static void closed_stream_payload(struct h2_session *h2, uint32_t id)
{
    if (id % 2 == 0 || id > h2->last_stream) {
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    } else if (!h2_stream_recent(h2, id)) {
        h2_session_charge(h2, H2_EVENT_IGNORED);
        h2_stream_refuse(h2, id, H2_STREAM_CLOSED);
    }
}

/* The last byte of the frame was received. */
static void end_frame(struct h2_session *h2)
{
    struct h2_stream *stream = h2_stream_find(h2, h2->data_stream);
    enum h2_error error;

    if (!stream || !h2->data_ends_stream)
        return;
    error = h2_body_end(stream);
    if (error)
        h2_stream_fail(stream, error);
    else if (stream->draining)
        h2_stream_end(stream, false);
}

static void check_stream(struct h2_session *h2, const struct h2_frame *frame)
{
    struct h2_stream *stream = h2_stream_find(h2, frame->stream);

    if (!stream)
        closed_stream_payload(h2, frame->stream);
    else if (stream->body_whole)
        h2_stream_fail(stream, H2_STREAM_CLOSED);
    else if (!h2_receive_window_take(&stream->receive, frame->length))
        h2_stream_fail(stream, H2_FLOW_CONTROL_ERROR);
}

/* A frame of at least LIMIT_H2_SMALL bytes earns credit; every payload counts for the bandwidth measurement. */
static void account_payload(struct h2_session *h2, const struct h2_frame *frame)
{
    if (frame->length >= LIMIT_H2_SMALL)
        h2_credit_restore(&h2->credit, LIMIT_H2_CREDIT_PER_DATA);
    if (frame->length == 0 && !(frame->flags & H2_FLAG_END_STREAM))
        h2_session_charge(h2, H2_EVENT_EMPTY_DATA);
    if (frame->length && h2_bdp_received(&h2->bdp, frame->length))
        h2_ping_send(h2, H2_PING_BDP);
}

void h2_payload_started(struct h2_session *h2, const struct h2_frame *frame)
{
    h2->data_left = frame->length;
    h2->data_stream = frame->stream;
    h2->data_padding = 0;
    h2->data_padded = frame->flags & H2_FLAG_PADDED;
    h2->data_ends_stream = frame->flags & H2_FLAG_END_STREAM;
    if (h2->data_padded && frame->length == 0) {
        h2_session_fail(h2, H2_FRAME_SIZE_ERROR);
        return;
    }
    if (!h2_receive_window_take(&h2->receive, frame->length)) {
        h2_session_fail(h2, H2_FLOW_CONTROL_ERROR);
        return;
    }
    account_payload(h2, frame);
    check_stream(h2, frame);
    if (frame->length == 0 && !h2_session_over(h2))
        end_frame(h2);
}

/* Releases the windows for padding. */
static void discard_bytes(struct h2_session *h2, struct h2_stream *stream, uint32_t bytes)
{
    h2_body_release(h2, bytes);
    if (stream)
        h2_body_release_stream(stream, bytes);
}

static void read_padding_length(struct h2_session *h2, struct h2_stream *stream, char byte)
{
    h2->data_padded = false;
    h2->data_padding = (unsigned char)byte;
    h2->data_left--;
    discard_bytes(h2, stream, 1);
    if (h2->data_padding > h2->data_left)
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    else if (h2->data_padding == h2->data_left && !h2->data_ends_stream)
        h2_session_charge(h2, H2_EVENT_EMPTY_DATA);
}

static void deliver_payload(struct h2_session *h2, struct h2_stream *stream, struct str part)
{
    enum h2_error error;

    if (!stream) {
        h2_body_release(h2, (uint32_t)part.length);
        return;
    }
    error = h2_body_receive(stream, part);
    if (error)
        h2_stream_fail(stream, error);
    else if (stream->draining && stream->received - stream->drained_from > LIMIT_PIPELINE_DRAIN)
        h2_stream_reset(stream, H2_NO_ERROR);
}

/* Consumes payload, then padding. Returns the number of bytes consumed. */
static size_t consume_payload(struct h2_session *h2, struct h2_stream *stream, struct str bytes)
{
    bool padding = h2->data_left == h2->data_padding;
    struct str part = str_slice(bytes, 0, padding ? h2->data_left : h2->data_left - h2->data_padding);

    h2->data_left -= (uint32_t)part.length;
    if (!padding) {
        deliver_payload(h2, stream, part);
        return part.length;
    }
    h2->data_padding = h2->data_left;
    discard_bytes(h2, stream, (uint32_t)part.length);
    return part.length;
}

size_t h2_payload_received(struct h2_session *h2, struct str bytes)
{
    struct h2_stream *stream = h2_stream_find(h2, h2->data_stream);
    size_t consumed = 1;

    if (h2->data_padded)
        read_padding_length(h2, stream, bytes.data[0]);
    else
        consumed = consume_payload(h2, stream, bytes);
    if (h2->data_left == 0 && !h2_session_over(h2))
        end_frame(h2);
    return consumed;
}
