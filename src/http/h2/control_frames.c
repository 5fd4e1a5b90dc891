/*
 * Frames for closed streams are charged (abuse.h) and ignored: the client may have sent them before it received the
 * RST_STREAM.
 */
#include "http/h2/control_frames.h"

#include "base/limits.h"
#include "http/h2/output.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"

/* A frame for a stream that no HEADERS has opened is a connection error (RFC 9113 5.1). */
static bool is_idle(const struct h2_session *h2, uint32_t id)
{
    return id % 2 == 0 || id > h2->last_stream;
}

static void change_window(struct h2_stream *stream, const void *argument)
{
    int64_t change = *(const int64_t *)argument;
    bool blocked = !list_empty(&stream->blocked);

    if (!h2_window_add(&stream->window, change))
        h2_session_fail(stream->session, H2_FLOW_CONTROL_ERROR);
    else if (blocked && stream->window > 0)
        h2_stream_ready(stream);
}

void h2_settings_received(struct h2_session *h2, struct h2_frame *frame)
{
    uint32_t before = h2->peer.initial_window;
    char ack[H2_FRAME_HEAD];
    enum h2_error error;
    int64_t change;

    h2->settings_received = true;
    if (frame->flags & H2_FLAG_ACK) {
        h2_session_charge(h2, H2_EVENT_IGNORED);
        return;
    }
    h2_session_charge(h2, H2_EVENT_SETTINGS);
    error = h2_settings_apply(&h2->peer, frame->payload);
    if (error) {
        h2_session_fail(h2, error);
        return;
    }
    change = (int64_t)h2->peer.initial_window - before; /* of open streams, too (RFC 9113 6.9.2) */
    if (change)
        h2_stream_each(h2, change_window, &change);
    h2_frame_write_head(ack, 0, H2_SETTINGS, H2_FLAG_ACK, 0);
    h2_output_frame(h2, str_of(ack, sizeof ack));
}

/* The measured bandwidth-delay product sets the size of receive windows from now on. */
static void window_measured(struct h2_session *h2)
{
    h2->body_window = h2_bdp_window(&h2->bdp, h2->body_window, LIMIT_H2_WINDOW);
    h2_receive_window_resize(&h2->receive, h2->body_window);
}

static void reset_answered(struct h2_stream *stream, const void *unused)
{
    (void)unused;
    if (stream->reset_due)
        h2_stream_reset(stream, H2_NO_ERROR);
}

/* The client has received the early responses sent before the PING: resets the streams that wait for this. */
static void response_acknowledged(struct h2_session *h2)
{
    h2_session_charge(h2, H2_EVENT_IGNORED);
    h2_stream_each(h2, reset_answered, NULL);
}

void h2_ping_received(struct h2_session *h2, struct h2_frame *frame)
{
    char reply[H2_PING_FRAME];

    if (!(frame->flags & H2_FLAG_ACK)) {
        h2_session_charge(h2, H2_EVENT_PING);
        h2_frame_write_ping(reply, H2_FLAG_ACK, frame->payload.data);
        h2_output_frame(h2, str_of(reply, sizeof reply));
    } else if (str_equal(frame->payload, STR(H2_PING_BDP)) && h2->bdp.measuring) {
        window_measured(h2);
    } else if (str_equal(frame->payload, STR(H2_PING_SHUTDOWN))) {
        h2_shutdown_acknowledged(h2);
        h2_session_charge(h2, H2_EVENT_IGNORED);
    } else if (str_equal(frame->payload, STR(H2_PING_RESPONSE))) {
        response_acknowledged(h2);
    } else {
        h2_session_charge(h2, H2_EVENT_IGNORED);
    }
}

void h2_goaway_received(struct h2_session *h2, struct h2_frame *frame)
{
    /* The client's last stream identifier concerns pushed streams, and there are none. */
    h2_session_charge(h2, H2_EVENT_IGNORED);
}

static void widen_connection(struct h2_session *h2, uint32_t increment)
{
    struct list *next;

    if (!h2_window_add(&h2->window, increment)) {
        h2_session_fail(h2, H2_FLOW_CONTROL_ERROR);
        return;
    }
    for (struct list *link = h2->blocked.next; h2->window > 0 && link != &h2->blocked; link = next) {
        struct h2_stream *stream = container_of(link, struct h2_stream, blocked);

        next = link->next;
        if (stream->window > 0)
            h2_stream_ready(stream);
    }
}

static void widen_stream(struct h2_stream *stream, uint32_t increment)
{
    if (!h2_window_add(&stream->window, increment))
        h2_stream_fail(stream, H2_FLOW_CONTROL_ERROR);
    else if (!list_empty(&stream->blocked) && stream->window > 0 && stream->session->window > 0)
        h2_stream_ready(stream);
}

void h2_window_update_received(struct h2_session *h2, struct h2_frame *frame)
{
    uint32_t increment = h2_read_u32(frame->payload.data) & H2_WINDOW_MAX;
    struct h2_stream *stream = frame->stream ? h2_stream_find(h2, frame->stream) : NULL;

    if (increment < LIMIT_H2_SMALL || (frame->stream && !stream))
        h2_session_charge(h2, H2_EVENT_WINDOW_UPDATE);
    if (frame->stream && is_idle(h2, frame->stream))
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    else if (increment == 0 && stream)
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
    else if (increment == 0 && !frame->stream)
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    else if (!frame->stream)
        widen_connection(h2, increment);
    else if (stream)
        widen_stream(stream, increment);
}

void h2_rst_stream_received(struct h2_session *h2, struct h2_frame *frame)
{
    struct h2_stream *stream = h2_stream_find(h2, frame->stream);

    if (is_idle(h2, frame->stream)) {
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
        return;
    }
    h2_session_charge(h2, stream ? H2_EVENT_CLIENT_RESET : H2_EVENT_IGNORED);
    h2_stream_clear_recent(h2, frame->stream);
    if (!stream)
        return;
    protocol_count_error(h2->counters->h2_resets_received, h2_read_u32(frame->payload.data));
    h2_stream_end(stream, true);
}

void h2_priority_received(struct h2_session *h2, struct h2_frame *frame)
{
    struct h2_stream *stream = h2_stream_find(h2, frame->stream);

    h2_session_charge(h2, H2_EVENT_PRIORITY);
    if ((h2_read_u32(frame->payload.data) & H2_STREAM_MAX) != frame->stream)
        return; /* the tree of RFC 7540 is not used (RFC 9113 5.3.2) */
    if (stream)
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
    else if (is_idle(h2, frame->stream))
        h2_session_fail(h2, H2_PROTOCOL_ERROR); /* RST_STREAM must not be sent (RFC 9113 6.4) */
}

void h2_priority_update_received(struct h2_session *h2, struct h2_frame *frame)
{
    uint32_t id = h2_read_u32(frame->payload.data) & H2_STREAM_MAX;
    struct h2_stream *stream = h2_stream_find(h2, id);
    struct h2_priority priority = {.urgency = H2_URGENCY_DEFAULT};

    h2_session_charge(h2, H2_EVENT_PRIORITY);
    if (id % 2 == 0)
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    if (id % 2 == 0 || !stream)
        return;
    h2_priority_parse(&priority, str_skip(frame->payload, 4));
    h2_schedule_change(&h2->schedule, &stream->schedule_entry, priority);
}

void h2_push_promise_received(struct h2_session *h2, struct h2_frame *frame)
{
    h2_session_fail(h2, H2_PROTOCOL_ERROR);
}
