/*
 * HTTP/2 on one connection (RFC 9113): frames are received, dispatched by type, and sent. Streams, bodies, responses
 * and priorities are in other files.
 */
#include "http/h2/session.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "http/h2/body.h"
#include "http/h2/control_frames.h"
#include "http/h2/deadline.h"
#include "http/h2/frame_log.h"
#include "http/h2/headers_frame.h"
#include "http/h2/output.h"
#include "http/h2/payload.h"
#include "http/h2/response.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"
#include "http/h2/timeout.h"

#include <errno.h>
#include <stdlib.h>

static struct h2_session *h2_of(struct session *session)
{
    return container_of(session, struct h2_session, session);
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113 3.4 */
#define PREFACE_LENGTH (sizeof preface - 1)

/* The server's part of the preface: SETTINGS, and the connection's window (RFC 9113 3.4). */
static void send_preface(struct h2_session *h2)
{
    unsigned count = h2->settings->http2.connect_protocol ? 5 : 4;
    char frame[H2_FRAME_HEAD + 5 * H2_SETTING_SIZE];
    char *at = h2_frame_write_head(frame, count * H2_SETTING_SIZE, H2_SETTINGS, 0, 0);

    at = h2_setting_write(at, H2_SETTINGS_MAX_CONCURRENT_STREAMS, h2->settings->http2.max_concurrent_streams);
    at = h2_setting_write(at, H2_SETTINGS_INITIAL_WINDOW_SIZE, h2->settings->http2.body_preread_size);
    at = h2_setting_write(at, H2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h2->settings->head_max);
    at = h2_setting_write(at, H2_SETTINGS_NO_RFC7540_PRIORITIES, 1);
    if (h2->settings->http2.connect_protocol)
        at = h2_setting_write(at, H2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1);
    h2_output_frame(h2, str_of(frame, (size_t)(at - frame)));
    h2_output_number(h2, H2_WINDOW_UPDATE, 0, LIMIT_H2_CONNECTION_WINDOW - H2_WINDOW_INITIAL);
}

static struct session *session_open(const struct session_settings *settings, const struct exchange_events *events,
                                    void *owner, const struct session_shared *shared)
{
    struct h2_session *h2 = malloc(sizeof(*h2));

    if (!h2)
        return NULL;
    *h2 = (struct h2_session){
        .session = {&protocol_http2},
        .deadline_ms = UINT64_MAX,
        .settings = settings,
        .events = events,
        .owner = owner,
        .pool = shared->arenas,
        .budget = {.parent = &shared->arenas->budget, .max = LIMIT_CONNECTION_MEMORY},
        .clock = shared->clock,
        .counters = shared->counters,
        .peer = {.initial_window = H2_WINDOW_INITIAL, .max_frame_size = H2_FRAME_SIZE},
        .window = H2_WINDOW_INITIAL,
        .body_window = settings->http2.body_preread_size,
        .wake_pending = true,
    };
    list_init(&h2->blocked);
    h2_schedule_init(&h2->schedule);
    h2_credit_init(&h2->credit, shared->clock->monotonic_ms);
    h2_receive_window_init(&h2->receive, LIMIT_H2_CONNECTION_WINDOW);
    send_preface(h2);
    return &h2->session;
}

static size_t consume_preface(struct h2_session *h2, struct str bytes)
{
    struct str due = str_of(preface + h2->preface_at, PREFACE_LENGTH - h2->preface_at);
    size_t length = due.length < bytes.length ? due.length : bytes.length;

    if (!str_equal(str_slice(bytes, 0, length), str_slice(due, 0, length)))
        h2_session_fail(h2, H2_PROTOCOL_ERROR);
    h2->preface_at += (uint8_t)length;
    return length;
}

/* The handlers by frame type. Frames of other types are ignored (RFC 9113 4.1). */
static void (*const handlers[])(struct h2_session *h2, struct h2_frame *frame) = {
    [H2_HEADERS] = h2_headers_received,
    [H2_PRIORITY] = h2_priority_received,
    [H2_RST_STREAM] = h2_rst_stream_received,
    [H2_SETTINGS] = h2_settings_received,
    [H2_PUSH_PROMISE] = h2_push_promise_received,
    [H2_PING] = h2_ping_received,
    [H2_GOAWAY] = h2_goaway_received,
    [H2_WINDOW_UPDATE] = h2_window_update_received,
    [H2_CONTINUATION] = h2_continuation_received,
    [H2_PRIORITY_UPDATE] = h2_priority_update_received,
};

/* The rules that depend on the frames before: SETTINGS first (3.4), nothing within a header block (4.3). */
static enum h2_error check_order(const struct h2_session *h2, const struct h2_frame *frame)
{
    if (!h2->settings_received && (frame->type != H2_SETTINGS || (frame->flags & H2_FLAG_ACK)))
        return H2_PROTOCOL_ERROR;
    if (h2->block.stream && (frame->type != H2_CONTINUATION || frame->stream != h2->block.stream))
        return H2_PROTOCOL_ERROR;
    if (!h2->block.stream && frame->type == H2_CONTINUATION)
        return H2_PROTOCOL_ERROR;
    return H2_NO_ERROR;
}

static void dispatch_frame(struct h2_session *h2, struct h2_frame *frame)
{
    h2_log_received(h2, frame);
    if (frame->type < sizeof handlers / sizeof handlers[0] && handlers[frame->type])
        handlers[frame->type](h2, frame);
    else
        h2_session_charge(h2, H2_EVENT_UNKNOWN);
}

/* Appends to the incomplete frame until it has `want` bytes. Returns the bytes taken. */
static size_t gather_frame(struct h2_session *h2, struct str bytes, size_t want)
{
    size_t missing = size_sub_sat(want, h2->input.length);
    struct str part = str_slice(bytes, 0, missing);

    if (buffer_append(&h2->input, part) != 0)
        h2_session_break(h2, -ENOMEM);
    return part.length;
}

/*
 * Dispatches a frame whose bytes were gathered. Takes the buffer from the session first, since events may end the
 * session.
 */
static void dispatch_gathered(struct h2_session *h2, struct h2_frame *frame)
{
    struct buffer input = h2->input;

    h2->input = (struct buffer){0};
    frame->payload = str_skip(buffer_str(&input), H2_FRAME_HEAD);
    dispatch_frame(h2, frame);
    buffer_finish(&input);
}

/* True while the rest of the preface, of a frame (except DATA), or of a header block is outstanding. */
static bool is_head_incomplete(const struct h2_session *h2)
{
    return h2->input.length || h2->block.stream || (h2->preface_at && !h2->settings_received);
}

/* Takes a frame, or a part of one. A frame that arrives whole is handled in place. */
static size_t consume_frame(struct h2_session *h2, struct str bytes)
{
    bool in_place = h2->input.length == 0 && bytes.length >= H2_FRAME_HEAD;
    size_t taken = in_place ? 0 : gather_frame(h2, bytes, H2_FRAME_HEAD);
    struct h2_frame frame;
    enum h2_error error;
    size_t length;

    if (!in_place && h2->input.length < H2_FRAME_HEAD)
        return taken;
    frame = h2_frame_parse_head(in_place ? bytes.data : h2->input.data);
    error = h2_frame_check(&frame);
    if (!error)
        error = check_order(h2, &frame);
    if (error) {
        h2_session_fail(h2, error);
        return bytes.length;
    }
    length = H2_FRAME_HEAD + frame.length;
    if (frame.type == H2_DATA) {
        buffer_finish(&h2->input);
        h2_log_received(h2, &frame);
        h2_payload_started(h2, &frame);
        return in_place ? H2_FRAME_HEAD : taken;
    }
    if (in_place && bytes.length >= length) {
        frame.payload = str_of(bytes.data + H2_FRAME_HEAD, frame.length);
        dispatch_frame(h2, &frame);
        return length;
    }
    taken += gather_frame(h2, str_skip(bytes, taken), length);
    if (h2->input.length == length)
        dispatch_gathered(h2, &frame);
    return taken;
}

static size_t session_consume(struct session *session, struct str bytes)
{
    struct h2_session *h2 = h2_of(session);
    size_t taken = 0;

    while (taken < bytes.length && !h2_session_over(h2) && !h2->input_ignored) {
        struct str rest = str_skip(bytes, taken);

        if (h2->preface_at < PREFACE_LENGTH)
            taken += consume_preface(h2, rest);
        else if (h2->data_left)
            taken += h2_payload_received(h2, rest);
        else
            taken += consume_frame(h2, rest);
        h2_deadline_head(h2, is_head_incomplete(h2));
    }
    return bytes.length;
}

static int produce_control(struct h2_session *h2, size_t room, struct chunk *out)
{
    struct str rest = str_skip(buffer_str(&h2->control), h2->control_at);

    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(rest, 0, room)};
    h2->control_at += out->bytes.length;
    return 1;
}

/* 1: control frames are queued; 0: none, and their buffer is freed. */
static int has_control(struct h2_session *h2)
{
    if (h2->control_at < h2->control.length)
        return 1;
    if (h2->control.length)
        buffer_finish(&h2->control);
    h2->control_at = 0;
    return 0;
}

static struct h2_stream *next_stream(struct h2_session *h2)
{
    struct h2_schedule_entry *entry = h2_schedule_next(&h2->schedule);

    return entry ? container_of(entry, struct h2_stream, schedule_entry) : NULL;
}

/* 1 with *out filled in; 0: the end; -EAGAIN, or an error. */
static int session_produce(struct session *session, unsigned accept, size_t room, struct chunk *out)
{
    struct h2_session *h2 = h2_of(session);
    struct h2_stream *stream;
    int result = 0;

    if (!h2->error)
        h2_response_chunk_consumed(h2);
    while (result == 0) {
        if (h2->error)
            return h2->error;
        if (!h2->sending && has_control(h2))
            return produce_control(h2, room, out);
        h2_shutdown_check(h2);
        stream = h2->sending;
        if (!stream && h2->shutdown == H2_OVER)
            return has_control(h2) ? produce_control(h2, room, out) : 0;
        if (!stream)
            stream = next_stream(h2);
        result = stream ? h2_response_produce(stream, accept, room, out) : -EAGAIN;
    }
    if (result == -EAGAIN)
        h2->wake_pending = true;
    return result;
}

static enum session_phase session_phase(const struct session *session)
{
    const struct h2_session *h2 = container_of(session, const struct h2_session, session);

    if (h2_session_over(h2))
        return SESSION_OVER;
    if (h2->head_incomplete)
        return SESSION_HEAD;
    if (h2->stream_count == 0)
        return h2->shutdown == H2_RUNNING ? SESSION_IDLE : SESSION_CLOSING;
    if (h2->schedule.ready || h2->sending)
        return SESSION_SENDING;
    if (!list_empty(&h2->blocked))
        return SESSION_BLOCKED;
    return h2->awaiting ? SESSION_BODY : SESSION_WAITING;
}

static uint64_t session_deadline(const struct session *session)
{
    return container_of(session, const struct h2_session, session)->deadline_ms;
}

/* The client closed its sending side: the session ends without completing the open streams. */
static void signal_peer_closed(struct h2_session *h2)
{
    h2->shutdown = H2_OVER;
    buffer_finish(&h2->input);
    h2_session_wake(h2);
}

static void session_signal(struct session *session, enum session_signal signal)
{
    struct h2_session *h2 = h2_of(session);

    switch (signal) {
    case SESSION_TIMEOUT: /* an idle connection */
        h2_session_fail(h2, H2_NO_ERROR);
        break;
    case SESSION_DEADLINE:
        h2_timeout_check(h2);
        break;
    case SESSION_PEER_CLOSED:
        signal_peer_closed(h2);
        break;
    case SESSION_DRAIN:
    case SESSION_RETIRE:
        h2_shutdown_start(h2);
        break;
    }
}

static void end_stream(struct h2_stream *stream, const void *unused)
{
    (void)unused;
    h2_stream_end(stream, true);
}

static void session_close(struct session *session)
{
    struct h2_session *h2 = h2_of(session);

    h2->shutdown = H2_OVER;
    h2->sending = NULL;
    h2_stream_each(h2, end_stream, NULL);
    h2_header_block_close(&h2->block);
    buffer_finish(&h2->input);
    buffer_finish(&h2->control);
    free(h2);
}

static const struct exchange *session_current(const struct session *session, unsigned *out_count)
{
    const struct h2_session *h2 = container_of(session, const struct h2_session, session);
    const struct h2_stream *newest = NULL;
    unsigned count = 0;

    for (size_t i = 0; i < H2_BUCKETS; i++) {
        for (const struct h2_stream *stream = h2->streams[i]; stream; stream = stream->next) {
            if (!stream->announced || stream->draining)
                continue;
            count++;
            if (!newest || stream->id > newest->id)
                newest = stream;
        }
    }
    *out_count = count;
    return newest ? &newest->x : NULL;
}

const struct protocol protocol_http2 = {
    .alpn = "h2",
    .open = session_open,
    .consume = session_consume,
    .produce = session_produce,
    .phase = session_phase,
    .current = session_current,
    .deadline = session_deadline,
    .signal = session_signal,
    .close = session_close,
};
