/*
 * Sends requests: HEADERS, DATA as the body is pulled and the windows permit, trailers.
 */
#include "http/h2/client_private.h"

#include <errno.h>

/* Writes a section to the output. 0 or -ENOMEM. */
static int write_section(struct h2_client_stream *stream, const struct h2_section *section, bool end_stream)
{
    struct h2_client_session *session = stream->session;
    uint32_t max = session->peer.max_frame_size;
    char *at, *end;

    if (buffer_reserve(&session->output, h2_section_bound(section, max)) < 0)
        return -ENOMEM;
    at = session->output.data + session->output.length;
    end = h2_section_write(at, section, max, stream->id, end_stream);
    session->output.length += (size_t)(end - at);
    return 0;
}

/* The request is complete. */
static void end_sending(struct h2_client_stream *stream)
{
    stream->stage = H2_CLIENT_SENT;
    h2_client_unready(stream);
    h2_client_stream_updated(stream);
    if (stream->end != H2_CLIENT_OPEN) /* closed in both directions */
        list_remove(&stream->link);
}

static int send_head(struct h2_client_stream *stream)
{
    struct h2_client_session *session = stream->session;
    const struct h2_client_request *request = stream->request;
    struct h2_section section = {
        .request = &request->pseudo,
        .headers = request->headers,
        .content_length = request->send_content_length ? request->content_length : BODY_LENGTH_UNKNOWN,
    };

    stream->id = session->next_id;
    session->next_id += 2;
    list_push(&session->streams[stream->id / 2 % H2_CLIENT_BUCKETS], &stream->link);
    stream->stage = H2_CLIENT_BODY;
    if (request->content_length == 0)
        end_sending(stream);
    else
        h2_client_ready(stream); /* after the other streams */
    return write_section(stream, &section, request->content_length == 0);
}

static void stop_sending(struct h2_client_stream *stream, int error)
{
    h2_client_unready(stream);
    if (error != -EAGAIN)
        stream->body_error = error;
    h2_client_stream_updated(stream);
}

/* The body has ended: an empty DATA frame, or trailers. */
static int end_body(struct h2_client_stream *stream)
{
    const struct headers *trailers = stream->request->trailers;
    char frame[H2_FRAME_HEAD];

    if (stream->request->content_length != BODY_LENGTH_UNKNOWN) { /* shorter than announced */
        stop_sending(stream, -EPROTO);
        return 0;
    }
    end_sending(stream);
    if (trailers && trailers->count)
        return write_section(
            stream, &(struct h2_section){.headers = trailers, .content_length = BODY_LENGTH_UNKNOWN}, true);
    h2_frame_write_head(frame, 0, H2_DATA, H2_FLAG_END_STREAM, stream->id);
    h2_client_output(stream->session, str_of(frame, sizeof frame));
    return 0;
}

/* Without a window, a body of unknown length is pulled once, since its end needs no window. */
static bool may_pull(const struct h2_client_stream *stream)
{
    return (stream->window > 0 && stream->session->window > 0) ||
           stream->request->content_length == BODY_LENGTH_UNKNOWN;
}

/* Pulls the next part. 1: there is one; 0: none for now, or the body has ended; -ENOMEM. */
static int pull_part(struct h2_client_stream *stream)
{
    struct chunk chunk;
    int result = stream->next(stream->owner, H2_FRAME_SIZE, &chunk);

    if (result == 0)
        return end_body(stream);
    if (result < 0) {
        stop_sending(stream, result);
        return 0;
    }
    stream->part = chunk.bytes;
    return 1;
}

/* Payload bytes of the next frame; 0: a window is empty. */
static size_t payload_length(const struct h2_client_stream *stream)
{
    const struct h2_client_session *session = stream->session;
    int32_t window = stream->window < session->window ? stream->window : session->window;
    size_t max = stream->part.length < H2_FRAME_SIZE ? stream->part.length : H2_FRAME_SIZE;

    return window <= 0 ? 0 : (size_t)window < max ? (size_t)window : max;
}

/* The stream waits for WINDOW_UPDATE. */
static void stream_block(struct h2_client_stream *stream)
{
    h2_client_unready(stream);
    if (stream->window > 0)
        list_push(&stream->session->blocked, &stream->send_link);
    h2_client_stream_updated(stream);
}

/* Returns a DATA frame directly, or copies it to the output if `room` is too small. */
static int produce_frame(struct h2_client_session *session, struct str head, struct str payload, size_t room,
                      struct str out_parts[2])
{
    if (head.length + payload.length > room) {
        if (buffer_append(&session->output, head) < 0 || buffer_append(&session->output, payload) < 0)
            return -ENOMEM;
        return 0;
    }
    out_parts[0] = head;
    out_parts[1] = payload;
    return 1;
}

static int send_payload(struct h2_client_stream *stream, size_t length, size_t room, struct str out_parts[2])
{
    struct h2_client_session *session = stream->session;
    struct str payload = str_slice(stream->part, 0, length);
    bool last;

    stream->part = str_skip(stream->part, length);
    stream->window -= (int32_t)length;
    session->window -= (int32_t)length;
    if (stream->left != BODY_LENGTH_UNKNOWN)
        stream->left -= length < stream->left ? length : stream->left;
    last = stream->left == 0;
    h2_frame_write_head(session->data_head, length, H2_DATA, last ? H2_FLAG_END_STREAM : 0, stream->id);
    h2_credit_restore(&session->credit, LIMIT_H2_CREDIT_PER_DATA);
    if (last)
        end_sending(stream);
    else
        h2_client_ready(stream); /* after the other streams */
    return produce_frame(session, str_of(session->data_head, H2_FRAME_HEAD), payload, room, out_parts);
}

int h2_client_send(struct h2_client_stream *stream, size_t room, struct str out_parts[2])
{
    size_t length;
    int result = 1;

    if (stream->stage == H2_CLIENT_HEAD)
        return send_head(stream);
    if (str_empty(stream->part)) {
        if (!may_pull(stream)) {
            stream_block(stream);
            return 0;
        }
        result = pull_part(stream);
    }
    if (result != 1 || str_empty(stream->part))
        return result == 1 ? 0 : result;
    length = payload_length(stream);
    if (length == 0) {
        stream_block(stream);
        return 0;
    }
    if (room > H2_FRAME_HEAD + LIMIT_H2_SMALL && length > room - H2_FRAME_HEAD)
        length = room - H2_FRAME_HEAD;
    return send_payload(stream, length, room, out_parts);
}
