/*
 * The connection: frames are received and dispatched by type; queued frames are sent before those of streams.
 */
#include "http/h2/client_private.h"

#include <errno.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113 3.4 */

static void send_preface(struct h2_client_session *session)
{
    char frame[H2_FRAME_HEAD + 3 * H2_SETTING_SIZE];
    char *at = h2_frame_write_head(frame, sizeof frame - H2_FRAME_HEAD, H2_SETTINGS, 0, 0);

    at = h2_setting_write(at, H2_SETTINGS_ENABLE_PUSH, 0);
    at = h2_setting_write(at, H2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_H2_UPSTREAM_WINDOW);
    h2_setting_write(at, H2_SETTINGS_NO_RFC7540_PRIORITIES, 1);
    h2_client_output(session, str_of(preface, sizeof preface - 1));
    h2_client_output(session, str_of(frame, sizeof frame));
    h2_client_output_number(session, H2_WINDOW_UPDATE, 0, LIMIT_H2_WINDOW - H2_WINDOW_INITIAL);
}

void h2_client_session_init(struct h2_client_session *session, void (*wake)(void *owner), void *owner,
                            const struct clock *clock)
{
    *session = (struct h2_client_session){
        .wake = wake,
        .owner = owner,
        .clock = clock,
        .peer = {.initial_window = H2_WINDOW_INITIAL, .max_frame_size = H2_FRAME_SIZE, .max_streams = UINT32_MAX},
        .window = H2_WINDOW_INITIAL,
        .next_id = 1,
    };
    for (unsigned i = 0; i < H2_CLIENT_BUCKETS; i++)
        list_init(&session->streams[i]);
    list_init(&session->ready);
    list_init(&session->blocked);
    list_init(&session->updated);
    h2_credit_init(&session->credit, clock->monotonic_ms);
    h2_receive_window_init(&session->receive, LIMIT_H2_WINDOW);
    send_preface(session);
}

void h2_client_session_finish(struct h2_client_session *session)
{
    h2_header_block_close(&session->block);
    h2_frame_reader_finish(&session->reader);
    buffer_finish(&session->output);
}

/* The handlers by frame type. Frames of other types are ignored (RFC 9113 4.1). */
static void (*const handlers[])(struct h2_client_session *session, struct h2_frame *frame) = {
    [H2_DATA] = h2_client_payload_received,
    [H2_HEADERS] = h2_client_headers_received,
    [H2_PRIORITY] = h2_client_priority_received,
    [H2_RST_STREAM] = h2_client_rst_stream_received,
    [H2_SETTINGS] = h2_client_settings_received,
    [H2_PUSH_PROMISE] = h2_client_push_promise_received,
    [H2_PING] = h2_client_ping_received,
    [H2_GOAWAY] = h2_client_goaway_received,
    [H2_WINDOW_UPDATE] = h2_client_window_update_received,
    [H2_CONTINUATION] = h2_client_continuation_received,
};

/* The rules that depend on the frames before: SETTINGS first (3.4), nothing within a header block (4.3). */
static bool is_in_order(const struct h2_client_session *session, const struct h2_frame *frame)
{
    if (!session->settings_received && (frame->type != H2_SETTINGS || (frame->flags & H2_FLAG_ACK)))
        return false;
    if (session->block.stream)
        return frame->type == H2_CONTINUATION && frame->stream == session->block.stream;
    return frame->type != H2_CONTINUATION;
}

static void dispatch_frame(struct h2_client_session *session, struct h2_frame *frame)
{
    if (!is_in_order(session, frame))
        h2_client_fail(session, H2_PROTOCOL_ERROR, "a frame out of order");
    else if (frame->type < sizeof handlers / sizeof handlers[0] && handlers[frame->type])
        handlers[frame->type](session, frame);
    else
        h2_client_charge(session, H2_EVENT_UNKNOWN);
}

int h2_client_session_consume(struct h2_client_session *session, struct str bytes)
{
    while (!session->error) {
        struct h2_frame frame;
        enum h2_error code;
        int result = h2_frame_read(&session->reader, &bytes, &frame, &code);

        if (result == 1)
            dispatch_frame(session, &frame);
        else if (result == -EPROTO)
            h2_client_fail(session, code, "an invalid frame");
        else if (result < 0)
            session->error = result;
        else
            break;
    }
    return session->error;
}

static int produce_output(struct h2_client_session *session, size_t room, struct str out_parts[2])
{
    out_parts[0] = str_slice(str_skip(buffer_str(&session->output), session->output_at), 0, room);
    out_parts[1] = STR("");
    session->output_at += out_parts[0].length;
    return 1;
}

int h2_client_session_produce(struct h2_client_session *session, size_t room, struct str out_parts[2])
{
    int result = 0;

    while (result == 0) {
        if (session->output_at < session->output.length)
            return produce_output(session, room, out_parts);
        buffer_finish(&session->output);
        session->output_at = 0;
        if (session->error == -ENOMEM)
            return -ENOMEM;
        if (session->error || list_empty(&session->ready)) {
            session->wake_pending = true;
            return -EAGAIN;
        }
        result = h2_client_send(container_of(session->ready.next, struct h2_client_stream, send_link), room, out_parts);
    }
    if (result < 0)
        session->error = result;
    return result;
}

struct h2_client_stream *h2_client_session_next_updated(struct h2_client_session *session)
{
    struct list *link = list_pop(&session->updated);

    return link ? container_of(link, struct h2_client_stream, updated) : NULL;
}

unsigned h2_client_session_capacity(const struct h2_client_session *session)
{
    uint32_t max = session->peer.max_streams < LIMIT_H2_UPSTREAM_STREAMS ? session->peer.max_streams
                                                                          : LIMIT_H2_UPSTREAM_STREAMS;

    if (session->error || session->going_away || session->next_id > H2_STREAM_MAX - 2 * LIMIT_H2_UPSTREAM_STREAMS ||
        session->stream_count >= max)
        return 0;
    return max - session->stream_count;
}
