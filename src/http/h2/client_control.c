/*
 * Received frames that control a connection or a stream (RFC 9113 6).
 */
#include "http/h2/client_private.h"

/* Streams that waited for a window may send. */
static void change_window(struct h2_client_stream *stream, const void *argument)
{
    int64_t change = *(const int64_t *)argument;
    bool was_empty = stream->window <= 0;

    if (!h2_window_add(&stream->window, change))
        h2_client_fail(stream->session, H2_FLOW_CONTROL_ERROR, "a window above the maximum");
    else if (was_empty && stream->window > 0)
        h2_client_ready(stream);
}

void h2_client_settings_received(struct h2_client_session *session, struct h2_frame *frame)
{
    uint32_t before = session->peer.initial_window;
    char ack[H2_FRAME_HEAD];
    enum h2_error error;
    int64_t change;

    session->settings_received = true;
    if (frame->flags & H2_FLAG_ACK) {
        h2_client_charge(session, H2_EVENT_IGNORED);
        return;
    }
    h2_client_charge(session, H2_EVENT_SETTINGS);
    error = h2_settings_apply(&session->peer, frame->payload);
    if (!error && session->peer.push) /* RFC 9113 6.5.2 */
        error = H2_PROTOCOL_ERROR;
    if (error) {
        h2_client_fail(session, error, "invalid SETTINGS");
        return;
    }
    change = (int64_t)session->peer.initial_window - before; /* of open streams, too (RFC 9113 6.9.2) */
    if (change)
        h2_client_each(session, change_window, &change);
    h2_frame_write_head(ack, 0, H2_SETTINGS, H2_FLAG_ACK, 0);
    h2_client_output(session, str_of(ack, sizeof ack));
}

void h2_client_ping_received(struct h2_client_session *session, struct h2_frame *frame)
{
    char reply[H2_PING_FRAME];

    if (frame->flags & H2_FLAG_ACK) {
        h2_client_charge(session, H2_EVENT_IGNORED);
        return;
    }
    h2_client_charge(session, H2_EVENT_PING);
    h2_frame_write_ping(reply, H2_FLAG_ACK, frame->payload.data);
    h2_client_output(session, str_of(reply, sizeof reply));
}

static void refuse_later(struct h2_client_stream *stream, const void *argument)
{
    uint32_t last = *(const uint32_t *)argument;

    if (stream->id > last)
        h2_client_refused(stream, H2_REFUSED_STREAM);
}

/* Streams above the last identifier were not processed (RFC 9113 6.8); the others continue. */
void h2_client_goaway_received(struct h2_client_session *session, struct h2_frame *frame)
{
    uint32_t last = h2_read_u32(frame->payload.data) & H2_STREAM_MAX;

    h2_client_charge(session, H2_EVENT_SETTINGS);
    session->going_away = true;
    h2_client_each(session, refuse_later, &last);
}

static void widen_connection(struct h2_client_session *session, uint32_t increment)
{
    struct list *link;

    if (!h2_window_add(&session->window, increment)) {
        h2_client_fail(session, H2_FLOW_CONTROL_ERROR, "a window above the maximum");
        return;
    }
    while (session->window > 0 && (link = list_pop(&session->blocked)) != NULL)
        h2_client_ready(container_of(link, struct h2_client_stream, send_link));
}

static void widen_stream(struct h2_client_stream *stream, uint32_t increment)
{
    bool was_empty = stream->window <= 0;

    if (!h2_window_add(&stream->window, increment))
        h2_client_stream_fail(stream, H2_FLOW_CONTROL_ERROR, "a window above the maximum");
    else if (was_empty && stream->window > 0)
        h2_client_ready(stream);
}

void h2_client_window_update_received(struct h2_client_session *session, struct h2_frame *frame)
{
    uint32_t increment = h2_read_u32(frame->payload.data) & H2_WINDOW_MAX;
    struct h2_client_stream *stream = h2_client_find(session, frame->stream);

    if (increment < LIMIT_H2_SMALL)
        h2_client_charge(session, H2_EVENT_WINDOW_UPDATE);
    if (session->error)
        return;
    if (increment == 0 && !stream)
        h2_client_fail(session, H2_PROTOCOL_ERROR, "a window increment of 0");
    else if (increment == 0)
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, "a window increment of 0");
    else if (frame->stream == 0)
        widen_connection(session, increment);
    else if (stream)
        widen_stream(stream, increment);
    else if (h2_client_is_idle(session, frame->stream))
        h2_client_fail(session, H2_PROTOCOL_ERROR, "a window of a stream that is not open");
}

/* After the whole response, NO_ERROR stops the rest of the request body (RFC 9113 8.1). */
void h2_client_rst_stream_received(struct h2_client_session *session, struct h2_frame *frame)
{
    uint32_t code = h2_read_u32(frame->payload.data);
    struct h2_client_stream *stream = h2_client_find(session, frame->stream);

    if (!stream && h2_client_is_idle(session, frame->stream)) {
        h2_client_fail(session, H2_PROTOCOL_ERROR, "a reset of a stream that is not open");
        return;
    }
    if (!stream) {
        h2_client_charge(session, H2_EVENT_IGNORED);
        return;
    }
    h2_client_charge(session, H2_EVENT_PRIORITY);
    if (code == H2_REFUSED_STREAM && !stream->head_seen) {
        h2_client_refused(stream, H2_REFUSED_STREAM);
        return;
    }
    stream->code = code < H2_ERRORS ? (enum h2_error)code : H2_INTERNAL_ERROR;
    h2_client_close(stream, H2_CLIENT_RESET);
}

void h2_client_push_promise_received(struct h2_client_session *session, struct h2_frame *frame)
{
    (void)frame;
    h2_client_fail(session, H2_PROTOCOL_ERROR, "PUSH_PROMISE although pushes are disabled");
}

void h2_client_priority_received(struct h2_client_session *session, struct h2_frame *frame)
{
    (void)frame;
    h2_client_charge(session, H2_EVENT_PRIORITY);
}
