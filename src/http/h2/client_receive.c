/*
 * Received HEADERS, CONTINUATION and DATA frames. Frames of a stream that the client has reset are ignored; their
 * header blocks are decoded, because the connection has one decoder table.
 */
#include "http/h2/client_private.h"

/* Called for the :status of a 1xx, before its other fields are stored: they reuse the memory of the previous 1xx. */
static void begin_interim(struct h2_client_stream *stream)
{
    stream->interim_seen = false;
    arena_reset(&stream->interim);
    stream->session->fields.arena = &stream->interim;
}

static void field_decoded(void *owner, struct str name, struct str value)
{
    struct h2_client_session *session = owner;

    if (!session->receiving)
        return;
    h2_response_field(&session->fields, name, value);
    if (session->fields.status >= 100 && session->fields.status < 200 && !session->fields.regular)
        begin_interim(session->receiving);
}

/* The response is complete. */
static void end_response(struct h2_client_stream *stream)
{
    if (!stream->bodiless && stream->content_length != BODY_LENGTH_UNKNOWN &&
        stream->received != stream->content_length) {
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, "a body that is shorter than its Content-Length");
        return;
    }
    stream->end = H2_CLIENT_WHOLE;
    h2_credit_restore(&stream->session->credit, LIMIT_H2_CREDIT_PER_RESPONSE);
    if (stream->stage == H2_CLIENT_SENT)
        list_remove(&stream->link);
    h2_client_stream_updated(stream);
}

static void interim_complete(struct h2_client_stream *stream)
{
    struct h2_client_session *session = stream->session;

    h2_client_charge(session, H2_EVENT_CONTINUATION);
    if (session->block_ends_stream) {
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, "a 1xx response that ends the stream");
        return;
    }
    stream->interim_seen = true;
    stream->interim_status = session->fields.status;
    stream->interim_headers = session->fields.headers;
    h2_client_stream_updated(stream);
}

static void head_complete(struct h2_client_stream *stream)
{
    struct h2_client_session *session = stream->session;
    struct h2_response_reader *fields = &session->fields;
    bool without_body = stream->request->head || fields->status == 204 || fields->status == 304;

    stream->content_length = h2_response_length(fields);
    if (!fields->fault && session->block_ends_stream && !without_body &&
        stream->content_length != BODY_LENGTH_UNKNOWN && stream->content_length > 0)
        fields->fault = "a body that is shorter than its Content-Length";
    if (fields->fault) {
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, fields->fault);
        return;
    }
    stream->final_status = fields->status;
    stream->final_headers = fields->headers;
    stream->bodiless = without_body;
    stream->head_seen = true;
    if (session->block_ends_stream && !without_body && stream->content_length == BODY_LENGTH_UNKNOWN) {
        stream->content_length = 0;
        stream->bodiless = true;
    }
    h2_client_stream_updated(stream);
    if (session->block_ends_stream)
        end_response(stream);
}

static void trailers_complete(struct h2_client_stream *stream)
{
    *stream->trailers = stream->session->fields.headers;
    h1_remove_forbidden_trailers(stream->trailers);
    end_response(stream);
}

static void block_complete(struct h2_client_session *session)
{
    struct h2_client_stream *stream = session->receiving;

    session->receiving = NULL;
    if (!stream)
        return;
    h2_response_section_end(&session->fields);
    if (session->fields.no_memory) {
        h2_client_output_number(session, H2_RST_STREAM, stream->id, H2_INTERNAL_ERROR);
        h2_client_close(stream, H2_CLIENT_LOST);
    } else if (session->fields.fault) {
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, session->fields.fault);
    } else if (session->fields.trailers) {
        trailers_complete(stream);
    } else if (session->fields.status < 200) {
        interim_complete(stream);
    } else {
        head_complete(stream);
    }
}

static void decode_fragment(struct h2_client_session *session, struct str fragment, bool last)
{
    enum h2_error error = h2_header_block_decode(&session->block, fragment, last, field_decoded, session);

    if (error)
        h2_client_fail(session, error, "an invalid header block");
    else if (last)
        block_complete(session);
}

static void begin_section(struct h2_client_stream *stream)
{
    struct h2_client_session *session = stream->session;

    session->receiving = stream;
    session->fields = (struct h2_response_reader){
        .arena = stream->arena, .head_max = stream->head_max, .trailers = stream->head_seen};
}

static void begin_block(struct h2_client_session *session, const struct h2_frame *frame)
{
    struct h2_client_stream *stream = h2_client_find(session, frame->stream);

    session->receiving = NULL;
    session->block_ends_stream = frame->flags & H2_FLAG_END_STREAM;
    if (!stream && h2_client_is_idle(session, frame->stream))
        h2_client_fail(session, H2_PROTOCOL_ERROR, "a response on a stream that is not open");
    else if (!stream)
        h2_client_charge(session, H2_EVENT_IGNORED);
    else if (stream->end != H2_CLIENT_OPEN)
        h2_client_fail(session, H2_STREAM_CLOSED, "a header section after the end of a response");
    else if (stream->head_seen && !session->block_ends_stream)
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, "trailers that do not end the stream");
    else
        begin_section(stream);
}

void h2_client_headers_received(struct h2_client_session *session, struct h2_frame *frame)
{
    uint32_t depends;
    enum h2_error error = h2_frame_unpad(frame, &depends);

    if (!error)
        error = h2_header_block_start(&session->block, frame->stream);
    if (error) {
        h2_client_fail(session, error, "an invalid HEADERS frame");
        return;
    }
    begin_block(session, frame);
    if (!session->error)
        decode_fragment(session, frame->payload, frame->flags & H2_FLAG_END_HEADERS);
}

void h2_client_continuation_received(struct h2_client_session *session, struct h2_frame *frame)
{
    h2_client_charge(session, H2_EVENT_CONTINUATION);
    if (!session->error)
        decode_fragment(session, frame->payload, frame->flags & H2_FLAG_END_HEADERS);
}

/* The connection's window is released at once: only the windows of the streams bound the buffered bytes. */
static bool take_connection_window(struct h2_client_session *session, uint32_t bytes)
{
    uint32_t due;

    if (!h2_receive_window_take(&session->receive, bytes))
        return false;
    due = h2_receive_window_release(&session->receive, bytes);
    if (due)
        h2_client_output_number(session, H2_WINDOW_UPDATE, 0, due);
    return true;
}

static const char *body_fault(const struct h2_client_stream *stream, uint64_t more)
{
    if (!stream->head_seen)
        return "a body before the response head";
    if (stream->bodiless && more)
        return "a body in a response that has none";
    if (stream->content_length != BODY_LENGTH_UNKNOWN && !stream->bodiless &&
        stream->received + more > stream->content_length)
        return "a body that is longer than its Content-Length";
    return NULL;
}

static void body_received(struct h2_client_stream *stream, const struct h2_frame *frame, uint32_t padding)
{
    struct h2_client_session *session = stream->session;
    const char *fault = body_fault(stream, frame->payload.length);
    uint32_t due;

    if (fault) {
        h2_client_stream_fail(stream, H2_PROTOCOL_ERROR, fault);
        return;
    }
    if (buffer_append(&stream->input, frame->payload) < 0) {
        h2_client_output_number(session, H2_RST_STREAM, stream->id, H2_INTERNAL_ERROR);
        h2_client_close(stream, H2_CLIENT_LOST);
        return;
    }
    stream->received += frame->payload.length;
    due = padding ? h2_receive_window_release(&stream->receive, padding) : 0;
    if (due)
        h2_client_output_number(session, H2_WINDOW_UPDATE, stream->id, due);
    if (frame->flags & H2_FLAG_END_STREAM)
        end_response(stream);
    else
        h2_client_stream_updated(stream);
}

void h2_client_payload_received(struct h2_client_session *session, struct h2_frame *frame)
{
    struct h2_client_stream *stream = h2_client_find(session, frame->stream);
    uint32_t depends;
    enum h2_error error = h2_frame_unpad(frame, &depends);

    if (error)
        h2_client_fail(session, error, "wrong padding");
    else if (!take_connection_window(session, frame->length))
        h2_client_fail(session, H2_FLOW_CONTROL_ERROR, "more data than the connection's window");
    else if (!stream && h2_client_is_idle(session, frame->stream))
        h2_client_fail(session, H2_PROTOCOL_ERROR, "data on a stream that is not open");
    if (session->error)
        return;
    if (str_empty(frame->payload) && !(frame->flags & H2_FLAG_END_STREAM))
        h2_client_charge(session, H2_EVENT_EMPTY_DATA);
    else
        h2_credit_restore(&session->credit, LIMIT_H2_CREDIT_PER_DATA);
    if (!stream)
        return;
    if (stream->end != H2_CLIENT_OPEN)
        h2_client_stream_fail(stream, H2_STREAM_CLOSED, "data after the end of a response");
    else if (!h2_receive_window_take(&stream->receive, frame->length))
        h2_client_stream_fail(stream, H2_FLOW_CONTROL_ERROR, "more data than the stream's window");
    else
        body_received(stream, frame, frame->length - (uint32_t)frame->payload.length);
}
